#include "rlx/dtype.h"

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "tensor/storage.h"

namespace rlx {
namespace {

TEST(DTypeTable, ParsesEveryNameBackToItself) {
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    DType parsed = DType::kBool;
    ASSERT_TRUE(parse_dtype(to_string(dtype), parsed));
    EXPECT_EQ(parsed, dtype);
    for (const char letter : to_string(dtype)) EXPECT_FALSE(letter >= 'A' && letter <= 'Z');
    EXPECT_EQ(is_packed(dtype), elements_per_block(dtype) > 1);
  }
  DType untouched = DType::kI8;
  EXPECT_FALSE(parse_dtype("float", untouched));
  EXPECT_FALSE(parse_dtype("", untouched));
  EXPECT_EQ(untouched, DType::kI8);
}

TEST(StorageBytes, CountsWholeBlocks) {
  EXPECT_EQ(storage_bytes(DType::kF32, 7), 28);
  EXPECT_EQ(storage_bytes(DType::kC128, 3), 48);
  EXPECT_EQ(storage_bytes(DType::kQ8_0, 64), 68);
  EXPECT_EQ(storage_bytes(DType::kQ8_K, 512), 584);
  EXPECT_EQ(storage_bytes(DType::kQ4_0, 0), 0);
}

TEST(StorageBytes, RefusesAPartOfABlockByName) {
  try {
    storage_bytes(DType::kQ4_K, 100);
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(error.message().find("q4_k"), std::string::npos);
    EXPECT_NE(error.message().find("256"), std::string::npos);
  }
  EXPECT_THROW(storage_bytes(DType::kF32, -1), Error);
}

TEST(StorageBytes, RefusesASizeBeyond64Bits) {
  EXPECT_THROW(storage_bytes(DType::kF64, INT64_MAX / 2), Error);
  EXPECT_EQ(storage_bytes(DType::kI8, INT64_MAX), INT64_MAX);
}

}  // namespace
}  // namespace rlx
