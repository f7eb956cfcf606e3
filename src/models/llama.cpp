// Llama 1 to 3, and what is built like it: pre-norm, rotary positions, grouped heads, gated SiLU.
#include "models/families.h"

namespace rlx {

Graph build_llama(const ModelFile& file, const GraphOptions& options) {
  Decoder::AttentionOptions attention;
  attention.qkv_bias = file.find_bool({"", "attention_bias"}).value_or(false);
  // GGUF files of this architecture hold query and key rows permuted for adjacent pairs.
  attention.interleaved_rope = file.format() == ModelFormat::kGguf;
  return build_pre_norm_decoder(file, options, attention);
}

}  // namespace rlx
