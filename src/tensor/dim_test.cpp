#include "tensor/dim.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "rlx/error.h"

namespace rlx {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();

const Dim kTokens = Dim::symbol("tokens");
const Dim kPast = Dim::symbol("past");

SymbolTable make_symbols() {
  SymbolTable symbols;
  symbols.declare({"tokens", 1, 512});
  symbols.declare({"past", 0, 4096});
  return symbols;
}

TEST(Dim, MergesLikeTermsIntoOneForm) {
  EXPECT_EQ(kTokens + kPast, kPast + kTokens);
  EXPECT_EQ(kTokens + kTokens, 2 * kTokens);
  EXPECT_EQ((kTokens + kPast) * (kTokens + kPast),
            kTokens * kTokens + 2 * kTokens * kPast + kPast * kPast);
  EXPECT_EQ(kTokens - kTokens, Dim(0));
  EXPECT_EQ((kTokens + 1) * 0, Dim(0));
  EXPECT_TRUE((kTokens - kTokens + 7).is(7));
}

TEST(Dim, PrintsItsTermsInOrder) {
  EXPECT_EQ(to_string(Dim(7)), "7");
  EXPECT_EQ(to_string(Dim(-7)), "-7");
  EXPECT_EQ(to_string(kTokens + kPast), "past + tokens");
  EXPECT_EQ(to_string(2 * kTokens - 1), "2 * tokens - 1");
  EXPECT_EQ(to_string(1 - kTokens), "-tokens + 1");
  EXPECT_EQ(to_string(kTokens * kPast * 3 - kPast), "-past + 3 * past * tokens");
  EXPECT_EQ(to_string(Dim(kMin)), "-9223372036854775808");
}

TEST(Dim, ReadsWhatItPrints) {
  for (const Dim& dim : {Dim(0), Dim(-3), kTokens, kTokens * kTokens - 2 * kPast + 5,
                         Dim(-1) * kTokens, 32 * kTokens * kPast}) {
    EXPECT_EQ(parse_dim(to_string(dim)), dim) << to_string(dim);
  }
  EXPECT_EQ(parse_dim(" 2*tokens+past - 1 "), 2 * kTokens + kPast - 1);
}

TEST(Dim, RefusesWhatIsNoExtent) {
  for (const char* text : {"", "+", "tokens tokens", "2 *", "1 ++ 2", "a/b", "(tokens)", "7x"}) {
    EXPECT_THROW(parse_dim(text), Error) << text;
  }
  EXPECT_THROW(parse_dim("99999999999999999999"), Error);
}

TEST(Dim, NamesTheExpressionThatIsNoConstant) {
  EXPECT_EQ(Dim(3).constant(), 3);
  try {
    (kTokens + 1).constant();
    FAIL() << "nothing is thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
    EXPECT_NE(std::string(error.what()).find("'tokens + 1'"), std::string::npos);
  }
}

TEST(Dim, BoundsFollowTheSignOfEachTerm) {
  const SymbolTable symbols = make_symbols();
  EXPECT_EQ((kPast + kTokens).upper_bound(symbols), 4608);
  EXPECT_EQ((kPast + kTokens).lower_bound(symbols), 1);
  EXPECT_EQ((kPast - kTokens).upper_bound(symbols), 4095);
  EXPECT_EQ((kPast - kTokens).lower_bound(symbols), -512);
  EXPECT_EQ((kTokens * kTokens - 1).lower_bound(symbols), 0);
}

TEST(Dim, EvaluatesAtGivenValues) {
  const SymbolTable symbols = make_symbols();
  const std::array<int64_t, 2> values = {3, 10};  // in order of declaration
  EXPECT_EQ((2 * kTokens + kPast - 1).evaluate(symbols, values), 15);
  EXPECT_EQ((kTokens * kPast).evaluate(symbols, values), 30);
  EXPECT_EQ(Dim(4).evaluate({}, {}), 4);
}

TEST(Dim, NamesASymbolThatIsNotDeclared) {
  try {
    Dim::symbol("batch").upper_bound(make_symbols());
    FAIL() << "nothing is thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotFound);
    EXPECT_NE(std::string(error.what()).find("'batch'"), std::string::npos);
  }
}

TEST(Dim, RefusesToOverflow) {
  EXPECT_THROW(Dim(kMax) + Dim(1), Error);
  EXPECT_THROW(Dim(kMax) * Dim(2), Error);
  EXPECT_THROW(Dim(0) - Dim(kMin), Error);
  EXPECT_THROW((kMax * kTokens) + kTokens, Error);
  EXPECT_THROW((kMax * kTokens).upper_bound(make_symbols()), Error);
}

TEST(Dim, DividesOnlyWhatDividesExactly) {
  Dim quotient;
  ASSERT_TRUE(divide_exactly(32 * kTokens, 8, quotient));
  EXPECT_EQ(quotient, 4 * kTokens);
  ASSERT_TRUE(divide_exactly(6 * kTokens * kPast + 3 * kTokens, 3 * kTokens, quotient));
  EXPECT_EQ(quotient, 2 * kPast + 1);
  ASSERT_TRUE(divide_exactly(kTokens + kPast, kTokens + kPast, quotient));
  EXPECT_EQ(quotient, Dim(1));
  ASSERT_TRUE(divide_exactly(0, 5, quotient));
  EXPECT_EQ(quotient, Dim(0));
  EXPECT_FALSE(divide_exactly(kTokens, 2, quotient));
  EXPECT_FALSE(divide_exactly(kTokens + 1, kTokens, quotient));
  EXPECT_FALSE(divide_exactly(kTokens, 0, quotient));
  EXPECT_FALSE(divide_exactly(7, 2, quotient));
}

TEST(Dim, RefusesToNegateTheLeastIntegerByDivision) {
  Dim quotient;
  EXPECT_THROW(divide_exactly(kMin, -1, quotient), Error);
  ASSERT_TRUE(divide_exactly(4 * kTokens, -1, quotient));
  EXPECT_EQ(quotient, -4 * kTokens);
}

TEST(SymbolTable, RefusesBadBoundsAndASecondMeaning) {
  SymbolTable symbols = make_symbols();
  EXPECT_NO_THROW(symbols.declare({"tokens", 1, 512}));
  EXPECT_EQ(symbols.symbols().size(), 2u);
  EXPECT_THROW(symbols.declare({"tokens", 1, 8}), Error);
  EXPECT_THROW(symbols.declare({"batch", -1, 8}), Error);
  EXPECT_THROW(symbols.declare({"batch", 9, 8}), Error);
}

}  // namespace
}  // namespace rlx
