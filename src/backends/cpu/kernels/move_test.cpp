#include "ops/move.h"

#include <gtest/gtest.h>

#include <random>

#include "backends/cpu/kernels/kernel_tester.h"
#include "ops/attention.h"
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

// The cache as a program sees it: rows before stay, new rows are converted, later ones untouched.
void append(DType cache_dtype, DType update_dtype, int64_t axis, int64_t row, Placement placement,
            std::mt19937& random) {
  std::vector<int64_t> extents = {2, 9, 3, 40}, added = {2, 4, 3, 40};
  if (axis == 2) {
    extents = {2, 3, 9, 40};
    added = {2, 3, 4, 40};
  }
  KernelUse use{.op = CacheAppend{Dim::symbol("past"), axis}};
  use.symbols.declare({"past", 0, 5});
  use.symbol_values = {row};
  use.types = {{cache_dtype, Shape(extents.begin(), extents.end())},
               {update_dtype, Shape(added.begin(), added.end())}};
  const Filled cache =
      fill(cache_dtype, extents, random_values(random, cache_dtype, count(extents), -2, 2));
  const Filled update =
      fill(update_dtype, added, random_values(random, update_dtype, count(added), -2, 2));
  use.inputs = {make_operand(cache_dtype, extents, cache.bytes),
                make_operand(update_dtype, added, update.bytes, placement)};
  const ReferenceTensor* inputs[] = {&cache.reference, &update.reference};
  const ReferenceTensor expected =
      evaluate(use.op, inputs, use.types, use.symbols, use.symbol_values)[0];
  const KernelResult result = run_kernel(move_kernels(), use);
  ASSERT_EQ(result.error, KernelError::kNone);
  expect_near(result.reference(0), expected, 0);
}

TEST(Move, CacheAppendConvertsIntoTheCache) {
  std::mt19937 random(8);
  for (DType cache : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (DType update : {DType::kF32, DType::kF16}) {
      for (int64_t axis : {1, 2, -2}) {
        for (Placement placement : kPlacements) {
          append(cache, update, axis == -2 ? 2 : axis, random() % 6, placement, random);
        }
      }
    }
  }
}

TEST(Move, CacheAppendReportsAFullCache) {
  KernelUse use{.op = CacheAppend{Dim::symbol("past"), 0},
                .types = {{DType::kF16, {4, 2}}, {DType::kF32, {2, 2}}}};
  use.symbols.declare({"past", 0, 2});
  use.symbol_values = {2};
  use.inputs = {
      make_operand(DType::kF16, {4, 2}, fill(DType::kF16, {4, 2}, std::vector<double>(8)).bytes),
      make_operand(DType::kF32, {2, 2}, fill(DType::kF32, {2, 2}, {1, 2, 3, 4}).bytes)};
  EXPECT_EQ(run_kernel(move_kernels(), use).error, KernelError::kNone);
  // The bound of the symbol is not what is checked: the rows of this run are.
  const Kernel* kernel = nullptr;
  for (const Kernel& candidate : move_kernels()) {
    if (candidate.op == CacheAppend::kName) kernel = &candidate;
  }
  ASSERT_NE(kernel, nullptr);
  TensorView cache = use.inputs[0].view(), update = use.inputs[1].view();
  const TensorView* inputs[] = {&cache, &update};
  const TensorView* outputs[] = {&cache};
  const int64_t dims[] = {3};
  std::atomic<KernelError> error{KernelError::kNone};
  const std::vector<std::byte> before = use.inputs[0].storage;
  KernelCall call{};
  call.attributes = use.op.attributes();
  call.inputs = inputs;
  call.outputs = outputs;
  call.dims = dims;
  call.num_threads = 1;
  call.error = &error;
  kernel->run(call);
  EXPECT_EQ(error.load(), KernelError::kCacheFull);
  EXPECT_EQ(use.inputs[0].storage, before);
}

}  // namespace
}  // namespace rlx::cpu::testing
