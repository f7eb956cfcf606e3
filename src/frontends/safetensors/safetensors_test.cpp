#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <string>

#include "base/error.h"
#include "frontends/safetensors/safetensors_file.h"

namespace rlx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string make_bytes(const std::string& header, size_t data_bytes) {
  const uint64_t length = header.size();
  std::string bytes(reinterpret_cast<const char*>(&length), sizeof(length));
  return bytes + header + std::string(data_bytes, '\1');
}

SafetensorsFile open_bytes(const std::string& bytes) {
  return SafetensorsFile::from_bytes(std::as_bytes(std::span(bytes)), "bad.safetensors");
}

Error error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorCode::kInternal, "There was no error.");
}

Error header_error(const std::string& header, size_t data_bytes = 0) {
  return error_of([&] { open_bytes(make_bytes(header, data_bytes)); });
}

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  const std::string& offsets) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":[" + shape +
         "],\"data_offsets\":[" + offsets + "]}";
}

const std::string kSample =
    "{" + entry("b", "F32", "2,3", "8,32") + "," + entry("a", "I64", "", "0,8") +
    ",\"__metadata__\":{\"format\":\"pt\"}," + entry("empty", "F16", "0,5", "32,32") + "," +
    entry("tiny", "F8_E4M3", "4", "32,36") + "," + entry("flags", "BOOL", "2", "36,38") + "}   ";

TEST(SafetensorsFile, ReadsTensorsInTheOrderOfTheData) {
  const std::string bytes = make_bytes(kSample, 38);
  const SafetensorsFile file = open_bytes(bytes);
  ASSERT_EQ(file.tensors().size(), 4u);
  EXPECT_EQ(file.tensors()[0].name, "a");
  EXPECT_TRUE(file.tensors()[0].shape.empty());
  const SafetensorsTensor* b = file.find_tensor("b");
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(b->dtype, DType::kF32);
  EXPECT_THAT(b->shape, ElementsAre(2, 3));
  EXPECT_EQ(b->offset_bytes, static_cast<int64_t>(8 + kSample.size() + 8));
  EXPECT_EQ(file.data(*b).size(), 24u);
  EXPECT_EQ(file.find_tensor("empty")->size_bytes, 0);
  EXPECT_EQ(file.find_tensor("absent"), nullptr);
  EXPECT_THAT(file.metadata(), ElementsAre(std::pair<std::string, std::string>("format", "pt")));
}

TEST(SafetensorsFile, NamesAnUnsupportedDTypeOnlyWhenItIsAskedFor) {
  const std::string bytes = make_bytes(kSample, 38);
  const SafetensorsFile file = open_bytes(bytes);
  ASSERT_EQ(file.unsupported_tensors().size(), 1u);
  EXPECT_EQ(file.unsupported_tensors()[0].dtype_name, "F8_E4M3");
  const Error error = error_of([&] { file.find_tensor("tiny"); });
  EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
  for (const char* part : {"bad.safetensors", "tiny", "F8_E4M3"}) {
    EXPECT_THAT(error.what(), HasSubstr(part));
  }
}

TEST(SafetensorsFile, ReadsAnEmptyHeader) {
  EXPECT_TRUE(open_bytes(make_bytes("{}", 0)).tensors().empty());
  EXPECT_TRUE(open_bytes(make_bytes("{\"__metadata__\":null}", 0)).metadata().empty());
}

