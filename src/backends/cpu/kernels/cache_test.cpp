#include "ops/cache.h"

#include <cmath>
#include <limits>

#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/matmul_test_call.h"
#include "ops/attention.h"

namespace rlx::cpu {
namespace {

TestTensor make_indices(const std::vector<int64_t>& values) {
  TestTensor tensor = make_tensor(DType::kI64, {static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), tensor.view.as<int64_t>());
  return tensor;
}

// Runs the op on `cache` in place.
KernelError write(const CacheWrite& op, TestTensor& cache, const TestTensor& update,
                  const std::vector<int64_t>& positions, const std::vector<int64_t>& texts,
                  int threads = 2) {
  const TestTensor places = make_indices(positions), ids = make_indices(texts);
  TestTensor out;
  out.view = cache.view;
  return run_kernel(cache_kernels(), op, {cache.view, update.view, places.view, ids.view}, out,
                    threads, "cache.write");
}

TEST(CacheWrite, PutsEachTokenIntoTheRowOfItsPosition) {
  std::mt19937 random(1);
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kQ8_0}) {
    for (const int threads : {1, 3}) {
      TestTensor cache = make_tensor(dtype, {2, 5, 2, 32});
      const TestTensor update = random_tensor(random, DType::kF32, {1, 3, 2, 32});
      ASSERT_EQ(write({.window = 3}, cache, update, {13, 14, 15}, {1, 1, 1}, threads),
                KernelError::kNone);
      const std::vector<double> held = to_doubles(cache.view), given = to_doubles(update.view);
      const double tolerance = dtype == DType::kF32 ? 0 : dtype == DType::kF16 ? 5e-4 : 5e-3;
      const int64_t rows[] = {3, 4, 0};
      for (int64_t i = 0; i < 2 * 5 * 64; ++i) {
        double expected = 0;
        for (int64_t t = 0; t < 3; ++t) {
          if (i / 64 == 5 + rows[t]) expected = given[t * 64 + i % 64];
        }
        ASSERT_NEAR(held[i], expected, tolerance) << to_string(dtype) << " element " << i;
      }
    }
  }
}

TEST(CacheWrite, ReportsPlacesThatTheCacheDoesNotHave) {
  std::mt19937 random(2);
  TestTensor cache = make_tensor(DType::kF32, {2, 5, 4});
  const TestTensor update = random_tensor(random, DType::kF32, {1, 2, 4});
  EXPECT_EQ(write({}, cache, update, {3, 4}, {0, 0}), KernelError::kNone);
  EXPECT_EQ(write({}, cache, update, {4, 5}, {0, 0}), KernelError::kCacheFull);
  EXPECT_EQ(write({}, cache, update, {-1, 0}, {0, 0}), KernelError::kCacheFull);
  EXPECT_EQ(write({}, cache, update, {1, 1}, {0, 2}), KernelError::kIndexOutOfRange);
  EXPECT_EQ(write({.window = 4}, cache, update, {99, 100}, {0, 0}), KernelError::kNone);
  EXPECT_EQ(write({.window = 5}, cache, update, {99, 100}, {0, 0}), KernelError::kCacheFull);
}

TEST(CacheWrite, KeepsTheBytesThatTheEncoderMakes) {
  std::mt19937 random(3);
  TestTensor cache = make_tensor(DType::kQ8_0, {1, 4, 2, 64});
  // The update is a slice of a wider projection: its heads do not follow each other.
  const TestTensor wide = random_tensor(random, DType::kF32, {1, 4, 5, 64});
  TestTensor update;
  update.view = wide.view;
  update.view.extents[2] = 2;
  update.view.data += 3 * 64 * 4;
  ASSERT_EQ(write({}, cache, update, {0, 1, 2, 3}, {0, 0, 0, 0}), KernelError::kNone);
  const int64_t row_bytes = 2 * 64 / 32 * 34;
  for (int64_t t = 0; t < 4; ++t) {
    std::vector<std::byte> expected(static_cast<size_t>(row_bytes));
    encode_row(DType::kQ8_0, wide.view.as<float>() + (t * 5 + 3) * 64, 128, expected.data());
    EXPECT_EQ(std::memcmp(cache.bytes.data() + t * row_bytes, expected.data(),
                          static_cast<size_t>(row_bytes)),
              0);
  }
}

TEST(CacheWrite, MakesABlockOfQ8NaNThatHasAValueWithoutBounds) {
  for (const float value :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN(), 9e6f}) {
    TestTensor cache = make_tensor(DType::kQ8_0, {1, 1, 64});
    TestTensor update = make_tensor(DType::kF32, {1, 1, 64});
    for (int i = 0; i < 64; ++i) update.view.as<float>()[i] = 1;
    update.view.as<float>()[5] = value;
    ASSERT_EQ(write({}, cache, update, {0}, {0}), KernelError::kNone);
    const std::vector<double> held = to_doubles(cache.view);
    for (int i = 0; i < 32; ++i) {
      EXPECT_TRUE(std::isnan(held[i]));
      EXPECT_NEAR(held[32 + i], 1, 1e-3);
    }
  }
}

}  // namespace
}  // namespace rlx::cpu
