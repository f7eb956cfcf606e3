#include "templates/lexer.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/error.h"
#include "templates/python_text.h"
#include "text/unicode.h"

namespace rlx::templates {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool begins_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}
bool continues_name(char c) { return begins_name(c) || is_digit(c); }
bool is_blank(char c) { return std::strchr(" \t\n\r\f\v", c) != nullptr && c != '\0'; }

std::string normalize_line_breaks(std::string_view source) {
  std::string text;
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      text += source[i];
    } else {
      text += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    }
  }
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

class Lexer {
 public:
  explicit Lexer(std::string text) : text_(std::move(text)) {}

  std::vector<Token> run() {
    while (at_ < text_.size()) read_text();
    add(TokenKind::kEnd);
    return std::move(tokens_);
  }

 private:
  template <typename... Args>
  [[noreturn]] void fail(int line, fmt::format_string<Args...> format, Args&&... args) const {
    Error error(ErrorCode::kInvalidArgument, fmt::format(format, std::forward<Args>(args)...));
    error.add_context(line_context(line));
    throw error;
  }

  bool starts_with(std::string_view mark) const {
    return std::string_view(text_).substr(at_).starts_with(mark);
  }

  Token& add(TokenKind kind, std::string text = {}) {
    tokens_.push_back({kind, line_, std::move(text)});
    return tokens_.back();
  }

  void advance(size_t bytes) {
    const auto begin = text_.begin() + static_cast<ptrdiff_t>(at_);
    line_ += static_cast<int>(std::count(begin, begin + static_cast<ptrdiff_t>(bytes), '\n'));
    at_ += bytes;
    if (bytes > 0) begins_line_ = text_[at_ - 1] == '\n';
  }

  void skip_blanks() {
    size_t end = at_;
    while (end < text_.size() && is_blank(text_[end])) ++end;
    advance(end - at_);
  }

  // The text up to the next mark, less what the mark takes from it, then what the mark opens.
  void read_text() {
    size_t mark = at_;
    while (true) {
      mark = text_.find('{', mark);
      if (mark == std::string::npos || mark + 1 >= text_.size()) {
        mark = text_.size();
        break;
      }
      if (std::strchr("{%#", text_[mark + 1]) != nullptr && text_[mark + 1] != '\0') break;
      ++mark;
    }
    add_text(mark);
    if (at_ >= text_.size()) return;
    const char kind = text_[at_ + 1];
    const int line = line_;
    advance(2);
    if (at_ < text_.size() && (text_[at_] == '-' || text_[at_] == '+')) advance(1);
    if (kind == '#') {
      skip_comment(line);
    } else if (kind == '%' && try_raw(line)) {
      return;
    } else {
      add(kind == '%' ? TokenKind::kBlockBegin : TokenKind::kOutputBegin);
      read_code(kind == '%', line);
    }
  }

  // Adds the text before the mark at `end` and goes there.
  void add_text(size_t end) {
    const std::string_view text = std::string_view(text_).substr(at_, end - at_);
    const bool is_block = end < text_.size() && text_[end + 1] != '{';
    const std::string_view kept = trim_before_mark(text, end, is_block);
    if (!kept.empty()) add(TokenKind::kText, std::string(kept));
    advance(text.size());
  }

  std::string_view trim_before_mark(std::string_view text, size_t mark, bool is_block) const {
    if (mark >= text_.size()) return text;
    const char sign = mark + 2 < text_.size() ? text_[mark + 2] : '\0';
    if (sign == '-') return strip(text, {}, false, true);
    if (sign == '+' || !is_block) return text;
    const size_t line_break = text.rfind('\n');
    const size_t begin = line_break == std::string_view::npos ? 0 : line_break + 1;
    if (begin == 0 && !begins_line_) return text;
    const std::string_view rest = text.substr(begin);
    return std::all_of(rest.begin(), rest.end(), is_blank) ? text.substr(0, begin) : text;
  }

