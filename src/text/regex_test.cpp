#include "text/regex.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "base/error.h"

namespace rlx {
namespace {

using testing::ElementsAre;

std::vector<std::string> matches(std::string_view pattern, std::string_view text) {
  const Regex regex(pattern);
  std::vector<std::string> found;
  regex.for_each_match(
      text, [&](size_t begin, size_t end) { found.emplace_back(text.substr(begin, end - begin)); });
  return found;
}

TEST(Regex, ReadsCharactersNotBytes) {
  EXPECT_THAT(matches(".", "a\u65E5\U0001F642"), ElementsAre("a", "\u65E5", "\U0001F642"));
  EXPECT_THAT(matches("\\p{L}+", "\u0436\u0436 1 ab"), ElementsAre("\u0436\u0436", "ab"));
}

TEST(Regex, TakesEmptyMatchesBetweenCharacters) {
  EXPECT_THAT(matches("x*", "axb"), ElementsAre("", "x", "", ""));
  EXPECT_THAT(matches("(?=\u65E5)", "\u65E5\u65E5"), ElementsAre("", ""));
}

TEST(Regex, HasOnigurumasClasses) {
  // U+180E is no space, U+0085 is; a combining mark and a fraction are word characters.
  EXPECT_THAT(matches("\\s", "\u180E\u0085\u3000"), ElementsAre("\u0085", "\u3000"));
  EXPECT_THAT(matches("\\S", " \u180E"), ElementsAre("\u180E"));
  EXPECT_THAT(matches("\\w+", "a\u0301\u00BD \u200D"), ElementsAre("a\u0301\u00BD"));
  EXPECT_THAT(matches("[^\\w]", "a\u203F-"), ElementsAre("-"));
  EXPECT_THAT(matches("\\h+", "xyzBEEF09g"), ElementsAre("BEEF09"));
}

TEST(Regex, HasRubysOptionsAndEscapes) {
  EXPECT_THAT(matches("(?m:a.b)", "a\nb"), ElementsAre("a\nb"));
  EXPECT_THAT(matches("a.b", "a\nb"), ElementsAre());
  EXPECT_THAT(matches("^b$", "a\nb\nc"), ElementsAre("b"));
  EXPECT_THAT(matches("\\u65e5", "\u65E5"), ElementsAre("\u65E5"));
  EXPECT_THAT(matches("(?i:'s)", "'S'\u017F"), ElementsAre("'S", "'\u017F"));
}

TEST(Regex, RefusesWhatPcreWouldReadOtherwise) {
  for (const char* pattern :
       {"[a&&b]", "[a[bc]]", "[a\\W]", "[a", "a\\", "[[:alpha", "(a", "\\u12"}) {
    EXPECT_THROW(Regex{pattern}, Error) << pattern;
  }
}

TEST(Regex, MatchesDeepRepetitionOnTheHeap) {
  // Backtracks once per character, more than the JIT stack holds.
  const std::string text(1'000'000, 'a');
  EXPECT_EQ(matches("(?:a|b)+", text).size(), 1u);
}

}  // namespace
}  // namespace rlx
