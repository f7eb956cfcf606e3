#include "templates/python_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "text/unicode.h"

namespace rlx::templates {
namespace {

// Python's str.isspace: White_Space of Unicode and four separators of ASCII.
bool is_space(uint32_t code_point) {
  return is_white_space(code_point) || (code_point >= 0x1C && code_point <= 0x1F);
}

size_t find_space_end(std::string_view text, size_t at) {
  while (at < text.size()) {
    const DecodedCharacter c = decode_utf8(text, at);
    if (!is_space(c.code_point)) break;
    at += c.length_bytes;
  }
  return at;
}

size_t find_space(std::string_view text, size_t at) {
  while (at < text.size()) {
    const DecodedCharacter c = decode_utf8(text, at);
    if (is_space(c.code_point)) break;
    at += c.length_bytes;
  }
  return at;
}

// Where the last character before `end` begins, also in text that is not UTF-8.
size_t find_previous(std::string_view text, size_t end) {
  size_t at = end - 1;
  while (at > 0 && end - at < 4 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  return at;
}

template <typename Map>
std::string map_characters(std::string_view text, Map&& map) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const DecodedCharacter c = decode_utf8(text, at);
    if (c.valid) {
      append_utf8(map(c.code_point), result);
    } else {
      result += text.substr(at, c.length_bytes);
    }
    at += c.length_bytes;
  }
  return result;
}

bool is_letter(uint32_t code_point) {
  return to_upper_case(code_point) != code_point || to_lower_case(code_point) != code_point ||
         (is_word_character(code_point) && !is_numeric(code_point) && code_point != '_');
}

}  // namespace

std::vector<std::string_view> split_characters(std::string_view text) {
  std::vector<std::string_view> characters;
  for (size_t at = 0; at < text.size();) {
    const size_t length = decode_utf8(text, at).length_bytes;
    characters.push_back(text.substr(at, length));
    at += length;
  }
  return characters;
}

int64_t count_characters(std::string_view text) {
  int64_t count = 0;
  for (size_t at = 0; at < text.size(); ++count) at += decode_utf8(text, at).length_bytes;
  return count;
}

std::string repr_of_float(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[64];
  const auto end =
      std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::scientific);
  const std::string_view scientific(buffer, static_cast<size_t>(end.ptr - buffer));
  const size_t e = scientific.find('e');
  int exponent = 0;
  std::from_chars(scientific.data() + e + (scientific[e + 1] == '+' ? 2 : 1),
                  scientific.data() + scientific.size(), exponent);
  if (exponent < -4 || exponent >= 16) return std::string(scientific);
  const auto fixed =
      std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::fixed);
  std::string text(buffer, fixed.ptr);
  if (text.find('.') == std::string::npos) text += ".0";
  return text;
}

std::string repr_of_string(std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const char quote = has_single && text.find('"') == std::string_view::npos ? '"' : '\'';
  std::string result(1, quote);
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == quote || c == '\\') {
      result += '\\';
      result += c;
    } else if (c == '\n') {
      result += "\\n";
    } else if (c == '\r') {
      result += "\\r";
    } else if (c == '\t') {
      result += "\\t";
    } else if (byte < 0x20 || byte == 0x7F) {
      result += fmt::format("\\x{:02x}", byte);
    } else {
      result += c;
    }
  }
  return result + quote;
}

std::string_view strip(std::string_view text, std::optional<std::string_view> set, bool left,
                       bool right) {
  std::vector<std::string_view> wanted;
  if (set) wanted = split_characters(*set);
  const auto goes = [&](std::string_view character) {
    if (!set) return is_space(decode_utf8(character, 0).code_point);
    return std::find(wanted.begin(), wanted.end(), character) != wanted.end();
  };
  while (left && !text.empty()) {
    const size_t length = decode_utf8(text, 0).length_bytes;
    if (!goes(text.substr(0, length))) break;
    text.remove_prefix(length);
  }
  while (right && !text.empty()) {
    const size_t begin = find_previous(text, text.size());
    if (!goes(text.substr(begin))) break;
    text.remove_suffix(text.size() - begin);
  }
  return text;
}

std::vector<std::string> split(std::string_view text, std::optional<std::string_view> separator,
                               int64_t max_splits) {
  std::vector<std::string> parts;
  const auto may_split = [&] {
    return max_splits < 0 || static_cast<int64_t>(parts.size()) < max_splits;
  };
  if (separator) {
    size_t begin = 0;
    while (may_split()) {
      const size_t at = text.find(*separator, begin);
      if (at == std::string_view::npos) break;
      parts.emplace_back(text.substr(begin, at - begin));
      begin = at + separator->size();
    }
    parts.emplace_back(text.substr(begin));
    return parts;
  }
  size_t begin = find_space_end(text, 0);
  while (begin < text.size() && may_split()) {
    const size_t end = find_space(text, begin);
    parts.emplace_back(text.substr(begin, end - begin));
    begin = find_space_end(text, end);
  }
  if (begin < text.size()) parts.emplace_back(text.substr(begin));
  return parts;
}

