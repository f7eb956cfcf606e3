#include "frontends/npy/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>

#include "base/error.h"

namespace rlx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Error error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorCode::kInternal, "There was no error.");
}

std::string make_file(const std::string& header, size_t data_bytes, int version = 1) {
  std::string bytes("\x93NUMPY", 6);
  bytes += static_cast<char>(version);
  bytes += '\0';
  const auto length = static_cast<uint32_t>(header.size());
  bytes.append(reinterpret_cast<const char*>(&length), version == 1 ? 2 : 4);
  return bytes + header + std::string(data_bytes, '\2');
}

NpyArray parse_text(const std::string& bytes) {
  const std::vector<char> copy(bytes.begin(), bytes.end());
  return parse_npy(std::as_bytes(std::span(copy)), "bad.npy");
}

Error header_error(const std::string& header, size_t data_bytes = 0) {
  return error_of([&] { parse_text(make_file(header, data_bytes)); });
}

// What numpy.save writes for numpy.arange(6, dtype="<i2").reshape(2, 3).
const std::string kNumpyHeader =
    "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }" + std::string(58, ' ') + "\n";

class NpyFile : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        std::filesystem::path(::testing::TempDir()) /
        (std::string("rlx_npy_") + ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    path_ = (folder_ / "array.npy").string();
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  int count_files() const {
    int count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder_)) ++count;
    return count;
  }

  std::filesystem::path folder_;
  std::string path_;
};

TEST_F(NpyFile, ReadsWhatNumpyWrites) {
  for (const int version : {1, 2}) {
    const NpyArray array = parse_text(make_file(kNumpyHeader, 12, version));
    EXPECT_EQ(array.dtype, DType::kI16);
    EXPECT_THAT(array.shape, ElementsAre(2, 3));
    EXPECT_EQ(array.data.size(), 12u);
  }
  const NpyArray scalar =
      parse_text(make_file("{'descr':\"|b1\",'fortran_order':False,'shape':()}", 1));
  EXPECT_TRUE(scalar.shape.empty());
  EXPECT_EQ(scalar.data[0], std::byte{1});  // any byte but 0 is true
}

TEST_F(NpyFile, ReturnsEveryDTypeAsWritten) {
  std::mt19937 random(1);
  const std::vector<std::vector<int64_t>> shapes = {{}, {3}, {0}, {2, 0, 5}, {2, 3}, {1, 2, 3, 4}};
  for (const DType dtype : {DType::kF64, DType::kF32, DType::kF16, DType::kI64, DType::kI32,
                            DType::kI16, DType::kI8, DType::kU64, DType::kU32, DType::kU16,
                            DType::kU8, DType::kBool, DType::kC64, DType::kC128}) {
    for (const auto& shape : shapes) {
      int64_t elements = 1;
      for (const int64_t extent : shape) elements *= extent;
      NpyArray array{dtype, shape, {}};
      array.data.resize(static_cast<size_t>(elements * bytes_per_block(dtype)));
      for (std::byte& byte : array.data) {
        byte = static_cast<std::byte>(dtype == DType::kBool ? random() % 2 : random());
      }
      write_npy(path_, array);
      const NpyArray read = read_npy(path_);
      EXPECT_EQ(read.dtype, dtype);
      EXPECT_EQ(read.shape, shape);
      EXPECT_EQ(read.data, array.data);
      EXPECT_EQ((std::filesystem::file_size(path_) - array.data.size()) % 64, 0u);
    }
  }
  EXPECT_EQ(count_files(), 1);
}

TEST_F(NpyFile, WritesTheBytesThatNumpyWrites) {
  NpyArray array{DType::kI16, {2, 3}, std::vector<std::byte>(12, std::byte{2})};
  write_npy(path_, array);
  std::ifstream stream(path_, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(stream)), {});
  EXPECT_EQ(bytes, make_file(kNumpyHeader, 12));
}

