// Qwen2 and Qwen2.5 (dense): as Llama, with biases on query, key and value.
#include "models/families.h"

namespace rlx {

Graph build_qwen2(const ModelFile& file, const GraphOptions& options) {
  check_gated_silu(file);
  Decoder decoder(file, read_transformer_config(file), options);
  Decoder::AttentionOptions attention;
  attention.rope = decoder.rope_table();
  attention.qkv_bias = Blocks::Bias::kRequired;
  return build_gated_decoder(decoder, attention,
                             read_qwen_windows(file, decoder.config().num_layers));
}

}  // namespace rlx
