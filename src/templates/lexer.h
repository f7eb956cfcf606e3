// Cuts a template into tokens: plain text, and inside {{ }} and {% %} names, numbers, strings and
// operators. White space is settled here, the way chat templates are written for: a block takes the
// line break after it (trim_blocks) and the blanks before it on its line (lstrip_blocks), '-' at a
// mark takes all white space on its side, '+' takes none, and one line break at the very end goes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rlx::templates {

enum class TokenKind : uint8_t {
  kText,  // plain text
  kOutputBegin,
  kOutputEnd,
  kBlockBegin,
  kBlockEnd,
  kName,
  kString,
  kInt,
  kFloat,
  kOperator,  // also brackets and punctuation
  kEnd,       // of the template
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  int line = 1;
  std::string text;  // of a string: with its escapes read
  int64_t int_value = 0;
  double float_value = 0;

  // Whether this is the operator or the name.
  bool is_operator(std::string_view spelling) const {
    return kind == TokenKind::kOperator && text == spelling;
  }
  bool is_name(std::string_view spelling) const {
    return kind == TokenKind::kName && text == spelling;
  }
};

// The tokens, the last of which is kEnd. Throws kInvalidArgument with the line in the context: an
// end is missing, or a character has no meaning.
std::vector<Token> tokenize_template(std::string_view source);

// "line 12", the context of errors.
std::string line_context(int line);

}  // namespace rlx::templates
