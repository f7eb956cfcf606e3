// The way back: token texts become the text that they stand for. A decoder is a chain of steps over
// a list of token texts, which in the end are put together. Steps may leave bytes that are not
// UTF-8: the tokenizer replaces them, or waits for the rest when it streams.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace rlx {

class TokenDecoder {
 public:
  virtual ~TokenDecoder() = default;
  // Rewrites the list in place. Const use is thread-safe.
  virtual void apply(std::vector<std::string>& tokens) const = 0;
};

using DecoderPtr = std::unique_ptr<const TokenDecoder>;

// Characters of the byte-level alphabet to bytes; a token with any other character stays as it is.
DecoderPtr make_byte_level_decoder();
// "<0xNN>" to the byte.
DecoderPtr make_byte_fallback_decoder();
// Tokens other than the first lose `prefix` or else get a space in front; `cleanup` removes the
// space before punctuation and English contractions.
DecoderPtr make_word_piece_decoder(std::string prefix, bool cleanup);
// The `cleanup` of the WordPiece decoder alone.
DecoderPtr make_clean_up_decoder();
// `replacement` to spaces; with `strip_first`, the first token loses it.
DecoderPtr make_metaspace_decoder(std::string replacement, bool strip_first);
// `suffix` to a space, or to nothing at the end.
DecoderPtr make_bpe_decoder(std::string suffix);
DecoderPtr make_replace_decoder(std::string from, std::string to);
DecoderPtr make_regex_replace_decoder(std::string_view pattern, std::string to);
// Each token loses up to `start` leading and `stop` trailing copies of `content`.
DecoderPtr make_strip_decoder(std::string content, size_t start, size_t stop);
// All tokens become one.
DecoderPtr make_fuse_decoder();
// A space between tokens: what a tokenizer without a decoder does.
DecoderPtr make_join_decoder();
DecoderPtr make_decoder_sequence(std::vector<DecoderPtr> steps);

}  // namespace rlx
