#include "text/stop_strings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace rlx {
namespace {

// What comes out for the text cut at every `width` bytes.
std::string feed(const std::vector<std::string>& strings, std::string_view text, size_t width) {
  StopStrings stop(strings);
  std::string shown;
  for (size_t at = 0; at < text.size(); at += width) shown += stop.push(text.substr(at, width));
  return shown + stop.finish();
}

TEST(StopStrings, ShowNothingOfAStopStringHoweverTheTextIsCut) {
  for (size_t width = 1; width < 20; ++width) {
    EXPECT_EQ(feed({"<|end|>"}, "one <|en two <|end|> three", width), "one <|en two ");
    EXPECT_EQ(feed({"aab"}, "aaaab", width), "aa");
    EXPECT_EQ(feed({"\n\n", "User:"}, "Yes.\nUse it. User: no", width), "Yes.\nUse it. ");
  }
}

TEST(StopStrings, HoldBackOnlyWhatMayBecomeAStopString) {
  StopStrings stop(std::vector<std::string>{"STOP"});
  EXPECT_EQ(stop.push("a ST"), "a ");
  EXPECT_EQ(stop.push("ART"), "START");
  EXPECT_EQ(stop.push(" S"), " ");
  EXPECT_FALSE(stop.is_stopped());
  EXPECT_EQ(stop.finish(), "S");
}

TEST(StopStrings, StopAtTheEarliestOfSeveral) {
  StopStrings stop(std::vector<std::string>{"later", "now"});
  EXPECT_EQ(stop.push("not now, later"), "not ");
  EXPECT_TRUE(stop.is_stopped());
  EXPECT_EQ(stop.push("more"), "");
  EXPECT_EQ(stop.finish(), "");
}

TEST(StopStrings, PassEverythingWhenThereAreNone) {
  StopStrings stop({});
  EXPECT_EQ(stop.push("text"), "text");
  EXPECT_EQ(stop.finish(), "");
}

TEST(StopStrings, AreRefusedWhenEmptyOrNoText) {
  EXPECT_THROW(StopStrings(std::vector<std::string>{""}), Error);
  EXPECT_THROW(StopStrings(std::vector<std::string>{"\xff"}), Error);
}

}  // namespace
}  // namespace rlx
