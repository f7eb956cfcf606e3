#include "text/stop_strings.h"

#include <algorithm>

#include "base/error.h"
#include "text/unicode.h"

namespace rlx {

StopStrings::StopStrings(std::span<const std::string> strings)
    : strings_(strings.begin(), strings.end()) {
  for (const std::string& string : strings_) {
    if (string.empty()) {
      throw_error(ErrorCode::kInvalidArgument,
                  "A stop string is empty; at least one character is expected.");
    }
    if (valid_utf8_length(string) != string.size()) {
      throw_error(ErrorCode::kInvalidArgument, "The stop string '{}' is not UTF-8.",
                  replace_invalid_utf8(string));
    }
  }
}

std::string StopStrings::push(std::string_view piece) {
  if (stopped_) return {};
  held_ += piece;
  size_t stop = std::string::npos;
  for (const std::string& string : strings_) stop = std::min(stop, held_.find(string));
  if (stop != std::string::npos) {
    stopped_ = true;
    held_.resize(stop);
    return std::move(held_);
  }
  // The longest end of the text that begins a stop string waits.
  size_t keep = 0;
  for (const std::string& string : strings_) {
    for (size_t length = std::min(string.size() - 1, held_.size()); length > keep; --length) {
      if (std::string_view(held_).ends_with(std::string_view(string).substr(0, length))) {
        keep = length;
      }
    }
  }
  std::string text = held_.substr(0, held_.size() - keep);
  held_.erase(0, text.size());
  return text;
}

std::string StopStrings::finish() {
  std::string text = stopped_ ? std::string() : std::move(held_);
  held_.clear();
  return text;
}

}  // namespace rlx
