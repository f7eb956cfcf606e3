// Watches generated text for strings that end it. Text arrives in pieces whose borders have nothing
// to do with the strings, so what may be the beginning of one is held back until the next piece
// decides: nothing of a stop string is ever handed out.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rlx {

class StopStrings {
 public:
  // Throws kInvalidArgument naming a string that is empty or not UTF-8.
  explicit StopStrings(std::span<const std::string> strings);

  // The text that is safe to show now: whole UTF-8 characters if the pieces are. Once a stop string
  // has come, the text before it is returned, and from then on nothing.
  std::string push(std::string_view piece);
  // What was held back, when no more text comes; empty after a stop string.
  std::string finish();
  bool is_stopped() const { return stopped_; }

 private:
  std::vector<std::string> strings_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace rlx
