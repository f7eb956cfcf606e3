// Qwen3: as Llama, with an RMS norm on each query and key head. The dense models, and the mixtures
// of experts, in which a router picks a few experts for each token.
#include <algorithm>

#include "models/experts.h"
#include "models/families.h"
#include "ops/elementwise.h"

namespace rlx {
namespace {

Decoder::AttentionOptions make_attention(Decoder& decoder) {
  Decoder::AttentionOptions attention;
  attention.rope = decoder.rope_table();
  attention.head_norm = true;
  if (decoder.file().find_bool({"", "attention_bias"}).value_or(false)) {
    attention.qkv_bias = attention.output_bias = Blocks::Bias::kRequired;
  }
  return attention;
}

class ExpertLayers {
 public:
  explicit ExpertLayers(Decoder& decoder)
      : decoder_(decoder),
        sizes_(read_expert_sizes(decoder.file(), "moe_intermediate_size")),
        // Files of this kind in GGUF all divide by the sum.
        normalize_(decoder.is_gguf() ||
                   decoder.file().find_bool({"", "norm_topk_prob"}).value_or(false)),
        step_(decoder.file().find_int({"", "decoder_sparse_step"}).value_or(1)),
        dense_layers_(
            decoder.file().find_ints({"", "mlp_only_layers"}).value_or(std::vector<int64_t>{})) {
    check_range(decoder.file(), "decoder_sparse_step", step_, 1, 10000);
  }

  bool has_experts(int64_t layer) const {
    return (layer + 1) % step_ == 0 &&
           std::find(dense_layers_.begin(), dense_layers_.end(), layer) == dense_layers_.end();
  }

  ValueId feed_forward(ValueId x, int64_t layer) {
    if (!has_experts(layer)) return decoder_.feed_forward(x, layer);
    decoder_.set_source(layer, "ffn");
    const int64_t hidden = decoder_.config().hidden_size;
    const ValueId tokens = flatten_tokens(decoder_, x);
    const ValueId scores = decoder_.project(tokens, layer, {"ffn_gate_inp", "mlp.gate"},
                                            {.out = sizes_.num_experts, .in = hidden});
    const Routing routing = choose_experts(decoder_, scores, sizes_.num_active,
                                           RouterSoftmax::kBeforeChoice, normalize_);
    const ValueId gated = multiply_gated(tokens, layer, routing);
    const ValueId down = load_bank(layer, {"ffn_down_exps", "mlp.experts.*.down_proj"},
                                   "mlp.experts.down_proj", hidden, sizes_.ffn_size);
    const ValueId y = multiply_experts(decoder_, gated, down, routing);
    return unflatten_tokens(decoder_, sum_experts(decoder_, y, routing));
  }

 private:
  // silu(gate(x)) * up(x) of the chosen experts.
  ValueId multiply_gated(ValueId tokens, int64_t layer, const Routing& routing) {
    const int64_t hidden = decoder_.config().hidden_size, ffn = sizes_.ffn_size;
    constexpr WeightName kFused{"", "mlp.experts.gate_up_proj"};
    ValueId gate, up;
    if (!decoder_.is_gguf() && decoder_.has_weight(layer, kFused, "")) {
      const ValueId both = multiply_experts(
          decoder_, tokens, decoder_.load(layer, kFused, {sizes_.num_experts, 2 * ffn, hidden}, ""),
          routing);
      gate = decoder_.slice_last(both, 0, ffn);
      up = decoder_.slice_last(both, ffn, ffn);
    } else {
      const auto multiply = [&](WeightName name) {
        return multiply_experts(
            decoder_, tokens,
            load_expert_bank(decoder_, layer, name, sizes_.num_experts, ffn, hidden), routing);
      };
      gate = multiply({"ffn_gate_exps", "mlp.experts.*.gate_proj"});
      up = multiply({"ffn_up_exps", "mlp.experts.*.up_proj"});
    }
    return decoder_.builder().add(Swiglu{}, {gate, up});
  }

  // Safetensors hold a tensor per expert, or the whole bank under the name `fused`.
  ValueId load_bank(int64_t layer, WeightName name, std::string_view fused, int64_t out,
                    int64_t in) {
    if (!decoder_.is_gguf() && decoder_.has_weight(layer, {"", fused}, "")) {
      return decoder_.load(layer, {"", fused}, {sizes_.num_experts, out, in}, "");
    }
    return load_expert_bank(decoder_, layer, name, sizes_.num_experts, out, in);
  }

  Decoder& decoder_;
  const ExpertSizes sizes_;
  const bool normalize_;
  const int64_t step_;
  const std::vector<int64_t> dense_layers_;
};

}  // namespace

Graph build_qwen3(const ModelFile& file, const GraphOptions& options) {
  check_gated_silu(file);
  Decoder decoder(file, read_transformer_config(file, {.default_head_size = 128}), options);
  return build_gated_decoder(decoder, make_attention(decoder),
                             read_qwen_windows(file, decoder.config().num_layers));
}

Graph build_qwen3_moe(const ModelFile& file, const GraphOptions& options) {
  check_gated_silu(file);
  Decoder decoder(file, read_transformer_config(file), options);
  Decoder::AttentionOptions attention = make_attention(decoder);
  const auto windows =
      read_qwen_windows(file, decoder.config().num_layers, QwenWindows::kAllLayers);
  ExpertLayers experts(decoder);
  return build_pre_norm_decoder(
      decoder,
      {.attention =
           [&](ValueId x, int64_t layer) {
             attention.window = windows[static_cast<size_t>(layer)];
             return decoder.self_attention(x, layer, attention);
           },
       .feed_forward = [&](ValueId x, int64_t layer) { return experts.feed_forward(x, layer); }});
}

}  // namespace rlx