TEST_F(NpyFile, RefusesOtherLayoutsByName) {
  const auto of = [](const std::string& descr) {
    return header_error("{'descr': '" + descr + "', 'fortran_order': False, 'shape': (1,)}", 4);
  };
  EXPECT_THAT(of(">f4").what(), HasSubstr("big endian"));
  EXPECT_THAT(of("|O").what(), HasSubstr("objects"));
  for (const char* descr : {"<U4", "|S4", "<f16", "<M8[ns]", "|V2", "", "f4", "=f4"}) {
    EXPECT_EQ(of(descr).code(), ErrorCode::kUnsupported) << descr;
  }
  EXPECT_THAT(header_error("{'descr': '<f4', 'fortran_order': True, 'shape': (1,)}", 4).what(),
              HasSubstr("Fortran"));
  EXPECT_THAT(
      header_error("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", 4).what(),
      HasSubstr("records"));
  EXPECT_THAT(error_of([] { parse_text(make_file(kNumpyHeader, 12, 3)); }).what(),
              HasSubstr("version is 3.0"));
}

TEST_F(NpyFile, RefusesEveryTruncationAndTrailingBytes) {
  const std::string bytes = make_file(kNumpyHeader, 12);
  for (size_t size = 0; size < bytes.size(); ++size) {
    const Error error = error_of([&] { parse_text(bytes.substr(0, size)); });
    ASSERT_EQ(error.code(), ErrorCode::kCorruptData) << size << ": " << error.what();
  }
  EXPECT_EQ(error_of([&] { parse_text(bytes + "x"); }).code(), ErrorCode::kCorruptData);
}

TEST_F(NpyFile, RefusesMalformedHeaders) {
  const std::vector<std::string> headers = {
      "",
      "{",
      "[]",
      "{}",
      "{'descr': '<f4'}",
      "{'descr': '<f4', 'fortran_order': False}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (1)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (1,,)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (1,}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': 1}",
      "{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}",
      "{'descr': '<f4' 'fortran_order': False, 'shape': (1,)}",
      "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'more': 1}",
      "{'descr: '<f4', 'fortran_order': False, 'shape': (1,)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
  };
  for (const std::string& header : headers) {
    EXPECT_EQ(header_error(header, 4).code(), ErrorCode::kCorruptData) << header;
  }
}

TEST_F(NpyFile, RefusesShapesThatDoNotFitWithoutAllocating) {
  const auto of = [](const std::string& shape) {
    return header_error("{'descr': '<f8', 'fortran_order': False, 'shape': " + shape + "}", 8);
  };
  EXPECT_EQ(of("(1000000000000000,)").code(), ErrorCode::kCorruptData);
  EXPECT_EQ(of("(4611686018427387904, 4)").code(), ErrorCode::kOutOfRange);
  EXPECT_EQ(of("(4611686018427387904,)").code(), ErrorCode::kOutOfRange);
  EXPECT_EQ(of("(0, 4611686018427387904, 4)").code(), ErrorCode::kOutOfRange);
  std::string many = "(";
  for (int i = 0; i < 65; ++i) many += "1,";
  EXPECT_EQ(of(many + ")").code(), ErrorCode::kCorruptData);
}

TEST_F(NpyFile, SurvivesRandomDamage) {
  const std::string bytes = make_file(kNumpyHeader, 12);
  std::mt19937 random(2);
  for (int round = 0; round < 20000; ++round) {
    std::string damaged = bytes;
    for (size_t i = 0; i <= random() % 3; ++i) {
      damaged[random() % 72] = static_cast<char>(random());
    }
    try {
      parse_text(damaged);
    } catch (const Error&) {
    }
  }
}

TEST_F(NpyFile, WritesNothingWhenItCannotWriteAll) {
  NpyArray array{DType::kBF16, {2}, std::vector<std::byte>(4)};
  EXPECT_EQ(error_of([&] { write_npy(path_, array); }).code(), ErrorCode::kUnsupported);
  array.dtype = DType::kF32;
  const Error error = error_of([&] { write_npy(path_, array); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(error.what(), HasSubstr("8"));
  EXPECT_EQ(count_files(), 0);
  array.data.resize(8);
  const Error missing = error_of([&] { write_npy((folder_ / "none" / "x.npy").string(), array); });
  EXPECT_EQ(missing.code(), ErrorCode::kIo);
  EXPECT_THAT(missing.what(), HasSubstr("x.npy"));
  // The last step fails because a folder is in the way; the pending file goes away.
  std::filesystem::create_directories(folder_ / "taken.npy" / "inside");
  EXPECT_EQ(error_of([&] { write_npy((folder_ / "taken.npy").string(), array); }).code(),
            ErrorCode::kIo);
  EXPECT_EQ(count_files(), 1);
}

}  // namespace
}  // namespace rlx