TEST(SafetensorsFile, RefusesEveryTruncation) {
  const std::string bytes = make_bytes(kSample, 38);
  for (size_t size = 0; size < bytes.size(); ++size) {
    const std::vector<char> part(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    const Error error = error_of(
        [&] { SafetensorsFile::from_bytes(std::as_bytes(std::span(part)), "cut.safetensors"); });
    ASSERT_EQ(error.code(), ErrorCode::kCorruptData) << size << ": " << error.what();
  }
  // The same with a header length that fits, so that the JSON itself is cut.
  for (size_t size = 0; size + 3 < kSample.size(); ++size) {
    EXPECT_EQ(header_error(kSample.substr(0, size), 38).code(), ErrorCode::kCorruptData) << size;
  }
}

TEST(SafetensorsFile, SurvivesRandomDamage) {
  const std::string bytes = make_bytes(kSample, 38);
  std::mt19937 random(1);
  int num_errors = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string damaged = bytes;
    for (size_t i = 0; i <= random() % 3; ++i) {
      damaged[random() % (damaged.size() - 38)] = static_cast<char>(random());
    }
    try {
      const SafetensorsFile file = open_bytes(damaged);
      for (const SafetensorsTensor& tensor : file.tensors()) file.data(tensor);
    } catch (const Error&) {
      ++num_errors;
    }
  }
  EXPECT_GT(num_errors, 10000);
}

TEST(SafetensorsFile, RefusesHeaderLengthsBeyondTheFile) {
  std::string bytes = make_bytes("{}", 0);
  for (const uint64_t length : {uint64_t{3}, ~uint64_t{0}, uint64_t{1} << 40}) {
    std::memcpy(bytes.data(), &length, sizeof(length));
    EXPECT_THAT(error_of([&] { open_bytes(bytes); }).what(), HasSubstr("header claims"));
  }
}

TEST(SafetensorsFile, RefusesOverlapsHolesAndTrailingBytes) {
  const auto two = [](const char* first, const char* second, size_t data_bytes) {
    return header_error(
        "{" + entry("x", "U8", "4", first) + "," + entry("y", "U8", "4", second) + "}", data_bytes);
  };
  EXPECT_THAT(two("0,4", "2,6", 6).what(), HasSubstr("'y'"));
  EXPECT_THAT(two("0,4", "0,4", 4).what(), HasSubstr("start at 4"));
  EXPECT_THAT(two("0,4", "6,10", 10).what(), HasSubstr("start at 4"));
  EXPECT_THAT(two("1,5", "5,9", 9).what(), HasSubstr("start at 0"));
  EXPECT_THAT(two("0,4", "4,8", 9).what(), HasSubstr("9 bytes of data"));
  EXPECT_THAT(two("0,4", "4,8", 7).what(), HasSubstr("'y'"));
  EXPECT_THAT(two("0,4", "4,3", 4).what(), HasSubstr("'y'"));
}

TEST(SafetensorsFile, RefusesSizesThatContradictTheShape) {
  const Error error = header_error("{" + entry("x", "F32", "3", "0,8") + "}", 8);
  EXPECT_THAT(error.what(), HasSubstr("'x'"));
  EXPECT_THAT(error.what(), HasSubstr("12 bytes"));
  const std::string huge = std::to_string(int64_t{1} << 62);
  EXPECT_EQ(header_error("{" + entry("x", "F32", huge + "," + huge, "0,0") + "}").code(),
            ErrorCode::kOutOfRange);
  EXPECT_EQ(header_error("{" + entry("x", "F32", "0," + huge + ",4", "0,0") + "}").code(),
            ErrorCode::kOutOfRange);
  EXPECT_EQ(header_error("{" + entry("x", "F32", "18446744073709551615", "0,0") + "}").code(),
            ErrorCode::kCorruptData);
  EXPECT_EQ(header_error("{" + entry("x", "F32", "99999999999999999999999", "0,0") + "}").code(),
            ErrorCode::kCorruptData);
}

