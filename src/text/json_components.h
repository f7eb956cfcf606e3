// From the tree of a tokenizer.json to the components of a tokenizer, one function per kind. Each
// throws kUnsupported naming the key and the type for what it does not know, and kCorruptData for a
// missing key or a wrong type.
#pragma once

#include "text/decoder.h"
#include "text/json_document.h"
#include "text/normalizer.h"
#include "text/post_processor.h"
#include "text/pre_tokenizer.h"
#include "text/vocab.h"

namespace rlx {

NormalizerPtr make_normalizer(const JsonNode& node);
PreTokenizerPtr make_pre_tokenizer(const JsonNode& node);
DecoderPtr make_decoder(const JsonNode& node);
// The ids it names must be in `vocab`.
PostProcessor make_post_processor(const JsonNode& node, const Vocab& vocab);

// A pattern is {"String": "..."} or {"Regex": "..."}.
struct JsonPattern {
  std::string text;
  bool is_regex;
};
JsonPattern read_pattern(const JsonNode& node);

}  // namespace rlx
