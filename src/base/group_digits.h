// Whole numbers for people: "639,754,432".
#pragma once

#include <cstdint>
#include <string>

namespace rlx {

inline std::string group_digits(int64_t value) {
  std::string digits = std::to_string(value);
  const size_t first = digits[0] == '-' ? 1 : 0;
  for (size_t i = digits.size(); i > first + 3;) digits.insert(i -= 3, 1, ',');
  return digits;
}

}  // namespace rlx