TEST(SafetensorsFile, RefusesEntriesOfTheWrongForm) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{\"x\":1}", "'x' is a number"},
      {"{\"x\":[]}", "'x' is an array"},
      {"{\"x\":{}}", "lacks the field 'dtype'"},
      {"{\"x\":{\"dtype\":\"U8\",\"shape\":[]}}", "lacks the field 'data_offsets'"},
      {"{\"x\":{\"dtype\":3}}", "dtype of tensor 'x' is a number"},
      {"{\"x\":{\"dtype\":{\"a\":1}}}", "dtype of tensor 'x' is an object"},
      {"{\"x\":{\"shape\":[-1]}}", "holds a number"},
      {"{\"x\":{\"shape\":[1.5]}}", "holds a number"},
      {"{\"x\":{\"shape\":[[1]]}}", "holds an array"},
      {"{\"x\":{\"shape\":4}}", "shape of tensor 'x' is a number"},
      {"{\"x\":{\"data_offsets\":[1]}}", "has 1 elements"},
      {"{\"x\":{\"data_offsets\":[1,2,3]}}", "more than 2"},
      {"{\"x\":{\"dtype\":\"U8\",\"dtype\":\"U8\"}}", "'dtype' twice"},
      {"{\"x\":{\"stride\":1}}", "'stride'"},
      {"{\"__metadata__\":{\"a\":1}}", "metadata 'a' is a number"},
      {"{\"__metadata__\":{},\"__metadata__\":{}}", "twice"},
      {"{} {}", "malformed"},
      {"{\"\xff\":1}", "malformed"},
      {"{" + entry("x", "U8", "0", "0,0") + "," + entry("x", "U8", "0", "0,0") + "}",
       "'x' appears twice"},
      {" {}", "start with '{'"},
      {"[]", "start with '{'"},
  };
  for (const auto& [header, expected] : cases) {
    EXPECT_THAT(header_error(header).what(), HasSubstr(expected)) << header;
  }
}

TEST(SafetensorsFile, RefusesDepthBombs) {
  std::string objects;
  for (int i = 0; i < 200000; ++i) objects += "{\"a\":";
  EXPECT_EQ(header_error(objects).code(), ErrorCode::kCorruptData);
  EXPECT_EQ(header_error("{\"x\":{\"shape\":" + std::string(500000, '[')).code(),
            ErrorCode::kCorruptData);
}

TEST(SafetensorsFile, OpensReferenceFile) {
  const SafetensorsFile file("tests/data/small/llama/model.safetensors");
  const SafetensorsTensor* embedding = file.find_tensor("model.embed_tokens.weight");
  ASSERT_NE(embedding, nullptr);
  EXPECT_EQ(embedding->dtype, DType::kF32);
  EXPECT_THAT(embedding->shape, ElementsAre(320, 64));
  EXPECT_EQ(file.file()->path(), file.path());
  EXPECT_THAT(error_of([] { SafetensorsFile("tests/data/absent"); }).what(), HasSubstr("absent"));
}

class SafetensorsFolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(::testing::TempDir()) /
              (std::string("rlx_safetensors_") +
               ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& name, const std::string& bytes) {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
  }
  void write_index(const std::string& weight_map) {
    write("model.safetensors.index.json",
          "{\"metadata\":{\"total_size\":12,\"deep\":[[{}]]},\"weight_map\":" + weight_map + "}");
  }
  void write_shards() {
    write("one.safetensors",
          make_bytes(
              "{" + entry("a", "U8", "4", "0,4") + "," + entry("odd", "F4", "2", "4,5") + "}", 5));
    write("two.safetensors", make_bytes("{" + entry("b", "I16", "4", "0,8") + "}", 8));
  }
  Error open_error() {
    return error_of([&] { SafetensorsFolder{folder_.string()}; });
  }

  std::filesystem::path folder_;
};

TEST_F(SafetensorsFolderTest, OpensASingleFile) {
  const SafetensorsFolder folder("tests/data/small/qwen3");
  EXPECT_EQ(folder.files().size(), 1u);
  EXPECT_TRUE(folder.find_tensor("model.norm.weight").has_value());
  EXPECT_FALSE(folder.find_tensor("model.norm").has_value());
  EXPECT_EQ(folder.tensors().size(), folder.files()[0].tensors().size());
}

