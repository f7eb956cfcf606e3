#include "passes/fuse_elementwise.h"

#include <algorithm>

#include "ops/elementwise.h"
#include "passes/pass_testing.h"

namespace rlx {
namespace {

void expect(std::string_view before, std::string_view after) {
  expect_changed_in_frame(fuse_elementwise, before, after);
}
void expect_same(std::string_view body, const PassContext& context = claim_all()) {
  expect_unchanged_in_frame(fuse_elementwise, body, context);
}

TEST(FuseElementwise, JoinsAChain) {
  expect_changed(fuse_elementwise,
                 R"(graph "g" {
  %x = input "x" : f32[4]
  %z = input "z" : f32[4]
  %0 = exp(%x) : f32[4]
  %1 = mul(%0, %z) : f32[4]
  %y = neg(%1) : f32[4]
  output "y" %y
}
)",
                 R"(graph "g" {
  %x = input "x" : f32[4]
  %z = input "z" : f32[4]
  %y = fused(%x, %z) formula="t0 = exp(i0); t1 = mul(t0, i1); t2 = neg(t1); t2" : f32[4]
  output "y" %y
}
)");
}

TEST(FuseElementwise, JoinsADiamondAndReadsALeafOnce) {
  expect(
      R"(  %0 = exp(%x) : f32[2, 4]
  %1 = neg(%0) : f32[2, 4]
  %2 = mul(%0, %x) : f32[2, 4]
  %y = add(%1, %2) : f32[2, 4]
)",
      R"(  %y = fused(%x) formula="t0 = exp(i0); t1 = neg(t0); t2 = mul(t0, i0); t3 = add(t1, t2); t3" : f32[2, 4]
)");
}

TEST(FuseElementwise, WritesScalarsIntoTheFormula) {
  expect(R"(  %c = constant [0.5] : f32[]
  %0 = mul(%x, %c) : f32[2, 4]
  %y = add(%0, %w) : f32[2, 4]
)",
         R"(  %y = fused(%x, %w) formula="t0 = mul(i0, 0.5); t1 = add(t0, i1); t1" : f32[2, 4]
)");
}

TEST(FuseElementwise, JoinsFusedOpsAgain) {
  expect(R"(  %0 = fused(%x, %w) formula="t0 = mul(i0, i1); t0" : f32[2, 4]
  %y = fused(%0, %x) formula="t0 = add(i0, i1); t0" : f32[2, 4]
)",
         R"(  %y = fused(%x, %w) formula="t0 = mul(i0, i1); t1 = add(t0, i0); t1" : f32[2, 4]
)");
}

TEST(FuseElementwise, JoinsComparisonsAndChoices) {
  expect(
      R"(  %0 = less(%x, %z) : bool[2, 4]
  %1 = logical_or(%0, %b) : bool[2, 4]
  %y = select(%1, %x, %w) : f32[2, 4]
)",
      R"(  %y = fused(%x, %z, %b, %w) formula="t0 = less(i0, i1); t1 = logical_or(t0, i2); t2 = select(t1, i0, i3); t2" : f32[2, 4]
)");
}

TEST(FuseElementwise, JoinsIntegersApartFromFloats) {
  expect(
      R"(  %0 = add(%i, %j) : i64[4]
  %1 = less(%0, %j) : bool[4]
  %y = select(%1, %w, %w) : f32[4]
)",
      R"(  %0 = fused(%i, %j) formula="t0 = add(i0, i1); t1 = less(t0, i1); t1" dtype=bool : bool[4]
  %y = select(%0, %w, %w) : f32[4]
)");
}

TEST(FuseElementwise, JoinsACastFromF16) {
  expect_changed(fuse_elementwise,
                 R"(graph "g" {
  %x = input "x" : f16[4]
  %z = input "z" : f32[4]
  %0 = cast(%x) : f32[4]
  %y = mul(%0, %z) : f32[4]
  output "y" %y
}
)",
                 R"(graph "g" {
  %x = input "x" : f16[4]
  %z = input "z" : f32[4]
  %y = fused(%x, %z) formula="t0 = mul(i0, i1); t0" : f32[4]
  output "y" %y
}
)");
}

TEST(FuseElementwise, KeepsF16WhichRoundsBetween) {
  expect_unchanged(fuse_elementwise, R"(graph "g" {
  %x = input "x" : f16[4]
  %0 = exp(%x) : f16[4]
  %1 = neg(%0) : f16[4]
  output "y" %1
}
)");
}

TEST(FuseElementwise, KeepsACastThatRounds) {
  expect_same(R"(  %0 = cast(%x) dtype=f16 : f16[2, 4]
  %y = cast(%0) : f32[2, 4]
)");
}

