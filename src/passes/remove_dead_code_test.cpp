#include "passes/remove_dead_code.h"

#include "passes/pass_testing.h"

namespace rlx {
namespace {

TEST(RemoveDeadCode, RemovesUnusedNodesAndWeightsButKeepsInputs) {
  expect_changed(remove_dead_code,
                 R"(graph "g" {
  %x = input "x" : f32[4]
  %unused = input "unused" : f32[4]
  %w = weight "w" : f32[4]
  %dead = mul(%x, %w) : f32[4]
  %y = neg(%x) : f32[4]
  output "y" %y
}
)",
                 R"(graph "g" {
  %x = input "x" : f32[4]
  %unused = input "unused" : f32[4]
  %y = neg(%x) : f32[4]
  output "y" %y
}
)");
}

TEST(RemoveDeadCode, RemovesAStateThatNothingUses) {
  expect_changed(remove_dead_code,
                 R"(graph "g" {
  %x = input "x" : f32[4]
  %s = state "s" : f32[1, 8, 4]
  %c = constant [1] : f32[]
  output "y" %x
}
)",
                 R"(graph "g" {
  %x = input "x" : f32[4]
  output "y" %x
}
)");
}

TEST(RemoveDeadCode, KeepsAWriteIntoAStateWhoseResultIsUnused) {
  expect_unchanged(remove_dead_code, R"(graph "g" {
  %x = input "x" : f32[1, 2, 4]
  %s = state "s" : f32[1, 8, 4]
  %0 = cache_append(%s, %x) row=3 : f32[1, 5, 4]
  output "y" %x
}
)");
}

TEST(RemoveDeadCode, RemovesAWriteIntoWhatIsNoState) {
  expect_changed(remove_dead_code,
                 R"(graph "g" {
  %x = input "x" : f32[1, 2, 4]
  %c = constant splat 0 : f32[1, 8, 4]
  %0 = cache_append(%c, %x) : f32[1, 2, 4]
  output "y" %x
}
)",
                 R"(graph "g" {
  %x = input "x" : f32[1, 2, 4]
  output "y" %x
}
)");
}

TEST(RemoveDeadCode, KeepsANodeOfWhichOneOutputIsUsed) {
  expect_unchanged(remove_dead_code, R"(graph "g" {
  %x = input "x" : f32[8]
  %0, %1 = top_k(%x) k=2 : f32[2], i64[2]
  output "ids" %1
}
)");
}

TEST(RemoveDeadCode, KeepsAnOutputThatIsAnInput) {
  expect_unchanged(remove_dead_code, R"(graph "g" {
  %x = input "x" : f32[8]
  output "y" %x
  output "again" %x
}
)");
}

}  // namespace
}  // namespace rlx
