#include "passes/fuse_attention.h"

#include "passes/eliminate_views.h"
#include "passes/pass_testing.h"

namespace rlx {
namespace {

std::string with(std::string text, std::string_view from, std::string_view to) {
  const size_t place = text.find(from);
  EXPECT_NE(place, std::string::npos) << from;
  if (place != std::string::npos) text.replace(place, from.size(), to);
  return text;
}

Graph fuse_and_clean(const Graph& graph, const PassContext& context) {
  return eliminate_views(fuse_attention(graph, context), context);
}

const std::string kSpelled = R"(graph "g" {
  %q = input "q" : f32[1, 2, 3, 8]
  %k = input "k" : f32[1, 2, 5, 8]
  %v = input "v" : f32[1, 2, 5, 8]
  %scale = constant [0.5] : f32[]
  %0 = matmul(%q, %k) transpose_b=true : f32[1, 2, 3, 5]
  %1 = mul(%0, %scale) : f32[1, 2, 3, 5]
  %2 = softmax(%1) : f32[1, 2, 3, 5]
  %y = matmul(%2, %v) : f32[1, 2, 3, 8]
  output "y" %y
}
)";

TEST(FuseAttention, WritesSoftmaxOfScoresAsAttention) {
  expect_changed(fuse_attention, kSpelled, R"(graph "g" {
  %q = input "q" : f32[1, 2, 3, 8]
  %k = input "k" : f32[1, 2, 5, 8]
  %v = input "v" : f32[1, 2, 5, 8]
  %0 = transpose(%q) permutation=[0, 2, 1, 3] : f32[1, 3, 2, 8]
  %1 = transpose(%k) permutation=[0, 2, 1, 3] : f32[1, 5, 2, 8]
  %2 = transpose(%v) permutation=[0, 2, 1, 3] : f32[1, 5, 2, 8]
  %3 = attention(%0, %1, %2) scale=0.5 causal=false : f32[1, 3, 2, 8]
  %y = transpose(%3) permutation=[0, 2, 1, 3] : f32[1, 2, 3, 8]
  output "y" %y
}
)");
}

TEST(FuseAttention, CancelsTheTransposesOfTheModel) {
  expect_changed(fuse_and_clean,
                 R"(graph "g" (tokens <= 16) {
  %q = input "q" : f32[1, tokens, 2, 8]
  %k = input "k" : f32[1, tokens, 2, 8]
  %v = input "v" : f32[1, tokens, 2, 8]
  %mask = input "mask" : f32[tokens, tokens]
  %four = constant [4] : f32[]
  %0 = transpose(%q) permutation=[0, 2, 1, 3] : f32[1, 2, tokens, 8]
  %1 = transpose(%k) permutation=[0, 2, 3, 1] : f32[1, 2, 8, tokens]
  %2 = transpose(%v) permutation=[0, 2, 1, 3] : f32[1, 2, tokens, 8]
  %3 = matmul(%0, %1) : f32[1, 2, tokens, tokens]
  %4 = div(%3, %four) : f32[1, 2, tokens, tokens]
  %5 = add(%4, %mask) : f32[1, 2, tokens, tokens]
  %6 = softmax(%5) axis=3 : f32[1, 2, tokens, tokens]
  %7 = matmul(%6, %2) : f32[1, 2, tokens, 8]
  %y = transpose(%7) permutation=[0, 2, 1, 3] : f32[1, tokens, 2, 8]
  output "y" %y
}
)",
                 R"(graph "g" (tokens <= 16) {
  %q = input "q" : f32[1, tokens, 2, 8]
  %k = input "k" : f32[1, tokens, 2, 8]
  %v = input "v" : f32[1, tokens, 2, 8]
  %mask = input "mask" : f32[tokens, tokens]
  %y = attention(%q, %k, %v, %mask) scale=0.25 causal=false mask=true : f32[1, tokens, 2, 8]
  output "y" %y
}
)");
}

