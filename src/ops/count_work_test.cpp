#include "ops/count_work.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/attention.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/move.h"

namespace rlx {
namespace {

using testing::ElementsAre;

TensorView make_view(DType dtype, std::vector<int64_t> extents) {
  TensorView view;
  view.dtype = dtype;
  view.rank = static_cast<int>(extents.size());
  int64_t stride = 1;
  for (int axis = view.rank; axis-- > 0;) {
    view.extents[axis] = extents[static_cast<size_t>(axis)];
    view.strides[axis] = stride;
    stride *= view.extents[axis];
  }
  return view;
}

OpWork count(const Op& op, const std::vector<TensorView>& inputs,
             const std::vector<TensorView>& outputs) {
  std::vector<const TensorView*> in, out;
  for (const TensorView& view : inputs) in.push_back(&view);
  for (const TensorView& view : outputs) out.push_back(&view);
  return count_work(op, in, out);
}

TEST(CountWork, TakesTwoOperationsForAMultiplyAddAndTheBytesOfPackedWeights) {
  const OpWork work = count(Matmul{.transpose_b = true},
                            {make_view(DType::kF32, {3, 64}), make_view(DType::kQ8_0, {10, 64})},
                            {make_view(DType::kF32, {3, 10})});
  EXPECT_EQ(work.flops, 2 * 3 * 10 * 64);
  EXPECT_THAT(work.read_bytes, ElementsAre(3 * 64 * 4, 10 * 2 * 34));
  EXPECT_THAT(work.written_bytes, ElementsAre(3 * 10 * 4));
}

TEST(CountWork, TakesOnlyTheRowsOfATableThatAreGathered) {
  const OpWork work =
      count(Gather{.axis = 0}, {make_view(DType::kF16, {1000, 8}), make_view(DType::kI64, {1, 3})},
            {make_view(DType::kF16, {1, 3, 8})});
  EXPECT_THAT(work.read_bytes, ElementsAre(3 * 8 * 2, 3 * 8));
}

TEST(CountWork, TakesOnlyTheNewRowsOfACache) {
  const OpWork work = count(
      CacheAppend{}, {make_view(DType::kF16, {1, 100, 2, 8}), make_view(DType::kF32, {1, 1, 2, 8})},
      {make_view(DType::kF16, {1, 40, 2, 8})});
  EXPECT_THAT(work.read_bytes, ElementsAre(0, 16 * 4));
  EXPECT_THAT(work.written_bytes, ElementsAre(16 * 2));
}

TEST(CountWork, TakesTheCausalPairsOfAttentionAndTheCacheInsideTheWindow) {
  const TensorView q = make_view(DType::kF32, {1, 2, 4, 8});
  const TensorView kv = make_view(DType::kF16, {1, 10, 2, 8});
  const OpWork full = count(Attention{}, {q, kv, kv}, {q});
  EXPECT_EQ(full.flops, 2 * 4 * (9 + 10) * (8 + 8));
  EXPECT_THAT(full.read_bytes, ElementsAre(2 * 4 * 8 * 4, 10 * 16 * 2, 10 * 16 * 2));
  const OpWork windowed = count(Attention{.window = 4}, {q, kv, kv}, {q});
  EXPECT_EQ(windowed.flops, 2 * 4 * (4 + 4) * (8 + 8));
  EXPECT_EQ(windowed.read_bytes[1], 5 * 16 * 2);
}

TEST(CountWork, TakesTheExpertsThatAreChosen) {
  const OpWork work = count(GroupedMatmul{},
                            {make_view(DType::kF32, {1, 32}), make_view(DType::kMXFP4, {8, 64, 32}),
                             make_view(DType::kI64, {1, 2})},
                            {make_view(DType::kF32, {1, 2, 64})});
  EXPECT_EQ(work.flops, 2 * 2 * 64 * 32);
  EXPECT_EQ(work.read_bytes[1], 2 * 64 * 17);
}

TEST(CountWork, TakesABroadcastElementOnceAndTheStepsOfAFormula) {
  TensorView one = make_view(DType::kF32, {4, 8});
  one.strides[0] = 0;
  const OpWork work =
      count(Add{}, {make_view(DType::kF32, {4, 8}), one}, {make_view(DType::kF32, {4, 8})});
  EXPECT_EQ(work.flops, 32);
  EXPECT_THAT(work.read_bytes, ElementsAre(128, 32));
}

}  // namespace
}  // namespace rlx
