// What the key tokenizer.ggml.pre stands for. A GGUF file of model "gpt2" does not carry its
// pre-tokenizer, only a name for it; this table says which patterns the name means. The facts are
// those of the tokenizer.json files that the models were published with, grouped as in llama.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace rlx {

struct GgufPre {
  std::span<const std::string_view> names;
  // Each pattern cuts the pieces that the one before left; what it matches and what lies between
  // are pieces. Bytes are mapped to the byte-level alphabet afterwards.
  std::span<const std::string_view> patterns;
  bool ignore_merges = false;  // a piece that is a token is not split
  bool add_bos = false;        // if the file does not say
  bool nfc = false;            // text is normalised to NFC first
};

// Throws kUnsupported naming `name` and the known names.
const GgufPre& find_gguf_pre(std::string_view name);

// All known names, for tests and messages: "bloom, chatglm-bpe, ...".
std::string known_gguf_pre_names();

std::span<const GgufPre> gguf_pre_table();

}  // namespace rlx
