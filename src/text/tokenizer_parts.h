// What a Tokenizer is made of. The loaders fill this in; the order of the members is the order in
// which encoding uses them.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "text/added_tokens.h"
#include "text/decoder.h"
#include "text/normalizer.h"
#include "text/post_processor.h"
#include "text/pre_tokenizer.h"
#include "text/token_model.h"
#include "text/vocab.h"

namespace rlx {

struct TokenizerParts {
  Vocab vocab;                          // of the model and the added tokens
  std::vector<bool> is_special;         // per id
  AddedTokens raw_added_tokens;         // looked for in the text as given
  AddedTokens normalized_added_tokens;  // looked for after the normaliser
  NormalizerPtr normalizer;             // may be null
  PreTokenizerPtr pre_tokenizer;        // may be null: a segment is one piece
  std::unique_ptr<const TokenModel> model;
  PostProcessor post_processor;
  DecoderPtr decoder;
  // Per id, if the decoder is byte-level (else empty): the text is not in the byte-level alphabet
  // but literal, as that of added tokens is.
  std::vector<bool> is_literal;
  // Every byte has a token, so bytes that are not UTF-8 are kept (in the byte-level alphabet).
  bool keeps_invalid_bytes = false;
  std::optional<int32_t> bos_id, eos_id;
};

}  // namespace rlx
