// Qwen3 (dense): as Llama, with an RMS norm on each query and key head.
#include "models/families.h"

namespace rlx {

Graph build_qwen3(const ModelFile& file, const GraphOptions& options) {
  Decoder::AttentionOptions attention;
  attention.qkv_bias = file.find_bool({"", "attention_bias"}).value_or(false);
  attention.head_norm = true;
  return build_pre_norm_decoder(file, options, attention);
}

}  // namespace rlx
