#include "ir/formula.h"

#include <gtest/gtest.h>

#include <array>

#include "rlx/error.h"

namespace rlx {
namespace {

// (i0 + 2) * i1, made by recording.
Formula make_formula() {
  Formula formula;
  const FormulaExpr x(&formula, formula.add({FormulaOp::input, 0}));
  const FormulaExpr y(&formula, formula.add({FormulaOp::input, 1}));
  formula.set_result(fn::mul(fn::add(x, FormulaExpr(2)), y).step);
  return formula;
}

TEST(Formula, PrintsAnAssignmentPerStep) {
  EXPECT_EQ(to_string(make_formula()), "t0 = add(i0, 2); t1 = mul(t0, i1); t1");
}

TEST(Formula, ReadsWhatItPrints) {
  for (const char* text : {
           "i0", "0.5", "t0 = neg(i3); t0", "t0 = exp(i0); t1 = add(t0, 1); t2 = div(i0, t1); t2",
           "t0 = less(i1, i0); t1 = select(t0, i0, i1); t1",
           "t0 = max(i0, -inf); t1 = min(t0, inf); t2 = mul(t1, nan); t2",
           "t0 = mul(i0, 1e-07); t1 = add(t0, -0.25); t0",  // the result need not be the last
       }) {
    EXPECT_EQ(to_string(parse_formula(text)), text);
  }
}

TEST(Formula, PrintsTheSameAfterReading) {
  // Inputs stand at the front of a recorded formula, and at their first use in a read one.
  const Formula recorded = make_formula();
  EXPECT_EQ(to_string(parse_formula(to_string(recorded))), to_string(recorded));
}

TEST(Formula, SharesEqualStepsButNotZerosOfOtherSign) {
  Formula formula;
  const int32_t zero = formula.add({FormulaOp::constant, -1, -1, -1, 0.0});
  EXPECT_EQ(formula.add({FormulaOp::constant, -1, -1, -1, 0.0}), zero);
  EXPECT_NE(formula.add({FormulaOp::constant, -1, -1, -1, -0.0}), zero);
  const int32_t step = formula.add({FormulaOp::exp, zero});
  EXPECT_EQ(formula.add({FormulaOp::exp, zero}), step);
}

TEST(Formula, SplicesAnotherOntoItsSteps) {
  Formula formula;
  const int32_t input = formula.add({FormulaOp::input, 0});
  const int32_t power = formula.add({FormulaOp::exp, input});
  const std::array<int32_t, 2> inputs = {power, input};
  formula.set_result(formula.splice(make_formula(), inputs));
  EXPECT_EQ(to_string(formula), "t0 = exp(i0); t1 = add(t0, 2); t2 = mul(t1, i0); t2");
  EXPECT_EQ(formula.num_inputs(), 1);
}

TEST(Formula, SplicesAPlainInput) {
  Formula identity;
  identity.set_result(identity.add({FormulaOp::input, 0}));
  Formula formula;
  const std::array<int32_t, 1> inputs = {formula.add({FormulaOp::input, 4})};
  EXPECT_EQ(formula.splice(identity, inputs), inputs[0]);
  EXPECT_EQ(formula.num_inputs(), 5);
}

TEST(Formula, EvaluatesOnDoublesAndIntegers) {
  const std::array<double, 2> floats = {0.5, 4};
  EXPECT_EQ(evaluate(make_formula(), floats.data()), 10);
  const std::array<int64_t, 2> integers = {-5, 3};
  EXPECT_EQ(evaluate(make_formula(), integers.data()), -9);
}

TEST(Formula, IntegersWrapAndDivideByZeroToZero) {
  const std::array<int64_t, 2> extremes = {std::numeric_limits<int64_t>::min(), -1};
  EXPECT_EQ(evaluate(parse_formula("t0 = div(i0, i1); t0"), extremes.data()), extremes[0]);
  EXPECT_EQ(evaluate(parse_formula("t0 = rem(i0, i1); t0"), extremes.data()), 0);
  EXPECT_EQ(evaluate(parse_formula("t0 = sub(i0, 1); t0"), extremes.data()),
            std::numeric_limits<int64_t>::max());
  const std::array<int64_t, 2> zero = {7, 0};
  EXPECT_EQ(evaluate(parse_formula("t0 = div(i0, i1); t0"), zero.data()), 0);
  EXPECT_EQ(evaluate(parse_formula("t0 = rem(i0, i1); t0"), zero.data()), 0);
}

TEST(Formula, MinAndMaxKeepNaNFromEitherSide) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const std::array<double, 2>& inputs : {std::array{nan, 1.0}, std::array{1.0, nan}}) {
    EXPECT_TRUE(std::isnan(evaluate(parse_formula("t0 = min(i0, i1); t0"), inputs.data())));
    EXPECT_TRUE(std::isnan(evaluate(parse_formula("t0 = max(i0, i1); t0"), inputs.data())));
  }
}

TEST(Formula, RoundsHalvesToTheEvenNumber) {
  const Formula formula = parse_formula("t0 = round(i0); t0");
  for (const auto& [x, expected] : {std::pair{0.5, 0.0}, {1.5, 2.0}, {2.5, 2.0}, {-0.5, -0.0}}) {
    EXPECT_EQ(evaluate(formula, &x), expected);
  }
}

TEST(Formula, RefusesBadTextAndNamesThePlace) {
  for (const char* text : {"", "t0", "t0 = exp(i0)", "t0 = exp(i0, i1); t0", "t0 = add(i0); t0",
                           "t0 = sinh(i0); t0", "t0 = exp(t1); t0", "t0 = exp(i0); t0; t0", "i",
                           "i99999", "t0 = ; t0", "t0 = input(i0); t0"}) {
    try {
      parse_formula(text);
      ADD_FAILURE() << "'" << text << "' is read";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      EXPECT_NE(std::string(error.what()).find("at character"), std::string::npos) << text;
    }
  }
}

}  // namespace
}  // namespace rlx
