#include "passes/eliminate_views.h"

#include "passes/pass_testing.h"

namespace rlx {
namespace {

void expect(std::string_view before, std::string_view after) {
  expect_changed_in_frame(eliminate_views, before, after);
}
void expect_same(std::string_view body) { expect_unchanged_in_frame(eliminate_views, body); }

TEST(EliminateViews, CancelsTransposesAndJoinsReshapes) {
  expect_changed(eliminate_views,
                 R"(graph "g" {
  %x = input "x" : f32[2, 3, 4]
  %a = transpose(%x) permutation=[1, 0, 2] : f32[3, 2, 4]
  %b = transpose(%a) permutation=[1, 0, 2] : f32[2, 3, 4]
  %c = reshape(%b) shape=[6, 4] : f32[6, 4]
  %y = reshape(%c) shape=[24] : f32[24]
  output "y" %y
}
)",
                 R"(graph "g" {
  %x = input "x" : f32[2, 3, 4]
  %y = reshape(%x) shape=[24] : f32[24]
  output "y" %y
}
)");
}

TEST(EliminateViews, DropsViewsThatChangeNothing) {
  expect(R"(  %0 = reshape(%x) shape=[2, 4] : f32[2, 4]
  %1 = transpose(%0) permutation=[0, 1] : f32[2, 4]
  %2 = broadcast(%1) shape=[2, 4] : f32[2, 4]
  %3 = slice(%2) starts=[0, 0] sizes=[2, 4] : f32[2, 4]
  %4 = copy(%3) : f32[2, 4]
  %5 = cast(%4) : f32[2, 4]
  %y = neg(%5) : f32[2, 4]
)",
         R"(  %y = neg(%x) : f32[2, 4]
)");
}

TEST(EliminateViews, KeepsViewsThatChangeSomething) {
  expect_same(R"(  %0 = reshape(%x) shape=[4, 2] : f32[4, 2]
  %1 = transpose(%0) : f32[2, 4]
  %2 = reshape(%1) shape=[1, 8] : f32[1, 8]
  %3 = broadcast(%2) shape=[3, 8] : f32[3, 8]
  %4 = slice(%3) starts=[0, 1] sizes=[3, 2] steps=[1, 3] : f32[3, 2]
  %y = cast(%4) dtype=f16 : f16[3, 2]
)");
}

TEST(EliminateViews, ComposesTransposes) {
  expect_changed(eliminate_views,
                 R"(graph "g" {
  %x = input "x" : f32[2, 3, 4]
  %0 = transpose(%x) permutation=[2, 0, 1] : f32[4, 2, 3]
  %y = transpose(%0) permutation=[2, 1, 0] : f32[3, 2, 4]
  output "y" %y
}
)",
                 R"(graph "g" {
  %x = input "x" : f32[2, 3, 4]
  %y = transpose(%x) permutation=[1, 0, 2] : f32[3, 2, 4]
  output "y" %y
}
)");
}

TEST(EliminateViews, TakesATransposeOfExtentsOfOneForAReshape) {
  expect_changed(eliminate_views,
                 R"(graph "g" {
  %x = input "x" : f32[1, 1, 12]
  %0 = reshape(%x) shape=[1, 1, 3, 4] : f32[1, 1, 3, 4]
  %1 = transpose(%0) permutation=[0, 2, 1, 3] : f32[1, 3, 1, 4]
  %y = reshape(%1) shape=[3, 4] : f32[3, 4]
  output "y" %y
}
)",
                 R"(graph "g" {
  %x = input "x" : f32[1, 1, 12]
  %y = reshape(%x) shape=[3, 4] : f32[3, 4]
  output "y" %y
}
)");
}

TEST(EliminateViews, JoinsSlicesAndBroadcasts) {
  expect_changed(eliminate_views,
                 R"(graph "g" {
  %x = input "x" : f32[20]
  %0 = slice(%x) starts=[2] sizes=[8] steps=[2] : f32[8]
  %1 = slice(%0) starts=[1] sizes=[3] steps=[2] : f32[3]
  %2 = broadcast(%1) shape=[2, 3] : f32[2, 3]
  %y = broadcast(%2) shape=[5, 2, 3] : f32[5, 2, 3]
  output "y" %y
}
)",
                 R"(graph "g" {
  %x = input "x" : f32[20]
  %0 = slice(%x) starts=[4] sizes=[3] steps=[4] : f32[3]
  %y = broadcast(%0) shape=[5, 2, 3] : f32[5, 2, 3]
  output "y" %y
}
)");
}