std::vector<std::string> split_from_right(std::string_view text,
                                          std::optional<std::string_view> separator,
                                          int64_t max_splits) {
  if (max_splits < 0) return split(text, separator, max_splits);
  std::vector<std::string> parts;
  const auto may_split = [&] { return static_cast<int64_t>(parts.size()) < max_splits; };
  if (separator) {
    while (may_split()) {
      const size_t at = text.rfind(*separator);
      if (at == std::string_view::npos) break;
      parts.emplace_back(text.substr(at + separator->size()));
      text = text.substr(0, at);
    }
    parts.emplace_back(text);
  } else {
    text = strip(text, {}, false, true);
    while (!text.empty() && may_split()) {
      size_t begin = text.size();
      while (begin > 0) {
        const size_t previous = find_previous(text, begin);
        if (is_space(decode_utf8(text, previous).code_point)) break;
        begin = previous;
      }
      parts.emplace_back(text.substr(begin));
      text = strip(text.substr(0, begin), {}, false, true);
    }
    if (!text.empty()) parts.emplace_back(text);
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<std::string> split_lines(std::string_view text, bool keep_ends) {
  std::vector<std::string> lines;
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const DecodedCharacter c = decode_utf8(text, at);
    const uint32_t p = c.code_point;
    const bool breaks = (p >= 0x0A && p <= 0x0D) || (p >= 0x1C && p <= 0x1E) || p == 0x85 ||
                        p == 0x2028 || p == 0x2029;
    size_t next = at + c.length_bytes;
    if (!breaks) {
      at = next;
      continue;
    }
    if (p == '\r' && next < text.size() && text[next] == '\n') ++next;
    lines.emplace_back(text.substr(begin, (keep_ends ? next : at) - begin));
    begin = at = next;
  }
  if (begin < text.size()) lines.emplace_back(text.substr(begin));
  return lines;
}

std::string replace(std::string_view text, std::string_view from, std::string_view to,
                    int64_t count) {
  std::string result;
  int64_t done = 0;
  const auto may_replace = [&] { return count < 0 || done < count; };
  size_t begin = 0;
  if (from.empty()) {
    while (may_replace()) {
      result += to;
      ++done;
      if (begin == text.size()) return result;
      const size_t length = decode_utf8(text, begin).length_bytes;
      result += text.substr(begin, length);
      begin += length;
    }
  }
  while (!from.empty() && may_replace()) {
    const size_t at = text.find(from, begin);
    if (at == std::string_view::npos) break;
    result += text.substr(begin, at - begin);
    result += to;
    begin = at + from.size();
    ++done;
  }
  result += text.substr(begin);
  return result;
}

std::string to_upper(std::string_view text) { return map_characters(text, to_upper_case); }
std::string to_lower(std::string_view text) { return map_characters(text, to_lower_case); }

std::string capitalize(std::string_view text) {
  bool first = true;
  return map_characters(text, [&](uint32_t c) {
    return std::exchange(first, false) ? to_upper_case(c) : to_lower_case(c);
  });
}

std::string title_runs(std::string_view text) {
  bool in_run = false;
  return map_characters(text, [&](uint32_t c) {
    const bool letter = is_letter(c);
    const uint32_t mapped = in_run ? to_lower_case(c) : to_upper_case(c);
    in_run = letter;
    return mapped;
  });
}

std::string title_words(std::string_view text) {
  bool in_word = false;
  return map_characters(text, [&](uint32_t c) {
    const bool separates = is_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
    const uint32_t mapped = in_word ? to_lower_case(c) : to_upper_case(c);
    in_word = !separates;
    return mapped;
  });
}

bool is_letters_digits(std::string_view text, bool allow_letters, bool allow_digits) {
  if (text.empty()) return false;
  for (size_t at = 0; at < text.size();) {
    const DecodedCharacter c = decode_utf8(text, at);
    const bool fits =
        (allow_letters && is_letter(c.code_point)) || (allow_digits && is_numeric(c.code_point));
    if (!fits) return false;
    at += c.length_bytes;
  }
  return true;
}

bool has_case(std::string_view text, bool upper) {
  bool any = false;
  for (size_t at = 0; at < text.size();) {
    const DecodedCharacter c = decode_utf8(text, at);
    const bool is_upper = to_lower_case(c.code_point) != c.code_point;
    const bool is_lower = to_upper_case(c.code_point) != c.code_point;
    if (upper ? is_lower : is_upper) return false;
    any |= upper ? is_upper : is_lower;
    at += c.length_bytes;
  }
  return any;
}

}  // namespace rlx::templates
