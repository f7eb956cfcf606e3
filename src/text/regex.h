// Regular expressions as tokenizer files write them (Oniguruma's Ruby syntax, Unicode classes), run
// by PCRE2 with JIT. Where the two disagree the pattern is rewritten to mean what the file means,
// or refused by name; it is never run with another meaning.
//
// Rewritten: \s \S (White_Space), \w \W (Alphabetic, M, Nd, Pc), \h (a hexadecimal
// digit), \uHHHH, and the option letter m (PCRE2's s). Lines end at \n; ^ and $ match at lines.
// Refused: nested classes and intersections ([a[b]], [a&&b]), \H and negated classes inside a class
// where PCRE2 has no spelling for them.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace rlx {

class Regex {
 public:
  struct Match {
    size_t begin, end;
  };

  // Throws kUnsupported, naming the pattern and the place, if it cannot be compiled.
  explicit Regex(std::string_view pattern);
  ~Regex();
  Regex(const Regex&) = delete;
  Regex& operator=(const Regex&) = delete;

  // Finds the first match at or after `start` in valid UTF-8; `start` is at a character. Safe to
  // call from several threads. Throws kUnsupported if a match needs more than the engine's limits.
  bool find(std::string_view text, size_t start, Match& match) const;

  // Calls visit(begin, end) for each match from left to right; they do not overlap. An empty match
  // is followed by a search from the next character.
  template <typename Visit>
  void for_each_match(std::string_view text, Visit&& visit) const {
    Match match;
    for (size_t start = 0; start <= text.size() && find(text, start, match);) {
      visit(match.begin, match.end);
      start = match.end > match.begin ? match.end : next_character(text, match.end);
    }
  }

  const std::string& pattern() const { return pattern_; }

 private:
  struct Code;
  static size_t next_character(std::string_view text, size_t at);

  std::string pattern_;
  std::unique_ptr<Code> code_;
};

// The pattern in PCRE2's syntax. Exposed for tests.
std::string translate_pattern(std::string_view pattern);

}  // namespace rlx
