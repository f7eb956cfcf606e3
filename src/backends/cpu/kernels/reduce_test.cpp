#include "ops/reduce.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "backends/cpu/kernels/kernel_tester.h"

namespace rlx::cpu::testing {
namespace {

std::vector<Op> list_reductions(std::vector<int64_t> axes, bool keep_dims) {
  return {ReduceSum{axes, keep_dims}, ReduceMean{axes, keep_dims}, ReduceMax{axes, keep_dims},
          ReduceMin{axes, keep_dims}, ReduceProd{axes, keep_dims}};
}

TEST(Reduce, OverAnyAxesDTypesAndStrides) {
  std::mt19937 random(1);
  const std::vector<int64_t> axes_cases[] = {{},        {0},    {1},         {2},    {3},
                                             {-1},      {0, 2}, {1, 3},      {0, 3}, {1, 2},
                                             {0, 1, 2}, {2, 3}, {0, 1, 2, 3}};
  for (const std::vector<int64_t>& axes : axes_cases) {
    for (DType dtype : {DType::kF32, DType::kF64, DType::kF16, DType::kI32, DType::kU8}) {
      const Placement placement = random_placement(random);
      for (const Op& op : list_reductions(axes, random() % 2 == 0)) {
        if (op.is<ReduceMean>() && !is_float(dtype)) continue;
        const bool is_product = op.is<ReduceProd>();
        expect_reference(reduce_kernels(),
                         {.op = op,
                          .types = {{dtype, {4, 7, 30, 17}}},
                          .placements = {placement},
                          .low = is_product && is_float(dtype) ? 0.99 : -2,
                          .high = is_product && is_float(dtype) ? 1.01 : 2,
                          .tolerance = is_product ? 1e-4 : 2e-6},
                         random);
      }
    }
  }
}

// Long enough to be cut into parts, so that threads share one output.
TEST(Reduce, LongReductionsAreAccurateAndDoNotDependOnThreads) {
  std::mt19937 random(2);
  for (Placement placement : {Placement::kContiguous, Placement::kSpacedInner}) {
    for (const Op& op : list_reductions({}, false)) {
      if (op.is<ReduceProd>()) continue;
      expect_reference(reduce_kernels(),
                       {.op = op,
                        .types = {{DType::kF32, {3, 100003}}},
                        .placements = {placement},
                        .low = 0,
                        .high = 1,
                        .tolerance = 3e-7},
                       random);
      expect_reference(reduce_kernels(),
                       {.op = op, .types = {{DType::kF64, {70000}}}, .low = 0, .high = 1}, random);
    }
    expect_reference(
        reduce_kernels(),
        {.op = ReduceSum{{1}}, .types = {{DType::kI64, {2, 50000}}}, .low = -9e9, .high = 9e9},
        random);
  }
}

TEST(Reduce, MaxAndMinKeepNan) {
  for (int64_t n : {1, 5, 8, 100, 600}) {
    for (int64_t at : {int64_t{0}, n / 2, n - 1}) {
      std::vector<double> values(n);
      std::iota(values.begin(), values.end(), 1.0);
      values[at] = std::nan("");
      for (const Op& op : {Op(ReduceMax{}), Op(ReduceMin{})}) {
        const KernelResult result = run_kernel(
            reduce_kernels(),
            {.op = op,
             .types = {{DType::kF32, {n}}},
             .inputs = {make_operand(DType::kF32, {n}, fill(DType::kF32, {n}, values).bytes)}});
        EXPECT_TRUE(std::isnan(result.reference(0).floats[0]));
      }
    }
  }
}

TEST(Reduce, OfNothingGivesTheIdentity) {
  std::mt19937 random(3);
  for (DType dtype : {DType::kF32, DType::kI8, DType::kU16, DType::kI64}) {
    for (const Op& op : list_reductions({1}, false)) {
      if (op.is<ReduceMean>() && !is_float(dtype)) continue;
      expect_reference(reduce_kernels(), {.op = op, .types = {{dtype, {3, 0}}}}, random);
    }
  }
}

TEST(Reduce, PositionsOfExtremes) {
  std::mt19937 random(4);
  for (DType dtype : {DType::kF32, DType::kF16, DType::kF64, DType::kI32, DType::kU8}) {
    for (int64_t axis : {0, 1, 2, -1}) {
      for (bool select_last : {false, true}) {
        const Placement placement = random_placement(random);
        // Few values, so that there are equals.
        const TensorType type{dtype, {5, 33, 700}};
        expect_reference(reduce_kernels(),
                         {.op = Argmax{axis, false, select_last},
                          .types = {type},
                          .placements = {placement},
                          .low = 0,
                          .high = 3},
                         random);
        expect_reference(reduce_kernels(),
                         {.op = Argmin{axis, true, select_last},
                          .types = {type},
                          .placements = {placement},
                          .low = 0,
                          .high = 3},
                         random);
      }
    }
  }
}

TEST(Reduce, PositionOfNanWins) {
  for (int64_t n : {3, 1500}) {
    std::vector<double> values(n, 2.0);
    values[0] = std::numeric_limits<double>::infinity();
    values[1] = values[n - 1] = std::nan("");
    for (bool select_last : {false, true}) {
      for (const Op& op :
           {Op(Argmax{-1, false, select_last}), Op(Argmin{-1, false, select_last})}) {
        const KernelResult result = run_kernel(
            reduce_kernels(),
            {.op = op,
             .types = {{DType::kF32, {n}}},
             .inputs = {make_operand(DType::kF32, {n}, fill(DType::kF32, {n}, values).bytes)}});
        EXPECT_EQ(result.reference(0).integers[0], select_last ? n - 1 : 1);
      }
    }
  }
}

TEST(Reduce, RunningSums) {
  std::mt19937 random(5);
  for (DType dtype : {DType::kF32, DType::kF16, DType::kI64, DType::kU8}) {
    for (int64_t axis : {0, 1, -1}) {
      for (int bits = 0; bits < 4; ++bits) {
        expect_reference(reduce_kernels(),
                         {.op = CumulativeSum{axis, (bits & 1) != 0, (bits & 2) != 0},
                          .types = {{dtype, {9, 50, 40}}},
                          .placements = {random_placement(random)}},
                         random);
      }
    }
  }
  expect_reference(reduce_kernels(),
                   {.op = CumulativeSum{}, .types = {{DType::kF32, {3000}}}, .aliases_input = true},
                   random);
}

}  // namespace
}  // namespace rlx::cpu::testing
