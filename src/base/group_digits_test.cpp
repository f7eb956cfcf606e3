#include "base/group_digits.h"

#include <gtest/gtest.h>

namespace rlx {
namespace {

TEST(GroupDigits, SetsACommaBeforeEveryThirdDigitFromTheEnd) {
  EXPECT_EQ(group_digits(0), "0");
  EXPECT_EQ(group_digits(999), "999");
  EXPECT_EQ(group_digits(1000), "1,000");
  EXPECT_EQ(group_digits(1048576), "1,048,576");
}

TEST(GroupDigits, KeepsTheSign) {
  EXPECT_EQ(group_digits(-456), "-456");
  EXPECT_EQ(group_digits(-123456), "-123,456");
}

}  // namespace
}  // namespace rlx
