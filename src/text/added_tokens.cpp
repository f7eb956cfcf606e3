#include "text/added_tokens.h"

#include <algorithm>

#include "text/unicode.h"

namespace rlx {
namespace {

bool begins_with_word(std::string_view text) {
  return !text.empty() && is_word_character(decode_utf8(text, 0).code_point);
}

bool ends_with_word(std::string_view text) {
  return !text.empty() &&
         is_word_character(decode_utf8(text, previous_utf8(text, text.size())).code_point);
}

size_t skip_space_left(std::string_view text, size_t end, size_t limit) {
  while (end > limit) {
    const size_t last = previous_utf8(text, end);
    if (!is_white_space(decode_utf8(text, last).code_point)) break;
    end = last;
  }
  return std::max(end, limit);
}

size_t skip_space_right(std::string_view text, size_t begin) {
  while (begin < text.size()) {
    const DecodedCharacter c = decode_utf8(text, begin);
    if (!is_white_space(c.code_point)) break;
    begin += c.length_bytes;
  }
  return begin;
}

}  // namespace

void AddedTokens::add(AddedToken token) {
  trie_.add(token.content, static_cast<int32_t>(tokens_.size()));
  tokens_.push_back(std::move(token));
}

void AddedTokens::split(std::string_view text, bool parse_special,
                        std::vector<TextSegment>& segments) const {
  size_t done = 0;  // what is before this is in `segments`
  size_t length = 0;
  int32_t index = 0;
  for (size_t at = 0; !trie_.empty() && at < text.size();) {
    if (!trie_.find_longest(text, at, length, index)) {
      ++at;
      continue;
    }
    const AddedToken& token = tokens_[static_cast<size_t>(index)];
    size_t begin = at;
    size_t end = at + length;
    at = end;  // matches do not overlap, whether they are taken or not
    if (token.special && !parse_special) continue;
    if (token.single_word &&
        (ends_with_word(text.substr(0, begin)) || begins_with_word(text.substr(end)))) {
      continue;
    }
    // White space taken by the token before may reach into this one's.
    begin = std::max(begin, done);
    if (token.lstrip) begin = skip_space_left(text, begin, done);
    if (token.rstrip) end = skip_space_right(text, end);
    if (done < begin) segments.push_back({done, begin, TextSegment::kText});
    segments.push_back({begin, std::max(begin, end), token.id});
    done = std::max(begin, end);
  }
  if (done < text.size()) segments.push_back({done, text.size(), TextSegment::kText});
}

}  // namespace rlx
