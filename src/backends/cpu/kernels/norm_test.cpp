#include "ops/norm.h"

#include <gtest/gtest.h>

#include <random>

#include "backends/cpu/kernels/kernel_tester.h"
#include "backends/cpu/kernels/norm_rows.h"
#include "ops/attention.h"

namespace rlx::cpu::testing {
namespace {

constexpr DType kFloats[] = {DType::kF32, DType::kF64, DType::kF16, DType::kBF16};

TEST(Norm, RowsOfAnyLengthDTypeAndStride) {
  std::mt19937 random(1);
  for (int64_t n : {1, 7, 8, 64, 100, 1024, 1031, 3000}) {
    for (DType dtype : kFloats) {
      for (Placement placement : kPlacements) {
        const TensorType x{dtype, {2, 5, n}};
        const TensorType weight{random() % 2 == 0 ? DType::kF32 : DType::kF16, {n}};
        const std::vector<Placement> placements = {placement, random_placement(random),
                                                   random_placement(random)};
        expect_reference(norm_kernels(),
                         {.op = RmsNorm{1e-5}, .types = {x, weight}, .placements = placements},
                         random);
        expect_reference(norm_kernels(),
                         {.op = LayerNorm{1e-5},
                          .types = {x, weight, weight},
                          .placements = placements,
                          .tolerance = 3e-6},
                         random);
        expect_reference(
            norm_kernels(),
            {.op = AddRmsNorm{1e-5}, .types = {x, x, weight}, .placements = placements}, random);
        expect_reference(norm_kernels(),
                         {.op = Softmax{},
                          .types = {x},
                          .placements = placements,
                          .low = -8,
                          .high = 8,
                          .tolerance = 2e-6},
                         random);
        expect_reference(norm_kernels(),
                         {.op = LogSoftmax{}, .types = {x}, .placements = placements}, random);
      }
    }
  }
}

TEST(Norm, WritesOverTheInput) {
  std::mt19937 random(2);
  for (DType dtype : kFloats) {
    const TensorType x{dtype, {30, 300}};
    const TensorType weight{DType::kF32, {300}};
    expect_reference(norm_kernels(), {.op = RmsNorm{}, .types = {x, weight}, .aliases_input = true},
                     random);
    expect_reference(norm_kernels(),
                     {.op = AddRmsNorm{}, .types = {x, x, weight}, .aliases_input = true}, random);
    for (int64_t axis : {0, 1}) {
      expect_reference(
          norm_kernels(),
          {.op = Softmax{axis}, .types = {x}, .tolerance = 2e-6, .aliases_input = true}, random);
    }
  }
}

TEST(Norm, SoftmaxAlongAnyAxis) {
  std::mt19937 random(3);
  for (DType dtype : kFloats) {
    for (int64_t axis : {0, 1, 2, -2}) {
      for (Placement placement : kPlacements) {
        const TensorType x{dtype, {6, 20, 150}};
        expect_reference(
            norm_kernels(),
            {.op = Softmax{axis}, .types = {x}, .placements = {placement}, .tolerance = 2e-6},
            random);
        expect_reference(
            norm_kernels(),
            {.op = LogSoftmax{axis}, .types = {x}, .placements = {placement}, .tolerance = 2e-6},
            random);
      }
    }
  }
}

TEST(Norm, SoftmaxOfALongRowStaysAccurate) {
  std::mt19937 random(4);
  expect_reference(norm_kernels(),
                   {.op = Softmax{},
                    .types = {{DType::kF32, {1, 151936}}},
                    .low = -3,
                    .high = 3,
                    .tolerance = 1e-6},
                   random);
}

TEST(Norm, SoftmaxOfMaskedRowsFollowsTheFormula) {
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<double> values = {0,        -infinity, 1, -infinity,    -infinity, -infinity,
                                      infinity, 0,         1, std::nan(""), 0,         1};
  for (int64_t axis : {1, 0}) {
    const std::vector<int64_t> extents =
        axis == 1 ? std::vector<int64_t>{4, 3} : std::vector<int64_t>{3, 4};
    std::vector<double> placed = values;
    if (axis == 0) {
      for (int r = 0; r < 4; ++r) {
        for (int c = 0; c < 3; ++c) placed[c * 4 + r] = values[r * 3 + c];
      }
    }
    const KernelResult result = run_kernel(
        norm_kernels(),
        {.op = Softmax{axis},
         .types = {{DType::kF32, Shape(extents.begin(), extents.end())}},
         .inputs = {make_operand(DType::kF32, extents, fill(DType::kF32, extents, placed).bytes)}});
    const ReferenceTensor out = result.reference(0);
    auto at = [&](int r, int c) { return out.floats[axis == 1 ? r * 3 + c : c * 4 + r]; };
    EXPECT_NEAR(at(0, 0), 1 / (1 + std::exp(1)), 1e-6);
    EXPECT_EQ(at(0, 1), 0);
    for (int r = 1; r < 4; ++r) EXPECT_TRUE(std::isnan(at(r, 0))) << r;
  }
}

TEST(Norm, RopeTurnsBothKindsOfPairs) {
  std::mt19937 random(5);
  for (bool interleaved : {false, true}) {
    for (DType dtype : kFloats) {
      for (int64_t rotary : {2, 12, 32, 64}) {
        for (Placement placement : kPlacements) {
          for (bool alias : {false, true}) {
            if (alias && placement != Placement::kContiguous) continue;
            expect_reference(norm_kernels(),
                             {.op = Rope{interleaved},
                              .types = {{dtype, {2, 9, 5, 64}}, {DType::kF32, {9, rotary}}},
                              .placements = {placement, Placement::kPaddedRows},
                              .aliases_input = alias},
                             random);
          }
        }
      }
    }
  }
}

// The reference models round the angle to f32 and then take its exact sine.
TEST(Norm, RopeTableIsAccurateAtFarPositions) {
  const std::vector<double> positions = {0, 1, 17, 4095, 131071, 999999};
  std::vector<double> frequencies;
  for (int i = 0; i < 35; ++i) frequencies.push_back(std::pow(500000.0, -i / 35.0));
  const int64_t tokens = static_cast<int64_t>(positions.size());
  const Filled frequency = fill(DType::kF32, {35}, frequencies);
  const KernelResult result = run_kernel(
      norm_kernels(),
      {.op = RopeTable{1.25},
       .types = {{DType::kI64, {tokens}}, {DType::kF32, {35}}},
       .inputs = {make_operand(DType::kI64, {tokens}, fill(DType::kI64, {tokens}, positions).bytes),
                  make_operand(DType::kF32, {35}, frequency.bytes)}});
  const ReferenceTensor table = result.reference(0);
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t i = 0; i < 35; ++i) {
      const float angle =
          static_cast<float>(positions[t]) * static_cast<float>(frequency.reference.floats[i]);
      EXPECT_NEAR(table.floats[t * 70 + i], 1.25 * std::cos(static_cast<double>(angle)), 2e-7);
      EXPECT_NEAR(table.floats[t * 70 + 35 + i], 1.25 * std::sin(static_cast<double>(angle)), 2e-7);
    }
  }
}

}  // namespace
}  // namespace rlx::cpu::testing
