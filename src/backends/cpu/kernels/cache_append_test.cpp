// Rows appended to a cache in place, of every pair of types and any strides, beside the reference.
#include <gtest/gtest.h>

#include <random>

#include "backends/cpu/kernels/kernel_tester.h"
#include "ops/attention.h"

namespace rlx::cpu::testing {
namespace {

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
  const KernelResult result = run_kernel(cache_kernels(), use);
  ASSERT_EQ(result.error, KernelError::kNone);
  expect_near(result.reference(0), expected, 0);
}

TEST(CacheAppend, ConvertsIntoTheCache) {
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

TEST(CacheAppend, ReportsAFullCache) {
  KernelUse use{.op = CacheAppend{Dim::symbol("past"), 0},
                .types = {{DType::kF16, {4, 2}}, {DType::kF32, {2, 2}}}};
  use.symbols.declare({"past", 0, 2});
  use.symbol_values = {2};
  use.inputs = {
      make_operand(DType::kF16, {4, 2}, fill(DType::kF16, {4, 2}, std::vector<double>(8)).bytes),
      make_operand(DType::kF32, {2, 2}, fill(DType::kF32, {2, 2}, {1, 2, 3, 4}).bytes)};
  EXPECT_EQ(run_kernel(cache_kernels(), use).error, KernelError::kNone);
  // The bound of the symbol is not what is checked: the rows of this run are.
  const Kernel* kernel = nullptr;
  for (const Kernel& candidate : cache_kernels()) {
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
