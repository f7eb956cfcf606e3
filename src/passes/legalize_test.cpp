#include "passes/legalize.h"

#include <gmock/gmock.h>

#include "passes/pass_testing.h"

namespace rlx {
namespace {

constexpr std::string_view kSoftmax = R"(graph "g" {
  %x = input "x" : f32[2, 3]
  %y = softmax(%x) : f32[2, 3]  @"blk.0.softmax"
  output "y" %y
}
)";

TEST(Legalize, DecomposesWhatTheTargetDoesNotClaim) {
  expect_changed(legalize,
                 R"(graph "g" {
  %x = input "x" : f32[2, 3]
  %y = softmax(%x) : f32[2, 3]
  output "y" %y
}
)",
                 R"(graph "g" {
  %x = input "x" : f32[2, 3]
  %0 = reduce_max(%x) axes=[-1] keep_dims=true : f32[2, 1]
  %1 = sub(%x, %0) : f32[2, 3]
  %2 = exp(%1) : f32[2, 3]
  %3 = reduce_sum(%2) axes=[-1] keep_dims=true : f32[2, 1]
  %y = div(%2, %3) : f32[2, 3]
  output "y" %y
}
)",
                 claim_simple());
}

TEST(Legalize, KeepsWhatTheTargetClaims) { expect_unchanged(legalize, kSoftmax, claim_all()); }

TEST(Legalize, DecomposesUntilEverythingIsClaimed) {
  // add_rms_norm is made of add and rms_norm, and rms_norm of simpler ops.
  const Graph graph = parse_graph(R"(graph "g" {
  %x = input "x" : f32[2, 4]
  %w = weight "w" : f32[4]
  %s, %n = add_rms_norm(%x, %x, %w) : f32[2, 4], f32[2, 4]
  output "s" %s
  output "n" %n
}
)");
  const Graph result = legalize(graph, claim_simple());
  verify(result);
  EXPECT_NO_THROW(check_legal(result, claim_simple()));
  for (const Node& node : result.nodes()) EXPECT_NE(node.op.kind().meaning, Meaning::kDecompose);
}

TEST(Legalize, StopsAtAnOpThatIsClaimedOnTheWay) {
  const Graph graph = parse_graph(R"(graph "g" {
  %x = input "x" : f32[2, 4]
  %w = weight "w" : f32[4]
  %s, %n = add_rms_norm(%x, %x, %w) eps=1e-05 : f32[2, 4], f32[2, 4]
  output "s" %s
  output "n" %n
}
)");
  EXPECT_EQ(to_string(legalize(graph, claim_only({"add", "rms_norm"}))), R"(graph "g" {
  %x = input "x" : f32[2, 4]
  %w = weight "w" : f32[4]
  %s = add(%x, %x) : f32[2, 4]
  %n = rms_norm(%s, %w) eps=1e-05 : f32[2, 4]
  output "s" %s
  output "n" %n
}
)");
}

TEST(Legalize, LeavesAnOpWithoutDecompositionThatIsNotClaimed) {
  expect_unchanged(legalize, R"(graph "g" {
  %x = input "x" : f32[2, 3]
  %y = erf(%x) : f32[2, 3]
  output "y" %y
}
)",
                   claim_only({}));
}

TEST(CheckLegal, AcceptsSourcesAndViewsOnATargetWithoutKernels) {
  EXPECT_NO_THROW(check_legal(parse_graph(R"(graph "g" {
  %x = input "x" : f32[2, 3]
  %y = transpose(%x) : f32[3, 2]
  output "y" %y
}
)"),
                              PassContext{}));
}

TEST(CheckLegal, ListsEveryMissingOpWithSourceAndTypes) {
  const Graph graph = parse_graph(R"(graph "g" {
  %x = input "x" : f32[2, 3]
  %0 = erf(%x) : f32[2, 3]  @"blk.0.act"
  %1 = erf(%0) : f32[2, 3]  @"blk.1.act"
  %2 = neg(%1) : f32[2, 3]
  %y = mul(%2, %x) : f32[2, 3]
  output "y" %y
}
)");
  try {
    check_legal(graph, claim_only({"neg"}));
    FAIL() << "nothing is thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
    EXPECT_THAT(error.what(), testing::HasSubstr("erf(f32[2, 3]) of 'blk.0.act' and 1 more"));
    EXPECT_THAT(error.what(), testing::HasSubstr("mul(f32[2, 3], f32[2, 3])"));
    EXPECT_THAT(error.what(), testing::Not(testing::HasSubstr("neg")));
  }
}

}  // namespace
}  // namespace rlx