  // Goes behind "%}" or "#}", which stand at `at_`, perhaps after a sign.
  void pass_end(char sign) {
    if (sign != '\0') advance(1);
    advance(2);
    if (sign == '-') {
      skip_blanks();
    } else if (sign != '+' && at_ < text_.size() && text_[at_] == '\n') {
      advance(1);
    }
  }

  void skip_comment(int line) {
    const size_t end = text_.find("#}", at_);
    if (end == std::string::npos) fail(line, "A comment begins with '{{#', but '#}}' is missing.");
    const char sign =
        end > at_ && (text_[end - 1] == '-' || text_[end - 1] == '+') ? text_[end - 1] : '\0';
    advance(end - at_ - (sign != '\0' ? 1 : 0));
    pass_end(sign);
  }

  // {% raw %} up to {% endraw %}, if that is what stands here.
  bool try_raw(int line) {
    size_t at = at_;
    const auto skip = [&](size_t from) {
      while (from < text_.size() && is_blank(text_[from])) ++from;
      return from;
    };
    at = skip(at);
    if (text_.compare(at, 3, "raw") != 0) return false;
    at = skip(at + 3);
    const bool trims = text_.compare(at, 3, "-%}") == 0;
    if (!trims && text_.compare(at, 2, "%}") != 0) return false;
    advance(at - at_ + (trims ? 3 : 2));
    if (trims) skip_blanks();
    for (size_t mark = text_.find("{%", at_); mark != std::string::npos;
         mark = text_.find("{%", mark + 2)) {
      size_t word = mark + 2;
      if (word < text_.size() && (text_[word] == '-' || text_[word] == '+')) ++word;
      word = skip(word);
      if (text_.compare(word, 6, "endraw") != 0) continue;
      size_t end = skip(word + 6);
      const char sign =
          end < text_.size() && (text_[end] == '-' || text_[end] == '+') ? text_[end] : '\0';
      if (text_.compare(end + (sign != '\0' ? 1 : 0), 2, "%}") != 0) continue;
      add_text(mark);
      advance(end - at_);
      pass_end(sign);
      return true;
    }
    fail(line, "'{{% raw %}}' has no '{{% endraw %}}'.");
  }

  // Tokens up to the end of an output or block. Inside brackets "}}" is two brackets.
  void read_code(bool is_block, int line) {
    std::string brackets;
    const std::string_view end = is_block ? "%}" : "}}";
    while (true) {
      skip_blanks();
      if (at_ >= text_.size()) {
        fail(line, "'{}' has no '{}'.", is_block ? "{%" : "{{", end);
      }
      if (brackets.empty()) {
        const char c = text_[at_];
        const bool signed_end =
            (c == '-' || (c == '+' && is_block)) && text_.compare(at_ + 1, 2, end) == 0;
        if (signed_end || starts_with(end)) {
          add(is_block ? TokenKind::kBlockEnd : TokenKind::kOutputEnd);
          if (is_block) {
            pass_end(signed_end ? c : '\0');
          } else {
            advance(signed_end ? 3 : 2);
            if (signed_end) skip_blanks();
          }
          return;
        }
      }
      read_token(brackets);
    }
  }

  void read_token(std::string& brackets) {
    const char c = text_[at_];
    if (begins_name(c)) {
      size_t end = at_;
      while (end < text_.size() && continues_name(text_[end])) ++end;
      add(TokenKind::kName, text_.substr(at_, end - at_));
      advance(end - at_);
    } else if (is_digit(c)) {
      read_number();
    } else if (c == '"' || c == '\'') {
      read_string(c);
    } else {
      read_operator(brackets);
    }
  }

