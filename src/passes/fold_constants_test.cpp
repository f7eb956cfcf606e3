#include "passes/fold_constants.h"

#include "passes/pass_testing.h"

namespace rlx {
namespace {

TEST(FoldConstants, ComputesAProductOfConstants) {
  expect_changed(fold_constants,
                 R"(graph "g" {
  %x = input "x" : f32[2]
  %a = constant [1, 2] : f32[2]
  %b = constant [0.5] : f32[]
  %c = mul(%a, %b) : f32[2]
  %y = add(%x, %c) : f32[2]
  output "y" %y
}
)",
                 R"(graph "g" {
  %x = input "x" : f32[2]
  %c = constant [0.5, 1] : f32[2]
  %y = add(%x, %c) : f32[2]
  output "y" %y
}
)");
}

TEST(FoldConstants, FoldsAChainAndRoundsToTheDtype) {
  expect_changed(fold_constants,
                 R"(graph "g" {
  %a = constant [1] : f16[]
  %b = constant [3] : f16[]
  %c = div(%a, %b) : f16[]
  %y = cast(%c) : f32[]
  output "y" %y
}
)",
                 R"(graph "g" {
  %y = constant [0.33325195] : f32[]
  output "y" %y
}
)");
}

TEST(FoldConstants, FoldsAnIotaOfConstantExtents) {
  expect_changed(fold_constants,
                 R"(graph "g" {
  %y = iota() shape=[4] start=2 step=3 : i64[4]
  output "y" %y
}
)",
                 R"(graph "g" {
  %y = constant [2, 5, 8, 11] : i64[4]
  output "y" %y
}
)");
}

TEST(FoldConstants, FoldsEveryOutputOfANode) {
  expect_changed(fold_constants,
                 R"(graph "g" {
  %a = constant [1, 4, 3] : f32[3]
  %v, %i = top_k(%a) k=2 : f32[2], i64[2]
  output "v" %v
  output "i" %i
}
)",
                 R"(graph "g" {
  %v = constant [4, 3] : f32[2]
  %i = constant [1, 2] : i64[2]
  output "v" %v
  output "i" %i
}
)");
}

TEST(FoldConstants, LeavesSharedConstantAlone) {
  // The transposed constant would lie in memory beside the plain one.
  expect_unchanged(fold_constants, R"(graph "g" {
  %x = input "x" : f32[2, 3]
  %a = constant [1, 2, 3, 4, 5, 6] : f32[2, 3]
  %0 = transpose(%a) : f32[3, 2]
  %1 = matmul(%x, %0) : f32[2, 2]
  %2 = add(%x, %a) : f32[2, 3]
  output "p" %1
  output "s" %2
}
)");
}

TEST(FoldConstants, KeepsAConstantThatAnotherNodeUses) {
  expect_changed(fold_constants,
                 R"(graph "g" {
  %x = input "x" : f32[2]
  %a = constant [1, 2] : f32[2]
  %n = neg(%a) : f32[2]
  %0 = mul(%x, %a) : f32[2]
  %y = add(%0, %n) : f32[2]
  output "y" %y
}
)",
                 R"(graph "g" {
  %x = input "x" : f32[2]
  %a = constant [1, 2] : f32[2]
  %n = constant [-1, -2] : f32[2]
  %0 = mul(%x, %a) : f32[2]
  %y = add(%0, %n) : f32[2]
  output "y" %y
}
)");
}

TEST(FoldConstants, LeavesABroadcastOfAConstant) {
  expect_unchanged(fold_constants, R"(graph "g" {
  %a = constant [1] : f32[]
  %y = broadcast(%a) shape=[64, 64] : f32[64, 64]
  output "y" %y
}
)");
}

TEST(FoldConstants, LeavesResultsLargerThanTheLimit) {
  constexpr std::string_view kText = R"(graph "g" {
  %y = iota() shape=[1000] : i64[1000]
  output "y" %y
}
)";
  PassContext context = claim_all();
  context.max_folded_bytes = 7999;
  expect_unchanged(fold_constants, kText, context);
  context.max_folded_bytes = 8000;
  EXPECT_NE(run_pass(fold_constants, kText, context), kText);
}

TEST(FoldConstants, LeavesAnEvaluationThatFailsToTheRun) {
  expect_unchanged(fold_constants, R"(graph "g" {
  %a = constant [1, 2] : f32[2]
  %i = constant [7] : i64[1]
  %y = gather(%a, %i) : f32[1]
  output "y" %y
}
)");
}

TEST(FoldConstants, LeavesSymbolicExtents) {
  expect_unchanged(fold_constants, R"(graph "g" (tokens <= 8) {
  %y = iota() shape=[tokens] : i64[tokens]
  output "y" %y
}
)");
}

TEST(FoldConstants, LeavesWeightsAndInputs) {
  expect_unchanged(fold_constants, R"(graph "g" {
  %x = input "x" : f32[2]
  %w = weight "w" : f32[2]
  %0 = neg(%w) : f32[2]
  %y = add(%x, %0) : f32[2]
  output "y" %y
}
)");
}

}  // namespace
}  // namespace rlx
