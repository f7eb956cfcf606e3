#include "ops/move.h"

#include <gtest/gtest.h>

#include <random>

#include "backends/cpu/kernels/kernel_tester.h"
#include "ops/elementwise.h"

namespace rlx::cpu::testing {
namespace {

constexpr DType kDTypes[] = {DType::kF32, DType::kF16, DType::kI64, DType::kU8, DType::kBool};

TEST(Move, CopyMaterialisesAnyStrides) {
  std::mt19937 random(1);
  const Shape shapes[] = {{},         {1},        {1000},       {0, 3},          {64, 64},
                          {200, 333}, {3, 70, 9}, {40, 50, 60}, {2, 3, 4, 5, 6}, {1, 128, 1, 65}};
  for (const Shape& shape : shapes) {
    for (DType dtype : kDTypes) {
      for (Placement placement : kPlacements) {
        expect_reference(
            move_kernels(),
            {.op = Copy{}, .types = {{dtype, shape}}, .placements = {placement}, .tolerance = 0},
            random);
      }
    }
  }
}

TEST(Move, ConcatJoinsStridedInputsAlongAnyAxis) {
  std::mt19937 random(2);
  for (int64_t axis : {0, 1, 2, -1}) {
    for (DType dtype : kDTypes) {
      RandomUse use{.op = Concat{axis}, .tolerance = 0};
      for (int64_t extent : {3, 1, 40, 0}) {
        Shape shape = {20, 30, 17};
        shape[axis < 0 ? 2 : axis] = extent;
        use.types.push_back({dtype, shape});
        use.placements.push_back(random_placement(random));
      }
      expect_reference(move_kernels(), use, random);
    }
  }
}

TEST(Move, PadSurroundsWithTheValue) {
  std::mt19937 random(3);
  for (DType dtype : {DType::kF32, DType::kBF16, DType::kI32, DType::kF64}) {
    for (Placement placement : kPlacements) {
      expect_reference(move_kernels(),
                       {.op = Pad{{2, 0, 1}, {0, 3, 5}, -7},
                        .types = {{dtype, {11, 13, 60}}},
                        .placements = {placement},
                        .tolerance = 0},
                       random);
    }
  }
}

struct GatherCase {
  Shape table, ids;
  int64_t axis;
};

TEST(Move, GatherTakesRowsAlongAnyAxis) {
  std::mt19937 random(4);
  const GatherCase cases[] = {{{50, 300}, {40}, 0},      {{50, 30}, {}, 0}, {{6, 50, 7}, {3, 5}, 1},
                              {{6, 7, 50}, {9, 20}, -1}, {{50}, {4, 4}, 0}, {{50, 8}, {0}, 0}};
  for (const GatherCase& c : cases) {
    for (DType dtype : kDTypes) {
      for (DType id_dtype : {DType::kI64, DType::kI32, DType::kI8}) {
        expect_reference(move_kernels(),
                         {.op = Gather{c.axis},
                          .types = {{dtype, c.table}, {id_dtype, c.ids}},
                          .low = -50,
                          .high = 49,
                          .tolerance = 0},
                         random);
      }
    }
  }
}

TEST(Move, GatherDecodesPackedRows) {
  std::mt19937 random(5);
  for (DType dtype : {DType::kQ8_0, DType::kQ4_0}) {
    expect_reference(move_kernels(),
                     {.op = Gather{},
                      .types = {{dtype, {20, 256}}, {DType::kI64, {5, 30}}},
                      .low = 0,
                      .high = 19,
                      .tolerance = 0},
                     random);
  }
}

KernelUse make_gather(std::vector<double> ids) {
  const int64_t n = static_cast<int64_t>(ids.size());
  return {.op = Gather{},
          .types = {{DType::kF32, {3, 4}}, {DType::kI64, {n}}},
          .inputs = {make_operand(DType::kF32, {3, 4},
                                  fill(DType::kF32, {3, 4}, std::vector<double>(12, 1)).bytes),
                     make_operand(DType::kI64, {n}, fill(DType::kI64, {n}, ids).bytes)}};
}

TEST(Move, GatherReportsAnIndexOutsideTheTable) {
  EXPECT_EQ(run_kernel(move_kernels(), make_gather({0, 2, -3})).error, KernelError::kNone);
  EXPECT_EQ(run_kernel(move_kernels(), make_gather({0, 3})).error, KernelError::kIndexOutOfRange);
  EXPECT_EQ(run_kernel(move_kernels(), make_gather({-4})).error, KernelError::kIndexOutOfRange);
  EXPECT_EQ(run_kernel(move_kernels(), make_gather({-9e18, 9e18})).error,
            KernelError::kIndexOutOfRange);
}

TEST(Move, ScatterPutsUpdatesInOrder) {
  std::mt19937 random(6);
  for (ScatterReduction reduction :
       {ScatterReduction::kNone, ScatterReduction::kAdd, ScatterReduction::kMul,
        ScatterReduction::kMin, ScatterReduction::kMax}) {
    for (int64_t axis : {0, 1, 2}) {
      for (DType dtype : {DType::kF32, DType::kI32, DType::kF64}) {
        RandomUse use{
            .op = Scatter{axis, reduction},
            .types = {{dtype, {20, 21, 22}}, {DType::kI64, {15, 20, 18}}, {dtype, {15, 20, 18}}},
            .low = -20,
            .high = 19,
            .tolerance = 1e-5};
        for (int i = 0; i < 3; ++i) use.placements.push_back(random_placement(random));
        expect_reference(move_kernels(), use, random);
      }
    }
  }
}

TEST(Move, ScatterReportsAnIndexOutsideTheData) {
  KernelUse use{.op = Scatter{},
                .types = {{DType::kF32, {3}}, {DType::kI32, {2}}, {DType::kF32, {2}}}};
  use.inputs = {make_operand(DType::kF32, {3}, fill(DType::kF32, {3}, {1, 2, 3}).bytes),
                make_operand(DType::kI32, {2}, fill(DType::kI32, {2}, {1, 3}).bytes),
                make_operand(DType::kF32, {2}, fill(DType::kF32, {2}, {5, 6}).bytes)};
  const KernelResult result = run_once(move_kernels(), use, 1);
  EXPECT_EQ(result.error, KernelError::kIndexOutOfRange);
  EXPECT_EQ(result.reference(0).floats, (std::vector<double>{1, 5, 3}));
}

TEST(Move, IotaCountsAlongItsAxis) {
  std::mt19937 random(7);
  for (DType dtype : {DType::kI64, DType::kF32, DType::kU8, DType::kF16}) {
    for (int64_t axis : {0, 1, -1}) {
      expect_reference(move_kernels(),
                       {.op = Iota{{60, 50, 7}, axis, -3, 2, dtype}, .tolerance = 0}, random);
    }
  }
}

}  // namespace
}  // namespace rlx::cpu::testing
