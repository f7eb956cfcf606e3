// Text from a file, made safe to put into a message: names in a model file may hold control
// characters, broken UTF-8 or a megabyte of noise.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace rlx {

// The text in single quotes, every byte that is not printable ASCII written as \xNN, and cut after
// `limit` bytes with "..." to show it.
inline std::string printable_text(std::string_view text, size_t limit = 80) {
  std::string result = "'";
  for (const char letter : text.substr(0, limit)) {
    const auto byte = static_cast<unsigned char>(letter);
    if (byte < 0x20 || byte >= 0x7f) {
      result += fmt::format("\\x{:02x}", byte);
    } else {
      result += letter;
    }
  }
  result += text.size() > limit ? "...'" : "'";
  return result;
}

}  // namespace rlx
