#include "ops/infer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/attention.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/move.h"
#include "ops/reduce.h"
#include "ops/registry.h"
#include "ops/view.h"

namespace rlx {
namespace {

SymbolTable make_symbols() {
  SymbolTable symbols;
  symbols.declare({"tokens", 1, 512});
  symbols.declare({"past", 0, 4096});
  return symbols;
}

// The inferred types, printed and joined, or the error.
std::string infer(const Op& op, std::vector<std::string_view> inputs) {
  std::vector<TensorType> types;
  for (std::string_view input : inputs) types.push_back(parse_tensor_type(input));
  try {
    std::string text;
    for (const TensorType& type : op.infer(types, make_symbols())) {
      text += (text.empty() ? "" : ", ") + to_string(type);
    }
    return text;
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(Infer, JoinsSymbolicExtents) {
  EXPECT_EQ(infer(Concat{.axis = 1}, {"f32[1, past, 8]", "f32[1, tokens, 8]"}),
            "f32[1, past + tokens, 8]");
}

TEST(Infer, FindsTheOpenExtentOfAReshape) {
  const Dim tokens = Dim::symbol("tokens"), past = Dim::symbol("past");
  EXPECT_EQ(infer(Reshape{.shape = {-1, 64}}, {"f32[1, tokens, 4, 64]"}), "f32[4 * tokens, 64]");
  EXPECT_EQ(infer(Reshape{.shape = {tokens, -1}}, {"f32[2, tokens, 8]"}), "f32[tokens, 16]");
  EXPECT_EQ(infer(Reshape{.shape = {past + tokens, 8, -1}}, {"f32[2, past + tokens, 16]"}),
            "f32[past + tokens, 8, 4]");
  EXPECT_EQ(infer(Reshape{.shape = {-1}}, {"f32[]"}), "f32[1]");
  EXPECT_EQ(infer(Reshape{.shape = {3, -1}}, {"f32[tokens, 4]"}),
            "op 'reshape': f32[tokens, 4] does not reshape to [3, -1]: its 4 * tokens elements do "
            "not divide by the other extents.");
}

TEST(Infer, ChecksASliceAgainstTheBoundsOfTheSymbols) {
  const Dim tokens = Dim::symbol("tokens"), past = Dim::symbol("past");
  EXPECT_EQ(infer(Slice{.starts = {tokens - 1}, .sizes = {1}}, {"f32[tokens]"}), "f32[1]");
  EXPECT_EQ(infer(Slice{.starts = {past}, .sizes = {tokens}}, {"f32[past + tokens]"}),
            "f32[tokens]");
  EXPECT_EQ(infer(Slice{.starts = {past}, .sizes = {tokens}}, {"f32[4608]"}), "f32[tokens]");
  EXPECT_EQ(infer(Slice{.starts = {tokens}, .sizes = {1}}, {"f32[tokens]"}),
            "op 'slice': The slice from tokens of 1 elements by step 1 may lie outside axis 0 of "
            "f32[tokens], within the bounds of the symbols.");
}

TEST(Infer, StretchesOnlyExtentsOfOne) {
  EXPECT_EQ(infer(Add{}, {"f32[1, tokens, 8]", "f32[8]"}), "f32[1, tokens, 8]");
  EXPECT_EQ(infer(Add{}, {"f32[1, 8]", "f32[tokens, 1]"}), "f32[tokens, 8]");
  EXPECT_EQ(
      infer(Add{}, {"f32[tokens]", "f32[past]"}),
      "op 'add': The shapes [tokens] and [past] do not broadcast: the extents tokens and past "
      "differ and neither is 1.");
}

TEST(Infer, KeepsTheActivationsDtypeInAProduct) {
  const Matmul op{.transpose_b = true};
  EXPECT_EQ(infer(op, {"f32[2, tokens, 64]", "q4_k[256, 64]"}), "f32[2, tokens, 256]");
  EXPECT_EQ(infer(op, {"bf16[tokens, 64]", "f32[256, 64]"}), "bf16[tokens, 256]");
}

TEST(Infer, DecodesAPackedTable) {
  EXPECT_EQ(infer(Gather{}, {"q8_0[1000, 64]", "i64[1, tokens]"}), "f32[1, tokens, 64]");
}

TEST(Infer, GrowsTheCacheByTheUpdate) {
  EXPECT_EQ(infer(CacheAppend{.row = Dim::symbol("past")},
                  {"f16[1, 4096, 2, 64]", "f32[1, tokens, 2, 64]"}),
            "f16[1, past + tokens, 2, 64]");
}

TEST(Infer, RefusesMoreDimensionsThanSupported) {
  EXPECT_THAT(infer(Gather{}, {"f32[2, 2, 2, 2, 2]", "i64[2, 2, 2, 2, 2]"}),
              testing::HasSubstr("has 9 dimensions, but at most 8 are supported"));
}

TEST(Registry, FindsOpsByNameAndNamesNoneTwice) {
  const OpRegistry& ops = all_ops();
  for (const OpKind* kind : ops.kinds()) EXPECT_EQ(ops.find(kind->name), kind) << kind->name;
  EXPECT_EQ(ops.find("softmax")->meaning, Meaning::kDecompose);
  EXPECT_EQ(ops.find("soft_max"), nullptr);
}

TEST(Registry, GivesEveryOpSamplesAndBadSamples) {
  for (const OpKind* kind : all_ops().kinds()) {
    ASSERT_NE(kind->samples, nullptr) << kind->name;
    ASSERT_NE(kind->bad_samples, nullptr) << kind->name;
    EXPECT_GE(kind->samples().size(), 2u) << kind->name;
    EXPECT_GE(kind->bad_samples().size(), 1u) << kind->name;
  }
}

}  // namespace
}  // namespace rlx