TEST_F(SafetensorsFolderTest, JoinsShards) {
  write_shards();
  write_index(R"({"a":"one.safetensors","b":"two.safetensors","odd":"one.safetensors"})");
  SafetensorsFolder opened(folder_.string());
  const SafetensorsFolder folder = std::move(opened);
  ASSERT_EQ(folder.tensors().size(), 2u);
  const auto b = folder.find_tensor("b");
  ASSERT_TRUE(b.has_value());
  EXPECT_EQ(b->tensor->dtype, DType::kI16);
  EXPECT_EQ(b->data().size(), 8u);
  EXPECT_THAT(b->file->path(), HasSubstr("two.safetensors"));
  EXPECT_EQ(error_of([&] { folder.find_tensor("odd"); }).code(), ErrorCode::kUnsupported);
}

TEST_F(SafetensorsFolderTest, NamesBothFilesWhenNeitherIsThere) {
  const Error error = open_error();
  EXPECT_EQ(error.code(), ErrorCode::kNotFound);
  EXPECT_THAT(error.what(), HasSubstr("model.safetensors.index.json"));
}

TEST_F(SafetensorsFolderTest, RefusesAFileOutsideTheFolder) {
  write_shards();
  for (const char* name :
       {"../one.safetensors", "/etc/passwd", "..", "", "sub/one.safetensors", "a\\\\b"}) {
    write_index("{\"a\":\"" + std::string(name) + "\"}");
    const Error error = open_error();
    EXPECT_EQ(error.code(), ErrorCode::kCorruptData) << name;
    EXPECT_THAT(error.what(), HasSubstr("in its folder")) << name;
  }
  write_index(R"({"a":"one.safetensors\u0000.txt"})");
  EXPECT_EQ(open_error().code(), ErrorCode::kCorruptData);
}

TEST_F(SafetensorsFolderTest, RefusesAMissingShardOrTensor) {
  write_shards();
  write_index(R"({"a":"one.safetensors","c":"three.safetensors"})");
  EXPECT_EQ(open_error().code(), ErrorCode::kNotFound);
  write_index(R"({"a":"two.safetensors","odd":"one.safetensors"})");
  const Error error = open_error();
  EXPECT_EQ(error.code(), ErrorCode::kCorruptData);
  EXPECT_THAT(error.what(), HasSubstr("'a' is not in 'two.safetensors'"));
}

TEST_F(SafetensorsFolderTest, RefusesATensorInTwoShards) {
  write_shards();
  write("three.safetensors", make_bytes("{" + entry("odd", "U8", "1", "0,1") + "}", 1));
  write_index(R"({"a":"one.safetensors","odd":"three.safetensors"})");
  EXPECT_THAT(open_error().what(), HasSubstr("'odd' is in two files"));
}

TEST_F(SafetensorsFolderTest, RefusesAMalformedIndex) {
  write_shards();
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{}", "no 'weight_map'"},
      {"[]", "The index is an array"},
      {"7", "The index is a number"},
      {"{\"weight_map\":[]}", "'weight_map' is an array"},
      {"{\"weight_map\":{\"a\":1}}", "'a' is a number"},
      {"{\"weight_map\":{\"a\":{}}}", "'a' is an object"},
      {"{\"weight_map\":{},\"weight_map\":{}}", "twice"},
      {R"({"weight_map":{"a":"one.safetensors","a":"one.safetensors"}})", "twice"},
      {"{\"weight_map\":{\"a\":\"one.safe", "malformed"},
      {"", "malformed"},
      {"{\"other\":" + std::string(300000, '['), "malformed"},
  };
  for (const auto& [index, expected] : cases) {
    write("model.safetensors.index.json", index);
    const Error error = open_error();
    EXPECT_EQ(error.code(), ErrorCode::kCorruptData);
    EXPECT_THAT(error.what(), HasSubstr(expected)) << index.substr(0, 60);
  }
}

}  // namespace
}  // namespace rlx