  void read_operator(std::string& brackets) {
    static constexpr std::string_view kOperators[] = {
        "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
        "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};
    for (const std::string_view spelling : kOperators) {
      if (!starts_with(spelling)) continue;
      const char c = spelling[0];
      if (c == '(' || c == '[' || c == '{') brackets += c == '(' ? ')' : (c == '[' ? ']' : '}');
      if (c == ')' || c == ']' || c == '}') {
        if (brackets.empty() || brackets.back() != c) {
          fail(line_, "'{}' closes nothing{}.", c,
               brackets.empty() ? "" : fmt::format("; '{}' is expected", brackets.back()));
        }
        brackets.pop_back();
      }
      add(TokenKind::kOperator, std::string(spelling));
      advance(spelling.size());
      return;
    }
    fail(line_, "The character '{}' has no meaning here.", std::string(1, text_[at_]));
  }

  void read_number() {
    size_t end = at_;
    bool is_float = false;
    const auto pass_digits = [&] {
      while (end < text_.size() && (is_digit(text_[end]) || text_[end] == '_')) ++end;
    };
    const auto digit_at = [&](size_t i) { return i < text_.size() && is_digit(text_[i]); };
    pass_digits();
    if (end < text_.size() && text_[end] == '.' && digit_at(end + 1)) {
      is_float = true;
      ++end;
      pass_digits();
    }
    if (end < text_.size() && (text_[end] == 'e' || text_[end] == 'E')) {
      const size_t sign =
          end + 1 < text_.size() && (text_[end + 1] == '-' || text_[end + 1] == '+');
      if (digit_at(end + 1 + sign)) {
        is_float = true;
        end += 1 + sign;
        pass_digits();
      }
    }
    std::string digits = text_.substr(at_, end - at_);
    if (end < text_.size() && begins_name(text_[end])) {
      fail(line_, "The number '{}' is followed by '{}'.", digits, text_[end]);
    }
    std::erase(digits, '_');
    Token& token = add(is_float ? TokenKind::kFloat : TokenKind::kInt, digits);
    const char* last = digits.data() + digits.size();
    const auto result = is_float ? std::from_chars(digits.data(), last, token.float_value)
                                 : std::from_chars(digits.data(), last, token.int_value);
    if (result.ec != std::errc() || result.ptr != last) {
      fail(line_, "The number '{}' is too large.", digits);
    }
    advance(end - at_);
  }

  // One escape of at most `digits` hexadecimal digits after the letter.
  uint32_t read_hex(size_t& at, size_t digits) {
    uint32_t code_point = 0;
    const char* begin = text_.data() + at;
    const char* end = begin + std::min(digits, text_.size() - at);
    const auto result = std::from_chars(begin, end, code_point, 16);
    if (result.ptr != begin + digits || code_point > 0x10FFFF ||
        (code_point >= 0xD800 && code_point <= 0xDFFF)) {
      fail(line_, "A string holds an escape that is no character.");
    }
    at += digits;
    return code_point;
  }

  void read_string(char quote) {
    std::string value;
    size_t at = at_ + 1;
    while (true) {
      if (at >= text_.size())
        fail(line_, "A string begins with {}, but its end is missing.", quote);
      const char c = text_[at++];
      if (c == quote) break;
      if (c != '\\') {
        value += c;
        continue;
      }
      if (at >= text_.size()) continue;
      read_escape(at, value);
    }
    add(TokenKind::kString, std::move(value));
    advance(at - at_);
  }

  void read_escape(size_t& at, std::string& value) {
    static constexpr std::string_view kLetters = "nrtbfva\\'\"0";
    static constexpr std::string_view kBytes("\n\r\t\b\f\v\a\\'\"\0", 11);
    const char c = text_[at++];
    const size_t which = kLetters.find(c);
    if (c == '\n') return;  // a line that goes on
    if (c == 'x') {
      append_utf8(read_hex(at, 2), value);
    } else if (c == 'u') {
      append_utf8(read_hex(at, 4), value);
    } else if (c == 'U') {
      append_utf8(read_hex(at, 8), value);
    } else if (which != std::string_view::npos) {
      value += kBytes[which];
    } else {
      value += '\\';
      value += c;
    }
  }

  const std::string text_;
  size_t at_ = 0;
  int line_ = 1;
  bool begins_line_ = true;  // the last mark ended at the beginning of a line
  std::vector<Token> tokens_;
};

}  // namespace

std::string line_context(int line) { return fmt::format("line {}", line); }

std::vector<Token> tokenize_template(std::string_view source) {
  return Lexer(normalize_line_breaks(source)).run();
}

}  // namespace rlx::templates
