#include "base/error.h"
#include "text/regex.h"

namespace rlx {
namespace {

// The members of \s and \w in Oniguruma, for use inside a class. PCRE2 10.42 with UCP would add
// U+180E to \s and leave marks and connectors out of \w. The superscripts and fractions of Latin-1
// are in Oniguruma's \w, alone among their kind.
constexpr std::string_view kSpaceMembers = R"(\x09-\x0d\x{85}\p{Z})";
constexpr std::string_view kWordMembers =
    R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{b2}\x{b3}\x{b9}\x{bc}-\x{be})";
constexpr std::string_view kHexMembers = "0-9a-fA-F";

class Translator {
 public:
  explicit Translator(std::string_view pattern) : pattern_(pattern) {}

  std::string run() {
    while (at_ < pattern_.size()) {
      const char c = pattern_[at_];
      if (c == '\\') {
        escape(false);
      } else if (c == '[') {
        character_class();
      } else if (c == '(' && pattern_.substr(at_).starts_with("(?")) {
        options();
      } else {
        out_ += c;
        ++at_;
      }
    }
    return std::move(out_);
  }

 private:
  [[noreturn]] void refuse(std::string_view what) const {
    throw_error(ErrorCode::kUnsupported,
                "The regular expression '{}' uses {} at byte {}, which is not supported.", pattern_,
                what, at_);
  }

  void class_escape(std::string_view members, bool negated, bool in_class) {
    if (in_class && negated) refuse("a negated class escape inside a class");
    if (in_class) {
      out_ += members;
    } else {
      out_ += negated ? "[^" : "[";
      out_ += members;
      out_ += ']';
    }
    at_ += 2;
  }

  void escape(bool in_class) {
    if (at_ + 1 >= pattern_.size()) refuse("a backslash at its end");
    const char c = pattern_[at_ + 1];
    switch (c) {
      case 's':
        class_escape(kSpaceMembers, false, in_class);
        return;
      case 'S':
        // [^\S...] is common; PCRE2's own \S differs from White_Space only at U+180E.
        if (in_class) break;
        class_escape(kSpaceMembers, true, in_class);
        return;
      case 'w':
        class_escape(kWordMembers, false, in_class);
        return;
      case 'W':
        class_escape(kWordMembers, true, in_class);
        return;
      case 'h':
        class_escape(kHexMembers, false, in_class);
        return;
      case 'H':
        class_escape(kHexMembers, true, in_class);
        return;
      case 'u':
        if (at_ + 6 > pattern_.size()) refuse("an incomplete \\u");
        out_ += "\\x{";
        out_ += pattern_.substr(at_ + 2, 4);
        out_ += '}';
        at_ += 6;
        return;
      default:
        break;
    }
    out_ += pattern_.substr(at_, 2);
    at_ += 2;
  }

  void character_class() {
    out_ += '[';
    ++at_;
    if (at_ < pattern_.size() && pattern_[at_] == '^') {
      out_ += '^';
      ++at_;
    }
    if (at_ < pattern_.size() && pattern_[at_] == ']') {
      out_ += "\\]";
      ++at_;
    }
    while (at_ < pattern_.size() && pattern_[at_] != ']') {
      const std::string_view rest = pattern_.substr(at_);
      if (rest.starts_with("[:")) {
        const size_t end = rest.find(":]");
        if (end == std::string_view::npos) refuse("an unclosed POSIX class");
        out_ += rest.substr(0, end + 2);
        at_ += end + 2;
      } else if (rest[0] == '[') {
        refuse("a class inside a class");
      } else if (rest.starts_with("&&")) {
        refuse("an intersection of classes");
      } else if (rest[0] == '\\') {
        escape(true);
      } else {
        out_ += rest[0];
        ++at_;
      }
    }
    if (at_ == pattern_.size()) refuse("an unclosed class");
    out_ += ']';
    ++at_;
  }

  // "(?im-x:" and "(?i)": m means that the dot matches line ends. Other groups stay as they are.
  void options() {
    size_t end = at_ + 2;
    while (end < pattern_.size() &&
           std::string_view("imx-").find(pattern_[end]) != std::string_view::npos) {
      ++end;
    }
    const bool is_options =
        end > at_ + 2 && end < pattern_.size() && (pattern_[end] == ':' || pattern_[end] == ')');
    if (!is_options) {
      out_ += "(?";
      at_ += 2;
      return;
    }
    for (; at_ < end; ++at_) out_ += pattern_[at_] == 'm' ? 's' : pattern_[at_];
  }

  std::string_view pattern_;
  size_t at_ = 0;
  std::string out_;
};

}  // namespace

std::string translate_pattern(std::string_view pattern) { return Translator(pattern).run(); }

}  // namespace rlx
