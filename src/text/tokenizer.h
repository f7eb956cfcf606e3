// Text to token ids and back. A Tokenizer is made once from a model's own description
// (tokenizer.json, or the tokenizer.ggml.* keys of a GGUF file) and then reproduces what the model
// was trained with: added tokens, normaliser, pre-tokenizer, model, post-processor, decoder. Plain
// data in, plain data out: nothing here knows tensors or files.
//
// Bytes that are not UTF-8. A byte-level tokenizer keeps them: every byte has a token, a run of
// invalid bytes is a word of its own, and `decode_bytes` gives it back. Every other kind sees each
// ill-formed sequence (its longest well-formed beginning) as one U+FFFD. `decode` and StreamDecoder
// always return valid UTF-8, with U+FFFD in place of what is not.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rlx {

struct EncodeOptions {
  // Add the tokens that the model's post-processor puts around a text (beginning, end of text).
  bool add_special = true;
  // Special tokens written in the text become their ids; if false they are plain text. Added tokens
  // that are not special are recognised either way.
  bool parse_special = true;
};

struct TokenizerParts;  // tokenizer_parts.h

// Movable. Const members may be called from several threads at once.
class Tokenizer {
 public:
  explicit Tokenizer(std::unique_ptr<const TokenizerParts> parts);
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  // Any text is accepted. Throws kUnsupported if a character has no token and the model has no
  // token for the unknown (Unigram only; other kinds drop such characters as their reference does).
  std::vector<int32_t> encode(std::string_view text, const EncodeOptions& options = {}) const;

  // The text of a sequence of ids, as valid UTF-8. `skip_special` leaves special tokens out.
  // An id outside [0, vocab_size) throws kOutOfRange naming it and the vocabulary size; an id in
  // range that the vocabulary leaves unused is the empty text.
  std::string decode(std::span<const int32_t> ids, bool skip_special = true) const;

  // The same, before invalid UTF-8 is replaced: the exact bytes that the tokens stand for.
  std::string decode_bytes(std::span<const int32_t> ids, bool skip_special = true) const;

  // One more than the largest id. Ids are in [0, vocab_size).
  int32_t vocab_size() const;
  // The token as the vocabulary spells it (byte-level tokens in their printable alphabet). Empty
  // for an unused id. Throws kOutOfRange like `decode`. The view lives as long as the tokenizer.
  std::string_view token_text(int32_t id) const;
  std::optional<int32_t> find_token(std::string_view text) const;
  // Whether the id is a special (control) token. Throws kOutOfRange like `decode`.
  bool is_special(int32_t id) const;

  // The beginning and end of text. From GGUF: the declared ids. From tokenizer.json, which has no
  // such field: the first and last token that the post-processor adds, if it adds any.
  std::optional<int32_t> bos_id() const;
  std::optional<int32_t> eos_id() const;

 private:
  std::unique_ptr<const TokenizerParts> parts_;
};

// Decodes one id at a time, for text that is shown while it is generated. What `push` and `finish`
// returned, put together, equals `decode` of all ids. Memory and time per id are bounded: a short
// window of past ids gives the context that a decoder needs. The tokenizer must outlive it.
class StreamDecoder {
 public:
  explicit StreamDecoder(const Tokenizer& tokenizer, bool skip_special = true);

  // The text that became complete: never half a UTF-8 character, often empty. Throws like `decode`,
  // and then is unchanged.
  std::string push(int32_t id);
  // What is left, incomplete bytes as U+FFFD; the decoder is then as new.
  std::string finish();

 private:
  const Tokenizer* tokenizer_;
  bool skip_special_;
  std::vector<int32_t> window_;
  size_t emitted_bytes_ = 0;  // of the decoded window
};

// Makes a tokenizer from the text of a Hugging Face tokenizer.json. Supported: models BPE,
// WordPiece and Unigram; the components that the `*_json.cpp` files list. Anything else is refused
// by name (kUnsupported); a file that contradicts itself is kCorruptData. Errors name the file and
// the key. `truncation` and `padding` describe batches and do not take part in encoding one text.
Tokenizer make_tokenizer_from_json(std::string_view json_text,
                                   const std::string& file_name_for_errors);

// The tokenizer.ggml.* keys of a GGUF file. Views need to live only during the call. `pre` names
// the pre-tokenizer of model "gpt2" and is ignored for the others. Optional values that the file
// lacks stay empty and take the defaults of the kind.
struct GgufVocab {
  std::string_view model, pre;
  std::vector<std::string_view> tokens, merges;
  std::vector<float> scores;         // one per token for "llama"; else may be empty
  std::vector<int32_t> token_types;  // one per token, or empty: all are normal
  std::optional<int32_t> bos, eos, unk, pad;
  std::optional<bool> add_bos, add_eos, add_space_prefix;
  std::optional<int32_t> cls, sep;  // "bert": cls_token_id, seperator_token_id
  std::optional<bool> lowercase;    // "bert": normalizer.lowercase; by default true
};

// Makes a tokenizer from GGUF metadata. Models: "gpt2" (byte-level BPE), "llama" (SentencePiece
// BPE), "bert" (WordPiece). Any other model, and a `pre` that is not in the table of gguf_pre.h, is
// kUnsupported naming it and the known ones; contradictions are kCorruptData naming the key.
Tokenizer make_tokenizer_from_gguf(const GgufVocab& vocab, const std::string& file_name_for_errors);

}  // namespace rlx
