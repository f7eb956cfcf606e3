#include "random_blocks.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tensor/packed.h"
#include "tensor/storage.h"

namespace rlx::bench {
namespace {

TEST(RandomBlocks, HaveMeanZeroAndTheSpreadAskedForInEveryFormat) {
  constexpr int64_t kElements = 1 << 16;
  constexpr double kSpread = 0.03;
  for (const DType dtype :
       {DType::kF32, DType::kF16, DType::kBF16, DType::kQ8_0, DType::kQ4_0, DType::kQ4_1,
        DType::kQ5_0, DType::kQ5_1, DType::kQ2_K, DType::kQ3_K, DType::kQ4_K, DType::kQ5_K,
        DType::kQ6_K, DType::kIQ4_NL, DType::kIQ4_XS, DType::kMXFP4}) {
    std::vector<std::byte> bytes(static_cast<size_t>(storage_bytes(dtype, kElements)));
    RandomBits random(7);
    fill_random_blocks(dtype, kSpread, random, bytes);
    std::vector<float> values(kElements);
    decode_row(dtype, bytes.data(), kElements, values.data());
    double sum = 0, squares = 0;
    for (const float value : values) {
      sum += value;
      squares += double{value} * value;
    }
    const double spread = std::sqrt(squares / kElements);
    EXPECT_LT(std::fabs(sum / kElements), 0.05 * kSpread) << to_string(dtype);
    EXPECT_GT(spread, kSpread / 1.5) << to_string(dtype);
    EXPECT_LT(spread, kSpread * 1.5) << to_string(dtype);
  }
}

TEST(RandomBlocks, RefusesAFormatItDoesNotMake) {
  std::byte block[64];
  RandomBits random(7);
  EXPECT_ANY_THROW(fill_random_blocks(DType::kTQ1_0, 1, random, std::span(block).first(54)));
}

}  // namespace
}  // namespace rlx::bench
