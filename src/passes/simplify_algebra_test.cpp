#include "passes/simplify_algebra.h"

#include "passes/pass_testing.h"

namespace rlx {
namespace {

void expect(std::string_view before, std::string_view after) {
  expect_changed_in_frame(simplify_algebra, before, after);
}
void expect_same(std::string_view body) { expect_unchanged_in_frame(simplify_algebra, body); }

TEST(SimplifyAlgebra, DropsAFactorOfOneAndTurnsADivisionIntoAProduct) {
  expect_changed(simplify_algebra,
                 R"(graph "g" {
  %x = input "x" : f32[4]
  %one = constant [1] : f32[]
  %four = constant [4] : f32[]
  %a = mul(%x, %one) : f32[4]
  %y = div(%a, %four) : f32[4]
  output "y" %y
}
)",
                 R"(graph "g" {
  %x = input "x" : f32[4]
  %0 = constant [0.25] : f32[]
  %y = mul(%x, %0) : f32[4]
  output "y" %y
}
)");
}

TEST(SimplifyAlgebra, KeepsADivisionByWhatHasNoExactReciprocal) {
  expect_same(R"(  %c = constant [3] : f32[]
  %y = div(%x, %c) : f32[2, 4]
)");
}

TEST(SimplifyAlgebra, DropsTheZerosThatChangeNoBit) {
  expect(R"(  %c = constant [-0] : f32[]
  %0 = add(%c, %x) : f32[2, 4]
  %d = constant splat 0 : f32[4]
  %1 = sub(%0, %d) : f32[2, 4]
  %y = neg(%1) : f32[2, 4]
)",
         R"(  %y = neg(%x) : f32[2, 4]
)");
}

TEST(SimplifyAlgebra, KeepsAFloatPlusZeroSinceMinusZeroChanges) {
  expect_same(R"(  %c = constant [0] : f32[]
  %y = add(%x, %c) : f32[2, 4]
)");
}

TEST(SimplifyAlgebra, KeepsAFloatTimesZeroSinceNaNStays) {
  expect_same(R"(  %c = constant [0] : f32[]
  %y = mul(%x, %c) : f32[2, 4]
)");
}

TEST(SimplifyAlgebra, SimplifiesIntegersByZeroAndOne) {
  expect(R"(  %c = constant [0] : i64[]
  %d = constant [1] : i64[]
  %0 = add(%i, %c) : i64[4]
  %1 = mul(%0, %d) : i64[4]
  %2 = mul(%i, %c) : i64[4]
  %3 = add(%1, %2) : i64[4]
  %y = sub(%j, %3) : i64[4]
)",
         R"(  %y = sub(%j, %i) : i64[4]
)");
}

TEST(SimplifyAlgebra, KeepsANeutralElementThatStretchesTheOtherSide) {
  expect_same(R"(  %c = constant splat 1 : f32[2, 4]
  %y = mul(%w, %c) : f32[2, 4]
)");
}

TEST(SimplifyAlgebra, CollectsIntegerConstants) {
  expect(R"(  %c = constant [3] : i64[]
  %d = constant [5] : i64[]
  %0 = add(%i, %c) : i64[4]
  %1 = sub(%0, %d) : i64[4]
  %2 = mul(%1, %c) : i64[4]
  %y = mul(%d, %2) : i64[4]
)",
         R"(  %0 = constant [-2] : i64[]
  %1 = add(%i, %0) : i64[4]
  %2 = constant [15] : i64[]
  %y = mul(%1, %2) : i64[4]
)");
}

TEST(SimplifyAlgebra, KeepsFloatConstantsApartSinceSumsRound) {
  expect_same(R"(  %c = constant [0.1] : f32[]
  %0 = add(%x, %c) : f32[2, 4]
  %y = add(%0, %c) : f32[2, 4]
)");
}

TEST(SimplifyAlgebra, TurnsASubtractedConstantAround) {
  expect(R"(  %c = constant [0.1, -2, 0, 4] : f32[4]
  %y = sub(%x, %c) : f32[2, 4]
)",
         R"(  %0 = constant [-0.1, 2, -0, -4] : f32[4]
  %y = add(%x, %0) : f32[2, 4]
)");
}

TEST(SimplifyAlgebra, CancelsNegations) {
  expect(R"(  %0 = neg(%x) : f32[2, 4]
  %1 = neg(%0) : f32[2, 4]
  %2 = neg(%z) : f32[2, 4]
  %3 = add(%1, %2) : f32[2, 4]
  %4 = neg(%w) : f32[4]
  %5 = sub(%3, %4) : f32[2, 4]
  %6 = neg(%5) : f32[2, 4]
  %y = abs(%6) : f32[2, 4]
)",
         R"(  %0 = sub(%x, %z) : f32[2, 4]
  %1 = add(%0, %w) : f32[2, 4]
  %y = abs(%1) : f32[2, 4]
)");
}

