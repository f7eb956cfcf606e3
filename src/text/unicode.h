// UTF-8 and the few character classes that tokenizers are defined by.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace rlx {

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

struct DecodedCharacter {
  uint32_t code_point;  // U+FFFD if not valid
  uint32_t
      length_bytes;  // at least 1; of an ill-formed sequence, its longest well-formed beginning
  bool valid;
};

// The character that starts at `offset`, which must be inside the text.
DecodedCharacter decode_utf8(std::string_view text, size_t offset);

// The start of the character that ends at `offset` in valid UTF-8; `offset` must not be 0.
size_t previous_utf8(std::string_view text, size_t offset);

// `code_point` must be a Unicode scalar value.
void append_utf8(uint32_t code_point, std::string& out);

// How many bytes from `offset` on are valid UTF-8, up to the first ill-formed sequence.
size_t valid_utf8_length(std::string_view text, size_t offset = 0);

// Every ill-formed sequence becomes one U+FFFD (the practice that the Unicode standard recommends).
std::string replace_invalid_utf8(std::string_view text);

// Length of the tail that is the beginning of a character whose rest may still come: 0 to 3 bytes.
size_t incomplete_utf8_tail(std::string_view text);

// The character of the other case that Unicode maps this one to alone, or itself.
uint32_t to_upper_case(uint32_t code_point);
uint32_t to_lower_case(uint32_t code_point);

bool is_white_space(uint32_t code_point);      // property White_Space
bool is_word_character(uint32_t code_point);   // \w of Unicode TS 18
bool is_numeric(uint32_t code_point);          // general category N*
bool is_punctuation(uint32_t code_point);      // ASCII punctuation and symbols, category P*
bool is_nonspacing_mark(uint32_t code_point);  // general category Mn
bool is_cjk_ideograph(uint32_t code_point);    // the blocks that BERT puts spaces around
bool is_bert_control(uint32_t code_point);     // category C*, without tab and line ends

}  // namespace rlx
