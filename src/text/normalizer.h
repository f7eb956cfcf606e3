// The first step of encoding: rewriting text (Unicode forms, case, spaces) before it is split. A
// normaliser sees valid UTF-8, a segment between added tokens at a time, and leaves valid UTF-8.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace rlx {

class TextNormalizer {
 public:
  virtual ~TextNormalizer() = default;
  // Rewrites `text` in place. Const use is thread-safe.
  virtual void apply(std::string& text) const = 0;
};

using NormalizerPtr = std::unique_ptr<const TextNormalizer>;

enum class UnicodeForm { kNfc, kNfd, kNfkc, kNfkd };

struct BertNormalizerOptions {
  bool clean_text = true;            // control characters go, white space becomes a space
  bool handle_chinese_chars = true;  // spaces around CJK ideographs
  bool strip_accents = true;
  bool lowercase = true;
};

NormalizerPtr make_unicode_normalizer(UnicodeForm form);
NormalizerPtr make_lowercase_normalizer();
NormalizerPtr make_strip_accents_normalizer();  // removes nonspacing marks; put NFD before it
NormalizerPtr make_strip_normalizer(bool left, bool right);  // white space at the ends
NormalizerPtr make_prepend_normalizer(std::string prefix);   // not before empty text
NormalizerPtr make_replace_normalizer(std::string from, std::string to);
NormalizerPtr make_regex_replace_normalizer(std::string_view pattern, std::string to);
NormalizerPtr make_bert_normalizer(const BertNormalizerOptions& options);
NormalizerPtr make_byte_level_normalizer();  // bytes to the byte-level alphabet
NormalizerPtr make_nmt_normalizer();         // SentencePiece's clean-up of controls and spaces
// SentencePiece's compiled rules: a little-endian size, a double-array trie of that size, then the
// replacements. Throws kCorruptData if the data contradicts itself.
NormalizerPtr make_precompiled_normalizer(std::string charsmap);
NormalizerPtr make_normalizer_sequence(std::vector<NormalizerPtr> steps);

// Replaces every occurrence of `from` (not empty), left to right.
void replace_all(std::string& text, std::string_view from, std::string_view to);

}  // namespace rlx
