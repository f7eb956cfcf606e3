// Llama 1 to 3, and what is built like it under the same name, such as SmolLM and SmolLM2:
// pre-norm, rotary positions, grouped heads, gated SiLU. Mistral differs in safetensors by its
// sliding window; its GGUF files go by the name "llama", and few of them have the window.
#include "models/families.h"

namespace rlx {

namespace {

Graph build(const ModelFile& file, const GraphOptions& options, bool sliding) {
  check_gated_silu(file);
  Decoder decoder(file, read_transformer_config(file), options);
  Decoder::AttentionOptions attention;
  attention.rope = decoder.rope_table();
  // GGUF files of this architecture hold query and key rows permuted for adjacent pairs.
  attention.interleaved_rope = decoder.is_gguf();
  if (file.find_bool({"", "attention_bias"}).value_or(false)) {
    attention.qkv_bias = attention.output_bias = Blocks::Bias::kRequired;
  }
  const TransformerConfig& config = decoder.config();
  if (file.find_bool({"", "mlp_bias"}).value_or(false)) {
    const int64_t wide[] = {config.ffn_size}, narrow[] = {config.hidden_size};
    for (int64_t layer = 0; layer < config.num_layers; ++layer) {
      decoder.check_weight(layer, {"", "mlp.gate_proj"}, wide, ".bias");
      decoder.check_weight(layer, {"", "mlp.up_proj"}, wide, ".bias");
      decoder.check_weight(layer, {"", "mlp.down_proj"}, narrow, ".bias");
    }
  }
  std::vector<int64_t> windows;
  if (sliding || decoder.is_gguf()) {
    windows = read_windows(file, decoder.config().num_layers, [](int64_t) { return true; });
  }
  return build_gated_decoder(decoder, attention, windows);
}

}  // namespace

Graph build_llama(const ModelFile& file, const GraphOptions& options) {
  return build(file, options, false);
}

Graph build_mistral(const ModelFile& file, const GraphOptions& options) {
  return build(file, options, true);
}

}  // namespace rlx
