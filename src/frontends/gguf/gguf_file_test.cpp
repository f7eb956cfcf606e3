#include "frontends/gguf/gguf_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <random>
#include <string>

#include "base/error.h"

namespace rlx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Writes the pieces of a GGUF file, right or wrong.
class Bytes {
 public:
  template <typename T>
  Bytes& put(T value) {
    const auto* raw = reinterpret_cast<const std::byte*>(&value);
    data_.insert(data_.end(), raw, raw + sizeof(T));
    return *this;
  }
  Bytes& raw(std::string_view text) {
    const auto span = std::as_bytes(std::span(text));
    data_.insert(data_.end(), span.begin(), span.end());
    return *this;
  }
  Bytes& text(std::string_view value) { return put<uint64_t>(value.size()).raw(value); }
  Bytes& header(uint64_t num_tensors, uint64_t num_entries, uint32_t version = 3) {
    return raw("GGUF").put(version).put(num_tensors).put(num_entries);
  }
  template <typename T>
  Bytes& entry(std::string_view key, GgufType type, T value) {
    return text(key).put(static_cast<uint32_t>(type)).put(value);
  }
  Bytes& entry_text(std::string_view key, std::string_view value) {
    return text(key).put(static_cast<uint32_t>(GgufType::kString)).text(value);
  }
  Bytes& array(std::string_view key, GgufType element_type, uint64_t count) {
    text(key).put(static_cast<uint32_t>(GgufType::kArray));
    return put(static_cast<uint32_t>(element_type)).put(count);
  }
  // Dimensions as stored: innermost first.
  Bytes& tensor(std::string_view name, const std::vector<uint64_t>& dimensions, uint32_t type,
                uint64_t offset) {
    text(name).put(static_cast<uint32_t>(dimensions.size()));
    for (const uint64_t extent : dimensions) put(extent);
    return put(type).put(offset);
  }
  Bytes& pad(size_t alignment, size_t more = 0) {
    data_.resize((data_.size() + alignment - 1) / alignment * alignment + more);
    return *this;
  }
  size_t size() const { return data_.size(); }
  std::span<const std::byte> span() const { return data_; }
  // A copy in its own allocation of exactly that size, so that a sanitizer sees one byte too far.
  std::vector<std::byte> first(size_t size) const {
    return {data_.begin(), data_.begin() + static_cast<std::ptrdiff_t>(size)};
  }

 private:
  std::vector<std::byte> data_;
};

Error error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorCode::kInternal, "There was no error.");
}

Error open_error(const Bytes& bytes) {
  return error_of([&] { GgufFile::from_bytes(bytes.span(), "bad.gguf"); });
}

Bytes sample() {
  Bytes bytes;
  bytes.header(3, 12)
      .entry_text("general.architecture", "llama")
      .entry<uint32_t>("u32", GgufType::kU32, 4000000000u)
      .entry<int8_t>("i8", GgufType::kI8, -5)
      .entry<uint64_t>("u64", GgufType::kU64, ~uint64_t{0})
      .entry<float>("f32", GgufType::kF32, 0.5f)
      .entry<double>("f64", GgufType::kF64, 0.1)
      .entry<uint8_t>("yes", GgufType::kBool, 1)
      .entry<uint8_t>("maybe", GgufType::kBool, 2);
  bytes.array("tokens", GgufType::kString, 3).text("a").text("").text("ccc");
  bytes.array("ints", GgufType::kI16, 2).put<int16_t>(-1).put<int16_t>(300);
  bytes.array("floats", GgufType::kF32, 2).put(1.5f).put(-2.0f);
  bytes.array("nested", GgufType::kArray, 1).put(uint32_t{0}).put(uint64_t{2}).raw("xy");
  bytes.tensor("matrix", {64, 3}, 8, 0).tensor("vector", {5}, 0, 224).tensor("scalar", {}, 1, 256);
  return bytes.pad(32, 258);
}

