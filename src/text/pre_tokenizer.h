// The second step of encoding: cutting normalised text into the pieces that the model then encodes
// one by one. A pre-tokenizer narrows pieces that are there; some also rewrite their text.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace rlx {

struct TextPieces {
  struct Range {
    size_t begin, end;  // bytes of `text`; never empty
  };
  std::string text;
  std::vector<Range> ranges;
  // Whether the text is the beginning of what was given to encode.
  bool begins_input = true;
  // Whether the text is the beginning of a segment; false behind bytes that are not UTF-8, where no
  // space is put in front.
  bool begins_segment = true;
};

class TextPreTokenizer {
 public:
  virtual ~TextPreTokenizer() = default;
  // Const use is thread-safe.
  virtual void apply(TextPieces& pieces) const = 0;
};

using PreTokenizerPtr = std::unique_ptr<const TextPreTokenizer>;

// What becomes of the delimiters that a split finds.
enum class SplitBehavior {
  kRemoved,
  kIsolated,            // each is a piece
  kMergedWithPrevious,  // each ends the piece before it
  kMergedWithNext,      // each begins the piece behind it
  kContiguous,          // a run is a piece
};

// kFirst: at the beginning of the input only. (The reference leaves it out if the normaliser
// removed the input's first character; here that makes no difference.)
enum class PrependScheme { kFirst, kAlways, kNever };

// `invert`: what the pattern does not match is the delimiter.
PreTokenizerPtr make_regex_split(std::string_view pattern, SplitBehavior behavior, bool invert);
PreTokenizerPtr make_string_split(std::string delimiter, SplitBehavior behavior, bool invert);
// A character for which `is_delimiter` holds is a delimiter.
PreTokenizerPtr make_character_split(bool (*is_delimiter)(uint32_t), SplitBehavior behavior);
// Bytes to the byte-level alphabet, after an optional space in front and an optional split by
// GPT-2's pattern.
PreTokenizerPtr make_byte_level(bool add_prefix_space, bool use_regex);
// Spaces become `replacement`, which also begins the text according to `scheme`; with `split`,
// every replacement begins a piece.
PreTokenizerPtr make_metaspace(std::string replacement, PrependScheme scheme, bool split);
// BERT's: white space goes, each punctuation character is a piece.
PreTokenizerPtr make_bert_pre_tokenizer();
PreTokenizerPtr make_pre_tokenizer_sequence(std::vector<PreTokenizerPtr> steps);

// GPT-2's pattern, which ByteLevel splits by.
inline constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

}  // namespace rlx
