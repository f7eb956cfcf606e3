// The layouts of views on inputs that are views themselves.
#include <gtest/gtest.h>

#include <optional>

#include "ops/view.h"

namespace rlx {
namespace {

// The layout of the op on an input of this shape and layout: "offset [strides]", or "none".
std::string layout_of(const Op& op, const Shape& shape, const Layout& layout) {
  SymbolTable symbols;
  symbols.declare({"tokens", 1, 512});
  const TensorType input{DType::kF32, shape};
  const TensorType output = op.infer(std::span(&input, 1), symbols)[0];
  const std::optional<Layout> result = op.kind().layout(op.attributes(), {input, layout, output});
  if (!result) return "none";
  return to_string(result->offset) + " " + to_string(result->strides);
}

TEST(ViewLayout, ReshapeSplitsAndJoinsContiguousAxes) {
  EXPECT_EQ(layout_of(Reshape{.shape = {2, 12}}, {2, 3, 4}, {5, {12, 4, 1}}), "5 [12, 1]");
  EXPECT_EQ(layout_of(Reshape{.shape = {24}}, {2, 3, 4}, {0, {12, 4, 1}}), "0 [1]");
}

TEST(ViewLayout, ReshapeSplitsAnAxisOfATransposedInput) {
  // [4, 6] read from [6, 4]: the axes do not join, but each one splits.
  EXPECT_EQ(layout_of(Reshape{.shape = {2, 2, 3, 2}}, {4, 6}, {0, {1, 4}}), "0 [2, 1, 8, 4]");
  EXPECT_EQ(layout_of(Reshape{.shape = {24}}, {4, 6}, {0, {1, 4}}), "none");
  EXPECT_EQ(layout_of(Reshape{.shape = {2, 12}}, {4, 6}, {0, {1, 4}}), "none");
}

TEST(ViewLayout, ReshapeOfASlicedInputKeepsTheGap) {
  // 8 of 16 columns: rows lie 16 apart.
  EXPECT_EQ(layout_of(Reshape{.shape = {3, 2, 4}}, {3, 8}, {4, {16, 1}}), "4 [16, 4, 1]");
  EXPECT_EQ(layout_of(Reshape{.shape = {24}}, {3, 8}, {4, {16, 1}}), "none");
}

TEST(ViewLayout, ReshapePutsInAndTakesOutExtentsOfOne) {
  EXPECT_EQ(layout_of(Reshape{.shape = {4, 6}}, {4, 1, 6}, {0, {1, 99, 4}}), "0 [1, 4]");
  EXPECT_EQ(layout_of(Reshape{.shape = {1, 4, 1, 6, 1}}, {4, 6}, {0, {1, 4}}),
            "0 [4, 1, 24, 4, 4]");
}

TEST(ViewLayout, ReshapeWorksOnSymbolicExtents) {
  const Dim tokens = Dim::symbol("tokens");
  // Heads of a sliced projection: [tokens, 512 of 768] to [tokens, 8, 64].
  EXPECT_EQ(layout_of(Reshape{.shape = {tokens, 8, 64}}, {tokens, 512}, {256, {768, 1}}),
            "256 [768, 64, 1]");
  // [tokens, 2, 4] read from [2, tokens, 4].
  const Layout swapped{0, {4, tokens * 4, 1}};
  EXPECT_EQ(layout_of(Reshape{.shape = {tokens, 2, 2, 2}}, {tokens, 2, 4}, swapped),
            "0 [4, 4 * tokens, 2, 1]");
  EXPECT_EQ(layout_of(Reshape{.shape = {tokens, 8}}, {tokens, 2, 4}, swapped), "none");
}

TEST(ViewLayout, TransposeSliceAndBroadcastComposeWithStrides) {
  EXPECT_EQ(layout_of(Transpose{.permutation = {1, 0}}, {3, 8}, {4, {16, 1}}), "4 [1, 16]");
  EXPECT_EQ(
      layout_of(Slice{.starts = {1, 2}, .sizes = {2, 3}, .steps = {1, 2}}, {3, 8}, {4, {16, 1}}),
      "22 [16, 2]");
  EXPECT_EQ(layout_of(Broadcast{.shape = {5, 3, 8}}, {3, 1}, {4, {16, 1}}), "4 [0, 16, 0]");
}

}  // namespace
}  // namespace rlx