TEST(GgufFile, ReadsTensorsOutermostDimensionFirst) {
  const Bytes bytes = sample();
  const GgufFile file = GgufFile::from_bytes(bytes.span(), "sample.gguf");
  ASSERT_EQ(file.tensors().size(), 3u);
  const GgufTensor& matrix = file.tensors()[0];
  EXPECT_EQ(matrix.name, "matrix");
  EXPECT_EQ(matrix.dtype, DType::kQ8_0);
  EXPECT_THAT(matrix.shape, ElementsAre(3, 64));
  EXPECT_EQ(matrix.size_bytes, 3 * 68);
  EXPECT_EQ(matrix.offset_bytes, static_cast<int64_t>(bytes.size()) - 258);
  ASSERT_NE(file.find_tensor("scalar"), nullptr);
  EXPECT_TRUE(file.find_tensor("scalar")->shape.empty());
  EXPECT_EQ(file.find_tensor("scalar")->size_bytes, 2);
  EXPECT_EQ(file.data(*file.find_tensor("vector")).size(), 20u);
  EXPECT_EQ(file.find_tensor("matri"), nullptr);
  EXPECT_EQ(file.version(), 3);
  EXPECT_EQ(file.alignment(), 32);
}

TEST(GgufFile, ReadsMetadataOfEveryKind) {
  const Bytes bytes = sample();
  const GgufFile file = GgufFile::from_bytes(bytes.span(), "sample.gguf");
  EXPECT_EQ(file.find_string("general.architecture"), "llama");
  EXPECT_EQ(file.find_int("u32"), 4000000000);
  EXPECT_EQ(file.find_int("i8"), -5);
  EXPECT_EQ(file.find_float("f32"), 0.5);
  EXPECT_EQ(file.find_float("f64"), 0.1);
  EXPECT_EQ(file.find_bool("yes"), true);
  EXPECT_THAT(*file.find_string_array("tokens"), ElementsAre("a", "", "ccc"));
  EXPECT_THAT(*file.find_int_array("ints"), ElementsAre(-1, 300));
  EXPECT_THAT(*file.find_float_array("floats"), ElementsAre(1.5f, -2.0f));
  EXPECT_EQ(file.find_int("absent"), std::nullopt);
  EXPECT_EQ(file.find_string_array("absent"), std::nullopt);
  EXPECT_EQ(file.find("nested")->count, 1);
}

