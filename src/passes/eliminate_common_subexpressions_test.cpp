#include "passes/eliminate_common_subexpressions.h"

#include "passes/pass_testing.h"

namespace rlx {
namespace {

TEST(EliminateCommonSubexpressions, MergesEqualNodes) {
  expect_changed(eliminate_common_subexpressions,
                 R"(graph "g" {
  %x = input "x" : f32[4]
  %a = exp(%x) : f32[4]
  %b = exp(%x) : f32[4]
  %y = add(%a, %b) : f32[4]
  output "y" %y
}
)",
                 R"(graph "g" {
  %x = input "x" : f32[4]
  %a = exp(%x) : f32[4]
  %y = add(%a, %a) : f32[4]
  output "y" %y
}
)");
}

TEST(EliminateCommonSubexpressions, MergesChainsAndBothOrdersOfASum) {
  expect_changed_in_frame(eliminate_common_subexpressions,
                          R"(  %0 = add(%x, %w) : f32[2, 4]
  %1 = add(%w, %x) : f32[2, 4]
  %2 = exp(%0) : f32[2, 4]
  %3 = exp(%1) : f32[2, 4]
  %y = sub(%2, %3) : f32[2, 4]
)",
                          R"(  %0 = add(%x, %w) : f32[2, 4]
  %1 = exp(%0) : f32[2, 4]
  %y = sub(%1, %1) : f32[2, 4]
)");
}

TEST(EliminateCommonSubexpressions, MergesEqualConstantsAndWeights) {
  expect_changed(eliminate_common_subexpressions,
                 R"(graph "g" {
  %0 = weight "a" : f32[2]
  %1 = weight "a" : f32[2]
  %2 = constant [1, 2] : f32[2]
  %3 = constant [1, 2] : f32[2]
  %4 = add(%0, %2) : f32[2]
  %5 = sub(%1, %3) : f32[2]
  output "a" %4
  output "b" %5
}
)",
                 R"(graph "g" {
  %0 = weight "a" : f32[2]
  %1 = constant [1, 2] : f32[2]
  %2 = add(%0, %1) : f32[2]
  %3 = sub(%0, %1) : f32[2]
  output "a" %2
  output "b" %3
}
)");
}

TEST(EliminateCommonSubexpressions, KeepsConstantsOfOtherTypesOrBits) {
  expect_unchanged(eliminate_common_subexpressions, R"(graph "g" {
  %0 = constant [0] : f32[]
  %1 = constant [-0] : f32[]
  %2 = constant [0] : i32[]
  %3 = constant [0] : f32[1]
  %4 = weight "a" : f32[2]
  %5 = weight "b" : f32[2]
  output "0" %0
  output "1" %1
  output "2" %2
  output "3" %3
  output "4" %4
  output "5" %5
}
)");
}

TEST(EliminateCommonSubexpressions, KeepsOtherAttributesAndOtherOrders) {
  expect_unchanged(eliminate_common_subexpressions, R"(graph "g" {
  %x = input "x" : f32[2, 4]
  %z = input "z" : f32[2, 4]
  %0 = reduce_sum(%x) axes=[0] : f32[4]
  %1 = reduce_sum(%x) axes=[1] : f32[2]
  %2 = sub(%x, %z) : f32[2, 4]
  %3 = sub(%z, %x) : f32[2, 4]
  output "0" %0
  output "1" %1
  output "2" %2
  output "3" %3
}
)");
}

TEST(EliminateCommonSubexpressions, NeverMergesWritesInPlace) {
  expect_unchanged(eliminate_common_subexpressions, R"(graph "g" {
  %x = input "x" : f32[1, 2, 4]
  %s = state "s" : f32[1, 8, 4]
  %0 = cache_append(%s, %x) row=2 : f32[1, 4, 4]
  %1 = cache_append(%s, %x) row=2 : f32[1, 4, 4]
  output "0" %0
  output "1" %1
}
)");
}

TEST(EliminateCommonSubexpressions, KeepsReadsOfAStateAroundAWrite) {
  expect_unchanged(eliminate_common_subexpressions, R"(graph "g" {
  %x = input "x" : f32[1, 2, 4]
  %s = state "s" : f32[1, 8, 4]
  %0 = reduce_sum(%s) : f32[]
  %1 = cache_append(%s, %x) row=2 : f32[1, 4, 4]
  %2 = reduce_sum(%s) : f32[]
  output "0" %0
  output "1" %1
  output "2" %2
}
)");
}

TEST(EliminateCommonSubexpressions, MergesReadsOfAStateWithoutAWriteBetween) {
  expect_changed(eliminate_common_subexpressions,
                 R"(graph "g" {
  %s = state "s" : f32[1, 8, 4]
  %0 = reduce_sum(%s) : f32[]
  %1 = reduce_sum(%s) : f32[]
  output "0" %0
  output "1" %1
}
)",
                 R"(graph "g" {
  %s = state "s" : f32[1, 8, 4]
  %0 = reduce_sum(%s) : f32[]
  output "0" %0
  output "1" %0
}
)");
}

}  // namespace
}  // namespace rlx
