// Tokens that are recognised in a text before anything else: control tokens such as <|im_end|>, and
// words added to a trained vocabulary. The longest one wins at the leftmost place.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/byte_trie.h"

namespace rlx {

struct AddedToken {
  std::string content;
  int32_t id = 0;
  bool special = false;      // a control token: see EncodeOptions::parse_special
  bool lstrip = false;       // takes the white space before it
  bool rstrip = false;       // takes the white space behind it
  bool single_word = false;  // not inside a word
};

// A part of a text: one added token, or the text between two.
struct TextSegment {
  size_t begin, end;
  int32_t id;  // of the added token, or kText
  static constexpr int32_t kText = -1;
};

class AddedTokens {
 public:
  // `content` of each token is what is looked for.
  void add(AddedToken token);
  bool empty() const { return trie_.empty(); }

  // Appends the parts of `text` in order, none of them empty. `parse_special` false: special tokens
  // are text.
  void split(std::string_view text, bool parse_special, std::vector<TextSegment>& segments) const;

 private:
  std::vector<AddedToken> tokens_;
  ByteTrie trie_;  // content to index in tokens_
};

}  // namespace rlx
