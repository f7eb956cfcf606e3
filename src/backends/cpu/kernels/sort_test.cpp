#include <gtest/gtest.h>

#include <random>

#include "backends/cpu/kernels/kernel_tester.h"
#include "ops/move.h"

namespace rlx::cpu::testing {
namespace {

TEST(Sort, OrdersEveryLaneStably) {
  std::mt19937 random(1);
  for (DType dtype : {DType::kF32, DType::kF16, DType::kF64, DType::kI32, DType::kU8}) {
    for (int64_t axis : {0, 1, -1}) {
      for (bool flag : {false, true}) {
        const Placement placement = random_placement(random);
        const TensorType type{dtype, {40, 37, 50}};
        // Few integers, so that there are equals.
        expect_reference(sort_kernels(),
                         {.op = Sort{axis, flag},
                          .types = {type},
                          .placements = {placement},
                          .low = 0,
                          .high = 9,
                          .tolerance = 0},
                         random);
        expect_reference(sort_kernels(),
                         {.op = TopK{7, axis, flag},
                          .types = {type},
                          .placements = {placement},
                          .low = 0,
                          .high = 9,
                          .tolerance = 0},
                         random);
      }
    }
  }
}

TEST(Sort, TakesAnyK) {
  std::mt19937 random(2);
  for (int64_t k : {1, 2, 16, 17, 999, 1000}) {
    for (bool largest : {false, true}) {
      expect_reference(
          sort_kernels(),
          {.op = TopK{k, -1, largest}, .types = {{DType::kF32, {2, 1000}}}, .tolerance = 0},
          random);
    }
  }
  expect_reference(sort_kernels(),
                   {.op = TopK{40}, .types = {{DType::kF32, {1, 100000}}}, .tolerance = 0}, random);
}

TEST(Sort, PlacesNanAsTheLargest) {
  const double nan = std::nan("");
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<double> values = {nan, 1, infinity, nan, -infinity, 1, 0};
  const Operand x = make_operand(DType::kF32, {7}, fill(DType::kF32, {7}, values).bytes);
  const TensorType type{DType::kF32, {7}};
  auto order = [&](const Op& op) {
    return run_kernel(sort_kernels(), {.op = op, .types = {type}, .inputs = {x}})
        .reference(1)
        .integers;
  };
  EXPECT_EQ(order(Sort{-1, false}), (std::vector<int64_t>{4, 6, 1, 5, 2, 0, 3}));
  EXPECT_EQ(order(Sort{-1, true}), (std::vector<int64_t>{0, 3, 2, 1, 5, 6, 4}));
  EXPECT_EQ(order(TopK{3, -1, true}), (std::vector<int64_t>{0, 3, 2}));
  EXPECT_EQ(order(TopK{3, -1, false}), (std::vector<int64_t>{4, 6, 1}));
}

}  // namespace
}  // namespace rlx::cpu::testing
