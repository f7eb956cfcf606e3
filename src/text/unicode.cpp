#include "text/unicode.h"

#include <utf8proc.h>

#include <cstring>

namespace rlx {
namespace {

int general_category(uint32_t code_point) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(code_point));
}

}  // namespace

DecodedCharacter decode_utf8(std::string_view text, size_t offset) {
  const auto byte_at = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint32_t lead = byte_at(offset);
  if (lead < 0x80) return {lead, 1, true};

  // The second byte's range depends on the lead: it excludes overlong forms, surrogates and values
  // above U+10FFFF (Unicode, table 3-7).
  uint32_t count = 0, low = 0x80, high = 0xBF, value = 0;
  if (lead >= 0xC2 && lead <= 0xDF) {
    count = 2;
    value = lead & 0x1F;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    count = 3;
    value = lead & 0x0F;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    count = 4;
    value = lead & 0x07;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
  } else {
    return {0xFFFD, 1, false};
  }
  for (uint32_t i = 1; i < count; ++i) {
    if (offset + i >= text.size()) return {0xFFFD, i, false};
    const uint32_t byte = byte_at(offset + i);
    if (byte < low || byte > high) return {0xFFFD, i, false};
    value = (value << 6) | (byte & 0x3F);
    low = 0x80;
    high = 0xBF;
  }
  return {value, count, true};
}

size_t previous_utf8(std::string_view text, size_t offset) {
  do {
    --offset;
  } while (offset > 0 && (static_cast<uint8_t>(text[offset]) & 0xC0) == 0x80);
  return offset;
}

void append_utf8(uint32_t c, std::string& out) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xC0 | (c >> 6));
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xE0 | (c >> 12));
    out += static_cast<char>(0x80 | ((c >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | (c >> 18));
    out += static_cast<char>(0x80 | ((c >> 12) & 0x3F));
    out += static_cast<char>(0x80 | ((c >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  }
}

size_t valid_utf8_length(std::string_view text, size_t offset) {
  size_t at = offset;
  while (at < text.size()) {
    if (at + 8 <= text.size()) {
      uint64_t word;
      std::memcpy(&word, text.data() + at, 8);
      if ((word & 0x8080808080808080u) == 0) {
        at += 8;
        continue;
      }
    }
    const DecodedCharacter c = decode_utf8(text, at);
    if (!c.valid) break;
    at += c.length_bytes;
  }
  return at - offset;
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const size_t valid = valid_utf8_length(text, at);
    out.append(text.substr(at, valid));
    at += valid;
    if (at == text.size()) break;
    out += kReplacementCharacter;
    at += decode_utf8(text, at).length_bytes;
  }
  return out;
}

size_t incomplete_utf8_tail(std::string_view text) {
  for (size_t length = 1; length <= 3 && length <= text.size(); ++length) {
    const auto byte = static_cast<uint8_t>(text[text.size() - length]);
    if ((byte & 0xC0) == 0x80) continue;
    const uint32_t expected = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC2 ? 2 : 1;
    const DecodedCharacter c = decode_utf8(text, text.size() - length);
    return !c.valid && c.length_bytes == length && length < expected && byte <= 0xF4 ? length : 0;
  }
  return 0;
}

uint32_t to_upper_case(uint32_t code_point) {
  return static_cast<uint32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(code_point)));
}

uint32_t to_lower_case(uint32_t code_point) {
  return static_cast<uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code_point)));
}

bool is_white_space(uint32_t c) {
  if (c < 0x80) return c == ' ' || (c >= '\t' && c <= '\r');
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_word_character(uint32_t c) {
  if (c < 0x80) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  }
  if (c == 0x200C || c == 0x200D) return true;  // Join_Control
  switch (general_category(c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:
      return c >= 0x24B6 && c <= 0x24E9;  // circled letters are Alphabetic though So
  }
}

bool is_numeric(uint32_t c) {
  if (c < 0x80) return c >= '0' && c <= '9';
  const int category = general_category(c);
  return category == UTF8PROC_CATEGORY_ND || category == UTF8PROC_CATEGORY_NL ||
         category == UTF8PROC_CATEGORY_NO;
}

bool is_punctuation(uint32_t c) {
  if (c < 0x80) {
    return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) ||
           (c >= 123 && c <= 126);
  }
  switch (general_category(c)) {
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO:
      return true;
    default:
      return false;
  }
}

bool is_nonspacing_mark(uint32_t c) {
  return c >= 0x300 && general_category(c) == UTF8PROC_CATEGORY_MN;
}

bool is_cjk_ideograph(uint32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) ||
         (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B73F) ||
         (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

bool is_bert_control(uint32_t c) {
  if (c == '\t' || c == '\n' || c == '\r') return false;
  if (c < 0x80) return c < 0x20 || c == 0x7F;
  switch (general_category(c)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
      return true;
    default:
      return false;
  }
}

}  // namespace rlx