TEST(GgufFile, NamesKeyAndTypesWhenTheTypeIsWrong) {
  const Bytes bytes = sample();
  const GgufFile file = GgufFile::from_bytes(bytes.span(), "sample.gguf");
  const Error error = error_of([&] { file.find_int("general.architecture"); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  for (const char* part : {"sample.gguf", "general.architecture", "string", "integer"}) {
    EXPECT_THAT(error.what(), HasSubstr(part));
  }
  EXPECT_THAT(error_of([&] { file.find_string("tokens"); }).what(), HasSubstr("array of string"));
  EXPECT_THROW(file.find_float("u32"), Error);
  EXPECT_THROW(file.find_bool("u32"), Error);
  EXPECT_THROW(file.find_int_array("floats"), Error);
  EXPECT_THROW(file.find_float_array("ints"), Error);
  EXPECT_THROW(file.find_bool_array("ints"), Error);
  EXPECT_THROW(file.find_string_array("f32"), Error);
  EXPECT_THROW(file.find_int("yes"), Error);
  EXPECT_EQ(error_of([&] { file.find_int("u64"); }).code(), ErrorCode::kOutOfRange);
  EXPECT_EQ(error_of([&] { file.find_bool("maybe"); }).code(), ErrorCode::kCorruptData);
}

TEST(GgufFile, PrintsValuesShort) {
  Bytes bytes;
  bytes.header(0, 5)
      .entry_text("long", std::string(500, 'x'))
      .entry<uint64_t>("u64", GgufType::kU64, ~uint64_t{0})
      .entry<float>("f32", GgufType::kF32, 0.1f);
  bytes.array("tokens", GgufType::kString, 6);
  for (const char* token : {"<s>", "\n", "a", "b", "c", "d"}) bytes.text(token);
  bytes.array("empty", GgufType::kI32, 0);
  const GgufFile file = GgufFile::from_bytes(bytes.span(), "print.gguf");
  EXPECT_EQ(printable_value(*file.find("long")), "'" + std::string(60, 'x') + "...'");
  EXPECT_EQ(printable_value(*file.find("u64")), "18446744073709551615");
  EXPECT_EQ(printable_value(*file.find("f32")), "0.1");
  EXPECT_EQ(printable_value(*file.find("tokens")), "string[6] ['<s>', '\\x0a', 'a', 'b', ...]");
  EXPECT_EQ(printable_value(*file.find("empty")), "i32[0] []");
}

TEST(GgufFile, ReadsVersionTwoAndAnotherAlignment) {
  Bytes bytes;
  bytes.header(1, 1, 2).entry<uint32_t>("general.alignment", GgufType::kU32, 256);
  bytes.tensor("x", {4}, 0, 256).pad(256, 256 + 16);
  const GgufFile file = GgufFile::from_bytes(bytes.span(), "v2.gguf");
  EXPECT_EQ(file.version(), 2);
  EXPECT_EQ(file.tensors()[0].offset_bytes, 512);
}

TEST(GgufFile, RefusesOtherVersionsAndBigEndianByName) {
  EXPECT_THAT(open_error(Bytes().header(0, 0, 1)).what(), HasSubstr("version is 1"));
  EXPECT_THAT(open_error(Bytes().header(0, 0, 4)).what(), HasSubstr("version is 4"));
  EXPECT_THAT(open_error(Bytes().header(0, 0, 0x03000000u)).what(), HasSubstr("big-endian"));
  const Error error = open_error(Bytes().raw("PK\x03\x04 and so on"));
  EXPECT_EQ(error.code(), ErrorCode::kCorruptData);
  EXPECT_THAT(error.what(), HasSubstr("bad.gguf"));
  EXPECT_THAT(error.what(), HasSubstr("'PK\\x03\\x04'"));
}

TEST(GgufFile, RefusesEveryTruncation) {
  const Bytes bytes = sample();
  for (size_t size = 0; size < bytes.size(); ++size) {
    const std::vector<std::byte> part = bytes.first(size);
    const Error error = error_of([&] { GgufFile::from_bytes(part, "cut.gguf"); });
    ASSERT_EQ(error.code(), ErrorCode::kCorruptData) << size << ": " << error.what();
  }
}

TEST(GgufFile, SurvivesRandomDamage) {
  const Bytes bytes = sample();
  std::mt19937 random(1);
  int num_errors = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::byte> damaged = bytes.first(bytes.size());
    const size_t num_changes = 1 + random() % 4;
    for (size_t i = 0; i < num_changes; ++i) {
      damaged[random() % damaged.size()] = static_cast<std::byte>(random());
    }
    try {
      const GgufFile file = GgufFile::from_bytes(damaged, "damaged.gguf");
      for (const GgufTensor& tensor : file.tensors()) {
        ASSERT_EQ(file.data(tensor).size(), static_cast<size_t>(tensor.size_bytes));
      }
      for (const GgufValue& value : file.metadata()) printable_value(value);
    } catch (const Error&) {
      ++num_errors;
    }
  }
  EXPECT_GT(num_errors, 1000);
}

TEST(GgufFile, RefusesCountsThatTheFileCannotHold) {
  EXPECT_THAT(open_error(Bytes().header(~uint64_t{0}, 0)).what(), HasSubstr("tensors"));
  EXPECT_THAT(open_error(Bytes().header(0, uint64_t{1} << 40)).what(), HasSubstr("metadata"));
  for (const GgufType type : {GgufType::kString, GgufType::kU8, GgufType::kF64, GgufType::kArray}) {
    const Error error = open_error(Bytes().header(0, 1).array("k", type, uint64_t{1} << 61));
    EXPECT_EQ(error.code(), ErrorCode::kCorruptData);
    EXPECT_THAT(error.what(), HasSubstr("'k'"));
  }
  EXPECT_EQ(open_error(Bytes().header(0, 1).put(~uint64_t{0}).raw("name")).code(),
            ErrorCode::kCorruptData);
}

TEST(GgufFile, RefusesUnknownTypes) {
  EXPECT_THAT(open_error(Bytes().header(0, 1).text("k").put(uint32_t{13}).pad(64)).what(),
              HasSubstr("value type 13"));
  EXPECT_THAT(open_error(Bytes().header(1, 0).tensor("t", {32}, 31, 0).pad(32, 512)).what(),
              HasSubstr("q4_0_4_4"));
  const Error error = open_error(Bytes().header(1, 0).tensor("t", {32}, 1000, 0).pad(32, 512));
  EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
  EXPECT_THAT(error.what(), HasSubstr("tensor 't'"));
  EXPECT_THAT(error.what(), HasSubstr("1000"));
}

TEST(GgufFile, RefusesDeeplyNestedArrays) {
  Bytes bytes;
  bytes.header(0, 1).array("deep", GgufType::kArray, 1);
  for (int i = 0; i < 100000; ++i) bytes.put(uint32_t{9}).put(uint64_t{1});
  const Error error = open_error(bytes);
  EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
  EXPECT_THAT(error.what(), HasSubstr("nested"));
}

TEST(GgufFile, RefusesWrongAlignments) {
  for (const uint32_t alignment : {0u, 3u, 48u}) {
    Bytes bytes;
    bytes.header(0, 1).entry("general.alignment", GgufType::kU32, alignment);
    EXPECT_THAT(open_error(bytes).what(), HasSubstr("power of two"));
  }
  Bytes text;
  text.header(0, 1).entry_text("general.alignment", "32");
  EXPECT_THAT(open_error(text).what(), HasSubstr("general.alignment"));
  Bytes huge;
  huge.header(1, 1).entry("general.alignment", GgufType::kU64, uint64_t{1} << 62);
  huge.tensor("x", {1}, 0, 0).pad(32, 64);
  EXPECT_THAT(open_error(huge).what(), HasSubstr("'x'"));
}

TEST(GgufFile, RefusesTensorsThatDoNotFit) {
  const auto one = [](const std::vector<uint64_t>& dimensions, uint32_t type, uint64_t offset) {
    return open_error(Bytes().header(1, 0).tensor("t", dimensions, type, offset).pad(32, 128));
  };
  EXPECT_THAT(one({33}, 0, 0).what(), HasSubstr("132 bytes"));
  EXPECT_THAT(one({1}, 0, 128).what(), HasSubstr("file ends"));
  EXPECT_THAT(one({1}, 0, 4).what(), HasSubstr("multiple of the alignment"));
  EXPECT_THAT(one({33}, 8, 0).what(), HasSubstr("q8_0"));
  EXPECT_THAT(one({1, 1, 1, 1, 1}, 0, 0).what(), HasSubstr("5 dimensions"));
  EXPECT_THAT(one({~uint64_t{0}}, 0, 0).what(), HasSubstr("Dimension 0"));
  EXPECT_EQ(one({1, uint64_t{1} << 62}, 0, 0).code(), ErrorCode::kOutOfRange);
  EXPECT_EQ(one({uint64_t{1} << 32, uint64_t{1} << 32}, 0, 0).code(), ErrorCode::kOutOfRange);
  EXPECT_EQ(one({0, uint64_t{1} << 32, uint64_t{1} << 32}, 0, 0).code(), ErrorCode::kOutOfRange);
  EXPECT_EQ(one({1}, 0, ~uint64_t{31}).code(), ErrorCode::kCorruptData);
  EXPECT_EQ(one({1}, 0, INT64_MAX - 31).code(), ErrorCode::kOutOfRange);
}

TEST(GgufFile, RefusesOverlappingTensorsByName) {
  Bytes bytes;
  bytes.header(3, 0).tensor("c", {8}, 0, 96).tensor("a", {9}, 0, 0).tensor("b", {8}, 0, 32);
  const Error error = open_error(bytes.pad(32, 128));
  EXPECT_THAT(error.what(), HasSubstr("'a'"));
  EXPECT_THAT(error.what(), HasSubstr("'b'"));
}

TEST(GgufFile, RefusesDuplicateNames) {
  Bytes tensors;
  tensors.header(2, 0).tensor("same", {1}, 0, 0).tensor("same", {1}, 0, 32).pad(32, 64);
  EXPECT_THAT(open_error(tensors).what(), HasSubstr("tensor 'same' appears twice"));
  Bytes keys;
  keys.header(0, 2).entry_text("key", "a").entry_text("key", "b");
  EXPECT_THAT(open_error(keys).what(), HasSubstr("key 'key' appears twice"));
}

TEST(GgufFile, AllowsEmptyTensorsAnywhere) {
  Bytes bytes;
  bytes.header(3, 0).tensor("a", {8}, 0, 0).tensor("none", {0}, 0, 0).tensor("end", {0}, 0, 32);
  bytes.pad(32, 32);
  EXPECT_EQ(GgufFile::from_bytes(bytes.span(), "empty").find_tensor("none")->size_bytes, 0);
}

TEST(GgufFile, OpensReferenceFiles) {
  const GgufFile file("tests/data/gguf-small/llama.gguf");
  EXPECT_EQ(file.find_string("general.architecture"), "llama");
  EXPECT_EQ(file.find_int("llama.embedding_length"), 64);
  EXPECT_FLOAT_EQ(static_cast<float>(*file.find_float("llama.rope.freq_base")), 10000.0f);
  EXPECT_EQ(file.tensors().size(), 21u);
  const GgufTensor* embedding = file.find_tensor("token_embd.weight");
  ASSERT_NE(embedding, nullptr);
  EXPECT_THAT(embedding->shape, ElementsAre(320, 64));
  EXPECT_EQ(embedding->offset_bytes, 1888);
  EXPECT_EQ(embedding->size_bytes, 81920);
  EXPECT_EQ(file.file()->path(), "tests/data/gguf-small/llama.gguf");
}

TEST(GgufFile, RefusesTruncatedReferenceFile) {
  const GgufFile whole("tests/data/gguf-small/qwen3.gguf");
  const auto header_bytes = static_cast<size_t>(whole.tensors()[0].offset_bytes);
  std::mt19937 random(2);
  for (int round = 0; round < 500; ++round) {
    const size_t limit = round < 400 ? header_bytes : whole.bytes().size();
    const auto part = whole.bytes().first(random() % limit);
    const std::vector<std::byte> copy(part.begin(), part.end());
    EXPECT_THROW(GgufFile::from_bytes(copy, "cut.gguf"), Error);
  }
}

TEST(GgufFile, NamesAMissingFile) {
  const Error error = error_of([] { GgufFile("tests/data/absent.gguf"); });
  EXPECT_EQ(error.code(), ErrorCode::kNotFound);
  EXPECT_THAT(error.what(), HasSubstr("tests/data/absent.gguf"));
}

TEST(GgufFile, OpensALargeVocabularyInMilliseconds) {
  Bytes bytes;
  bytes.header(0, 2).array("tokenizer.ggml.tokens", GgufType::kString, 150000);
  for (int i = 0; i < 150000; ++i) bytes.text("token" + std::to_string(i));
  bytes.array("tokenizer.ggml.scores", GgufType::kF32, 150000).pad(1, 600000);
  const auto start = std::chrono::steady_clock::now();
  const GgufFile file = GgufFile::from_bytes(bytes.span(), "large.gguf");
  const auto open_time = std::chrono::steady_clock::now() - start;
  EXPECT_EQ(file.find_string_array("tokenizer.ggml.tokens")->at(149999), "token149999");
  // Generous, for sanitizers and loaded machines; it takes under 2 ms on its own.
  EXPECT_LT(std::chrono::duration<double>(open_time).count(), 0.2);
}

}  // namespace
}  // namespace rlx