TEST(SimplifyAlgebra, DropsRepeatedRoundingAndRelu) {
  expect(R"(  %0 = relu(%x) : f32[2, 4]
  %1 = relu(%0) : f32[2, 4]
  %2 = floor(%1) : f32[2, 4]
  %3 = floor(%2) : f32[2, 4]
  %y = max(%3, %3) : f32[2, 4]
)",
         R"(  %0 = relu(%x) : f32[2, 4]
  %y = floor(%0) : f32[2, 4]
)");
}

TEST(SimplifyAlgebra, KeepsXMinusXSinceItMayBeNaN) {
  expect_same(R"(  %y = sub(%x, %x) : f32[2, 4]
)");
}

TEST(SimplifyAlgebra, WritesSmallPowersAsProducts) {
  expect(R"(  %c = constant [2] : f32[]
  %0 = pow(%x, %c) : f32[2, 4]
  %d = constant [1] : f32[]
  %1 = pow(%0, %d) : f32[2, 4]
  %e = constant [-1] : f32[]
  %y = pow(%1, %e) : f32[2, 4]
)",
         R"(  %0 = mul(%x, %x) : f32[2, 4]
  %y = reciprocal(%0) : f32[2, 4]
)");
}

TEST(SimplifyAlgebra, KeepsARootWrittenAsPowerSinceInfinityDiffers) {
  expect_same(R"(  %c = constant [0.5] : f32[]
  %y = pow(%x, %c) : f32[2, 4]
)");
}

TEST(SimplifyAlgebra, WritesOneOverXAsReciprocal) {
  expect(R"(  %c = constant [1] : f32[]
  %y = div(%c, %x) : f32[2, 4]
)",
         R"(  %y = reciprocal(%x) : f32[2, 4]
)");
}

TEST(SimplifyAlgebra, ChoosesWhereTheConditionIsConstant) {
  expect(R"(  %c = constant [1] : bool[]
  %0 = select(%c, %w, %x) : f32[2, 4]
  %1 = select(%b, %0, %0) : f32[2, 4]
  %y = neg(%1) : f32[2, 4]
)",
         R"(  %0 = broadcast(%w) shape=[2, 4] : f32[2, 4]
  %y = neg(%0) : f32[2, 4]
)");
}

TEST(SimplifyAlgebra, KeepsASelectBetweenTwoValues) {
  expect_same(R"(  %y = select(%b, %x, %w) : f32[2, 4]
)");
}

TEST(SimplifyAlgebra, SimplifiesLogic) {
  expect(R"(  %t = constant [1] : bool[]
  %0 = logical_and(%b, %t) : bool[2, 4]
  %1 = logical_or(%0, %0) : bool[2, 4]
  %2 = logical_not(%1) : bool[2, 4]
  %3 = logical_not(%2) : bool[2, 4]
  %y = logical_xor(%3, %t) : bool[2, 4]
)",
         R"(  %t = constant [1] : bool[]
  %y = logical_xor(%b, %t) : bool[2, 4]
)");
}

TEST(SimplifyAlgebra, DropsACastThatLosesNothing) {
  expect(R"(  %0 = cast(%i) dtype=i32 : i32[4]
  %1 = cast(%0) dtype=i64 : i64[4]
  %2 = cast(%1) : f32[4]
  %3 = cast(%2) dtype=f64 : f64[4]
  %y = cast(%3) : f32[4]
)",
         R"(  %0 = cast(%i) dtype=i32 : i32[4]
  %y = cast(%0) : f32[4]
)");
}

TEST(SimplifyAlgebra, KeepsACastThatRoundsOrStops) {
  expect_same(R"(  %0 = cast(%x) dtype=f16 : f16[2, 4]
  %1 = cast(%0) dtype=u8 : u8[2, 4]
  %2 = cast(%1) dtype=bf16 : bf16[2, 4]
  %y = cast(%2) dtype=i8 : i8[2, 4]
)");
}

TEST(SimplifyAlgebra, KeepsTheReadOfAStateBeforeItIsWritten) {
  expect_unchanged(simplify_algebra, R"(graph "g" {
  %u = input "u" : f32[1, 1, 4]
  %s = state "s" : f32[1, 8, 4]
  %one = constant [1] : f32[]
  %0 = mul(%s, %one) : f32[1, 8, 4]
  %1 = cache_append(%s, %u) : f32[1, 1, 4]
  %y = reduce_sum(%0) : f32[]
  output "y" %y
}
)");
}

}  // namespace
}  // namespace rlx