TEST(FuseElementwise, KeepsASingleNode) {
  expect_same(R"(  %y = add(%x, %z) : f32[2, 4]
)");
}

TEST(FuseElementwise, NeverSwallowsAGraphOutput) {
  expect_unchanged(fuse_elementwise, R"(graph "g" {
  %x = input "x" : f32[4]
  %0 = exp(%x) : f32[4]
  %1 = neg(%0) : f32[4]
  output "y" %1
  output "e" %0
}
)");
}

TEST(FuseElementwise, KeepsAProducerThatALaterNodeReads) {
  expect_same(R"(  %0 = exp(%x) : f32[2, 4]
  %1 = neg(%0) : f32[2, 4]
  %2 = reduce_sum(%0) : f32[]
  %y = matmul(%1, %0) transpose_b=true : f32[2, 2]
  output "s" %2
)");
}

TEST(FuseElementwise, KeepsASmallerProducerWhichWouldBeComputedAgain) {
  expect_same(R"(  %0 = exp(%w) : f32[4]
  %y = mul(%x, %0) : f32[2, 4]
)");
}

TEST(FuseElementwise, KeepsWhatTheTargetDoesNotClaim) {
  expect_same(R"(  %0 = exp(%x) : f32[2, 4]
  %y = neg(%0) : f32[2, 4]
)",
              claim_simple());
}

TEST(FuseElementwise, KeepsTheReadOfAStateBeforeItIsWritten) {
  expect_unchanged(fuse_elementwise, R"(graph "g" {
  %u = input "u" : f32[1, 4]
  %s = state "s" : f32[8, 4]
  %0 = exp(%s) : f32[8, 4]
  %1 = cache_append(%s, %u) row=7 axis=0 : f32[8, 4]
  %2 = neg(%0) : f32[8, 4]
  output "y" %2
  output "z" %1
}
)");
}

// A sum of `count` inputs, one after another.
std::string sum_of_inputs(int count) {
  std::string text = "graph \"g\" {\n";
  for (int i = 0; i < count; ++i) text += fmt::format("  %x{} = input \"x{}\" : f32[4]\n", i, i);
  for (int i = 1; i < count; ++i) {
    text += fmt::format("  %s{} = add(%{}, %x{}) : f32[4]\n", i,
                        i == 1 ? std::string("x0") : fmt::format("s{}", i - 1), i);
  }
  return text + fmt::format("  output \"y\" %s{}\n}}\n", count - 1);
}

int count_ops(const Graph& graph, std::string_view name) {
  return static_cast<int>(
      std::ranges::count_if(graph.nodes(), [&](const Node& n) { return n.op.name() == name; }));
}

TEST(FuseElementwise, StopsAtTheMostInputsWithoutLosingAny) {
  const Graph graph = fuse_elementwise(parse_graph(sum_of_inputs(20)), claim_all());
  verify(graph);
  EXPECT_EQ(count_ops(graph, "fused"), 2);
  EXPECT_EQ(count_ops(graph, "add"), 0);
  for (const Node& node : graph.nodes()) {
    EXPECT_LE(node.inputs.size(), static_cast<size_t>(kMaxFusedInputs));
  }
  EXPECT_EQ(count_ops(fuse_elementwise(parse_graph(sum_of_inputs(12)), claim_all()), "fused"), 1);
}

TEST(FuseElementwise, StopsAtTheMostStepsWithoutLosingAny) {
  std::string text = "graph \"g\" {\n  %s0 = input \"x\" : f32[4]\n";
  for (int i = 1; i <= 150; ++i) text += fmt::format("  %s{} = exp(%s{}) : f32[4]\n", i, i - 1);
  const Graph graph =
      fuse_elementwise(parse_graph(text + "  output \"y\" %s150\n}\n"), claim_all());
  verify(graph);
  EXPECT_EQ(count_ops(graph, "exp"), 0);
  int steps = 0;
  for (const Node& node : graph.nodes()) {
    const Fused* fused = node.op.as<Fused>();
    if (fused == nullptr) continue;
    EXPECT_LE(fused->formula.steps().size(), static_cast<size_t>(kMaxFusedSteps));
    steps += static_cast<int>(fused->formula.steps().size()) - 1;  // less the input
  }
  EXPECT_EQ(steps, 150);
}

TEST(FuseElementwise, FindsNothingMoreInItsOwnResult) {
  const Graph once = fuse_elementwise(parse_graph(sum_of_inputs(40)), claim_all());
  EXPECT_EQ(to_string(fuse_elementwise(once, claim_all())), to_string(once));
}

}  // namespace
}  // namespace rlx
