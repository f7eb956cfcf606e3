// Phi-3 and Phi-4 mini: as Llama, with one projection for query, key and value, and one for gate
// and up.
#include "models/families.h"
#include "ops/elementwise.h"

namespace rlx {

Graph build_phi3(const ModelFile& file, const GraphOptions& options) {
  check_gated_silu(file);
  Decoder decoder(file, read_transformer_config(file), options);
  const TransformerConfig& config = decoder.config();
  const int64_t hidden = config.hidden_size, ffn = config.ffn_size;
  const int64_t heads = config.num_heads + 2 * config.num_kv_heads;
  const auto windows = read_windows(file, config.num_layers, [](int64_t) { return true; });
  Decoder::AttentionOptions attention;
  // Early files call the scaling by the name of another.
  attention.rope = decoder.rope_table({.yarn_is_longrope = true});

  PreNormLayers layers;
  layers.attention = [&](ValueId x, int64_t layer) {
    decoder.set_source(layer, "attn");
    attention.window = windows[static_cast<size_t>(layer)];
    const ValueId qkv = decoder.project(x, layer, {"attn_qkv", "self_attn.qkv_proj"},
                                        {.out = heads * config.head_size, .in = hidden});
    const ValueId joined = decoder.attend(decoder.split_heads(qkv), layer, attention);
    return decoder.project(joined, layer, {"attn_output", "self_attn.o_proj"},
                           {.out = hidden, .in = config.num_heads * config.head_size});
  };
  layers.feed_forward = [&](ValueId x, int64_t layer) {
    decoder.set_source(layer, "ffn");
    const ValueId both =
        decoder.project(x, layer, {"ffn_up", "mlp.gate_up_proj"}, {.out = 2 * ffn, .in = hidden});
    const ValueId gated = decoder.builder().add(
        Swiglu{}, {decoder.slice_last(both, 0, ffn), decoder.slice_last(both, ffn, ffn)});
    return decoder.project(gated, layer, {"ffn_down", "mlp.down_proj"}, {.out = hidden, .in = ffn});
  };
  return build_pre_norm_decoder(decoder, layers);
}

}  // namespace rlx