TEST(FuseAttention, PassesRepeatedHeadsOnceAndTakesABoolMask) {
  expect_changed(fuse_and_clean,
                 R"(graph "g" {
  %q = input "q" : f32[1, 4, 3, 8]
  %k = input "k" : f32[1, 2, 5, 8]
  %v = input "v" : f32[1, 2, 5, 8]
  %mask = input "mask" : bool[3, 5]
  %inf = constant [-inf] : f32[]
  %0 = reshape(%k) shape=[1, 2, 1, 5, 8] : f32[1, 2, 1, 5, 8]
  %1 = broadcast(%0) shape=[1, 2, 2, 5, 8] : f32[1, 2, 2, 5, 8]
  %2 = reshape(%1) shape=[1, 4, 5, 8] : f32[1, 4, 5, 8]
  %3 = reshape(%v) shape=[1, 2, 1, 5, 8] : f32[1, 2, 1, 5, 8]
  %4 = broadcast(%3) shape=[1, 2, 2, 5, 8] : f32[1, 2, 2, 5, 8]
  %5 = reshape(%4) shape=[1, 4, 5, 8] : f32[1, 4, 5, 8]
  %6 = matmul(%q, %2) transpose_b=true : f32[1, 4, 3, 5]
  %7 = select(%mask, %6, %inf) : f32[1, 4, 3, 5]
  %8 = softmax(%7) : f32[1, 4, 3, 5]
  %y = matmul(%8, %5) : f32[1, 4, 3, 8]
  output "y" %y
}
)",
                 R"(graph "g" {
  %q = input "q" : f32[1, 4, 3, 8]
  %k = input "k" : f32[1, 2, 5, 8]
  %v = input "v" : f32[1, 2, 5, 8]
  %mask = input "mask" : bool[3, 5]
  %0 = transpose(%q) permutation=[0, 2, 1, 3] : f32[1, 3, 4, 8]
  %1 = transpose(%k) permutation=[0, 2, 1, 3] : f32[1, 5, 2, 8]
  %2 = transpose(%v) permutation=[0, 2, 1, 3] : f32[1, 5, 2, 8]
  %3 = attention(%0, %1, %2, %mask) scale=1 causal=false mask=true : f32[1, 3, 4, 8]
  %y = transpose(%3) permutation=[0, 2, 1, 3] : f32[1, 4, 3, 8]
  output "y" %y
}
)");
}

TEST(FuseAttention, SeesThroughASoftmaxInF32) {
  expect_changed(fuse_and_clean,
                 R"(graph "g" {
  %q = input "q" : f16[1, 3, 2, 8]
  %0 = transpose(%q) permutation=[0, 2, 1, 3] : f16[1, 2, 3, 8]
  %1 = matmul(%0, %0) transpose_b=true : f16[1, 2, 3, 3]
  %2 = cast(%1) : f32[1, 2, 3, 3]
  %3 = softmax(%2) : f32[1, 2, 3, 3]
  %4 = cast(%3) dtype=f16 : f16[1, 2, 3, 3]
  %5 = matmul(%4, %0) : f16[1, 2, 3, 8]
  %y = transpose(%5) permutation=[0, 2, 1, 3] : f16[1, 3, 2, 8]
  output "y" %y
}
)",
                 R"(graph "g" {
  %q = input "q" : f16[1, 3, 2, 8]
  %y = attention(%q, %q, %q) scale=1 causal=false : f16[1, 3, 2, 8]
  output "y" %y
}
)");
}

TEST(FuseAttention, KeepsASoftmaxOverAnotherAxis) {
  expect_unchanged(fuse_attention, with(kSpelled, "softmax(%1)", "softmax(%1) axis=2"));
}

TEST(FuseAttention, KeepsProbabilitiesThatAreAnOutput) {
  expect_unchanged(fuse_attention,
                   with(kSpelled, "  output \"y\" %y\n", "  output \"y\" %y\n  output \"p\" %2\n"));
}

TEST(FuseAttention, KeepsScoresScaledByATensor) {
  std::string text = with(kSpelled, "constant [0.5] : f32[]", "constant [1, 2, 3, 4, 5] : f32[5]");
  expect_unchanged(fuse_attention, text);
}

TEST(FuseAttention, KeepsWhatTheTargetDoesNotClaim) {
  expect_unchanged(fuse_attention, kSpelled, claim_simple());
}

TEST(FuseAttention, KeepsAFiniteFillWhichIsNoMask) {
  expect_unchanged(fuse_attention, R"(graph "g" {
  %q = input "q" : f32[1, 2, 3, 8]
  %mask = input "mask" : bool[3, 3]
  %c = constant [-1] : f32[]
  %0 = matmul(%q, %q) transpose_b=true : f32[1, 2, 3, 3]
  %1 = select(%mask, %0, %c) : f32[1, 2, 3, 3]
  %2 = softmax(%1) : f32[1, 2, 3, 3]
  %y = matmul(%2, %q) : f32[1, 2, 3, 8]
  output "y" %y
}
)");
}

TEST(FuseAttention, KeepsBatchesThatAreStretched) {
  expect_unchanged(fuse_attention, R"(graph "g" {
  %q = input "q" : f32[4, 2, 3, 8]
  %k = input "k" : f32[1, 2, 5, 8]
  %0 = matmul(%q, %k) transpose_b=true : f32[4, 2, 3, 5]
  %1 = softmax(%0) : f32[4, 2, 3, 5]
  %y = matmul(%1, %k) : f32[4, 2, 3, 8]
  output "y" %y
}
)");
}

}  // namespace
}  // namespace rlx