TEST(EliminateViews, LeavesABroadcastToTheOpThatDoesItAnyway) {
  expect(R"(  %0 = broadcast(%w) shape=[2, 4] : f32[2, 4]
  %y = mul(%x, %0) : f32[2, 4]
)",
         R"(  %y = mul(%x, %w) : f32[2, 4]
)");
}

TEST(EliminateViews, KeepsABroadcastThatGivesTheShape) {
  expect_same(R"(  %0 = broadcast(%w) shape=[2, 4] : f32[2, 4]
  %y = mul(%0, %w) : f32[2, 4]
)");
}

TEST(EliminateViews, DropsOnlyOneOfTwoBroadcasts) {
  expect(R"(  %0 = broadcast(%w) shape=[2, 4] : f32[2, 4]
  %y = mul(%0, %0) : f32[2, 4]
)",
         R"(  %0 = broadcast(%w) shape=[2, 4] : f32[2, 4]
  %y = mul(%w, %0) : f32[2, 4]
)");
}

TEST(EliminateViews, TurnsMatmulInsteadOfItsOperand) {
  expect(R"(  %0 = transpose(%z) : f32[4, 2]
  %y = matmul(%x, %0) : f32[2, 2]
)",
         R"(  %y = matmul(%x, %z) transpose_b=true : f32[2, 2]
)");
}

TEST(EliminateViews, KeepsTheOperandWhereTheTargetDoesNotClaimTheTurnedMatmul) {
  PassContext context;
  context.claims = [](const Op& op, std::span<const TensorType>, const SymbolTable&) {
    return print_attributes(op) != "transpose_b=true";
  };
  expect_unchanged_in_frame(eliminate_views, R"(  %0 = transpose(%z) : f32[4, 2]
  %y = matmul(%x, %0) : f32[2, 2]
)",
                            context);
}

TEST(EliminateViews, KeepsTheCopyOfAStateThatIsWrittenLater) {
  expect_unchanged(eliminate_views, R"(graph "g" {
  %u = input "u" : f32[1, 1, 4]
  %s = state "s" : f32[1, 8, 4]
  %0 = copy(%s) : f32[1, 8, 4]
  %1 = cache_append(%s, %u) : f32[1, 1, 4]
  output "before" %0
  output "after" %1
}
)");
}

TEST(EliminateViews, JoinsViewsOfAStateAfterItsLastWrite) {
  expect_changed(eliminate_views,
                 R"(graph "g" (past <= 7) {
  %u = input "u" : f32[1, 1, 4]
  %s = state "s" : f32[1, 8, 4]
  %0 = cache_append(%s, %u) row=(past) : f32[1, past + 1, 4]
  %1 = transpose(%0) permutation=[1, 0, 2] : f32[past + 1, 1, 4]
  %2 = transpose(%1) permutation=[1, 0, 2] : f32[1, past + 1, 4]
  %y = reduce_sum(%2) : f32[]
  output "y" %y
}
)",
                 R"(graph "g" (past <= 7) {
  %u = input "u" : f32[1, 1, 4]
  %s = state "s" : f32[1, 8, 4]
  %0 = cache_append(%s, %u) row=(past) : f32[1, past + 1, 4]
  %y = reduce_sum(%0) : f32[]
  output "y" %y
}
)");
}

TEST(EliminateViews, JoinsSymbolicReshapes) {
  expect_changed(eliminate_views,
                 R"(graph "g" (tokens <= 8) {
  %x = input "x" : f32[1, tokens, 12]
  %0 = reshape(%x) shape=[1, tokens, 3, 4] : f32[1, tokens, 3, 4]
  %1 = reshape(%0) shape=[tokens, 12] : f32[tokens, 12]
  %y = reshape(%1) shape=[1, tokens, 12] : f32[1, tokens, 12]
  output "y" %y
}
)",
                 R"(graph "g" (tokens <= 8) {
  %x = input "x" : f32[1, tokens, 12]
  output "y" %x
}
)");
}

}  // namespace
}  // namespace rlx
