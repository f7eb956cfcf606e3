#include <utf8proc.h>

#include <cstring>

#include "base/error.h"
#include "text/normalizer.h"
#include "text/unicode.h"

namespace rlx {
namespace {

// A Darts-clone double array: a unit holds an offset to its children, the label that leads to it,
// and whether a value hangs below it.
class DoubleArray {
 public:
  void assign(std::string_view bytes) {
    units_.resize(bytes.size() / 4);
    for (size_t i = 0; i < units_.size(); ++i) {
      uint32_t unit = 0;
      for (size_t j = 0; j < 4; ++j) {
        unit |= static_cast<uint32_t>(static_cast<uint8_t>(bytes[4 * i + j])) << (8 * j);
      }
      units_[i] = unit;
    }
  }

  // The value of the shortest key that `text` starts with, or -1.
  int64_t find_prefix(std::string_view text) const {
    size_t node = 0;
    if (units_.empty()) return -1;
    node ^= offset(units_[node]);
    for (const char c : text) {
      const auto byte = static_cast<uint8_t>(c);
      if (byte == 0) return -1;
      node ^= byte;
      if (node >= units_.size() || label(units_[node]) != byte) return -1;
      const uint32_t unit = units_[node];
      node ^= offset(unit);
      if (((unit >> 8) & 1) != 0) {
        return node < units_.size() ? static_cast<int64_t>(units_[node] & 0x7FFFFFFF) : -1;
      }
    }
    return -1;
  }

 private:
  static uint32_t offset(uint32_t unit) { return (unit >> 10) << ((unit & (1u << 9)) >> 6); }
  static uint32_t label(uint32_t unit) { return unit & (0x80000000u | 0xFF); }

  std::vector<uint32_t> units_;
};

class PrecompiledNormalizer final : public TextNormalizer {
 public:
  explicit PrecompiledNormalizer(std::string_view charsmap) {
    if (charsmap.size() < 4) {
      throw_error(ErrorCode::kCorruptData,
                  "The compiled normalisation rules have {} bytes, but their size field has 4.",
                  charsmap.size());
    }
    uint64_t trie_bytes = 0;
    for (size_t i = 0; i < 4; ++i) {
      trie_bytes |= static_cast<uint64_t>(static_cast<uint8_t>(charsmap[i])) << (8 * i);
    }
    if (trie_bytes % 4 != 0 || trie_bytes > charsmap.size() - 4) {
      throw_error(
          ErrorCode::kCorruptData,
          "The compiled normalisation rules declare a trie of {} bytes, but {} bytes follow "
          "and a trie is made of 4-byte units.",
          trie_bytes, charsmap.size() - 4);
    }
    trie_.assign(charsmap.substr(4, trie_bytes));
    replacements_ = charsmap.substr(4 + trie_bytes);
    if (!replacements_.empty() && replacements_.back() != '\0') {
      throw_error(
          ErrorCode::kCorruptData,
          "The replacements of the compiled normalisation rules do not end in a zero byte.");
    }
  }

  // As in the reference: a grapheme cluster of less than 6 bytes is looked up whole, and the rule
  // of its shortest matching beginning replaces all of it; otherwise each character is looked up.
  void apply(std::string& text) const override {
    std::string out;
    out.reserve(text.size());
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = grapheme_end(text, begin);
      const std::string_view grapheme = std::string_view(text).substr(begin, end - begin);
      if (grapheme.size() >= 6 || !append_replacement(grapheme, out)) {
        for (size_t at = 0; at < grapheme.size();) {
          const size_t length = decode_utf8(grapheme, at).length_bytes;
          const std::string_view character = grapheme.substr(at, length);
          if (!append_replacement(character, out)) out += character;
          at += length;
        }
      }
      begin = end;
    }
    text = std::move(out);
  }

 private:
  static size_t grapheme_end(std::string_view text, size_t begin) {
    utf8proc_int32_t state = 0;
    DecodedCharacter previous = decode_utf8(text, begin);
    size_t at = begin + previous.length_bytes;
    while (at < text.size()) {
      const DecodedCharacter next = decode_utf8(text, at);
      if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(previous.code_point),
                                           static_cast<utf8proc_int32_t>(next.code_point),
                                           &state)) {
        break;
      }
      previous = next;
      at += next.length_bytes;
    }
    return at;
  }

  bool append_replacement(std::string_view text, std::string& out) const {
    const int64_t value = trie_.find_prefix(text);
    if (value < 0 || static_cast<size_t>(value) >= replacements_.size()) return false;
    const std::string_view tail =
        std::string_view(replacements_).substr(static_cast<size_t>(value));
    out += tail.substr(0, tail.find('\0'));
    return true;
  }

  DoubleArray trie_;
  std::string replacements_;
};

}  // namespace

NormalizerPtr make_precompiled_normalizer(std::string charsmap) {
  return std::make_unique<PrecompiledNormalizer>(charsmap);
}

}  // namespace rlx
