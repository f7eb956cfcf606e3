// gpt-oss: experts in MXFP4 with biases and a clamped gate, attention sinks, a sliding window on
// every other layer, yarn positions whose ramp is not rounded.
#include "models/experts.h"
#include "models/families.h"
#include "ops/elementwise.h"
#include "ops/view.h"

namespace rlx {
namespace {

class ExpertLayers {
 public:
  explicit ExpertLayers(Decoder& decoder)
      : decoder_(decoder),
        sizes_(read_expert_sizes(decoder.file(), "intermediate_size")),
        limit_(decoder.file().find_float({"", "swiglu_limit"}).value_or(7)) {}

  ValueId feed_forward(ValueId x, int64_t layer) {
    decoder_.set_source(layer, "ffn");
    const int64_t hidden = decoder_.config().hidden_size;
    const ValueId tokens = flatten_tokens(decoder_, x);
    const ValueId scores = decoder_.project(
        tokens, layer, {"ffn_gate_inp", "mlp.router"},
        {.out = sizes_.num_experts, .in = hidden, .bias = Blocks::Bias::kRequired});
    const Routing routing =
        choose_experts(decoder_, scores, sizes_.num_active, RouterSoftmax::kAfterChoice, false);
    const ValueId y =
        multiply(gate(tokens, layer, routing), layer, {"ffn_down_exps", "mlp.experts.down_proj"},
                 hidden, sizes_.ffn_size, routing);
    return unflatten_tokens(decoder_, sum_experts(decoder_, y, routing));
  }

 private:
  ValueId multiply(ValueId x, int64_t layer, WeightName name, int64_t out, int64_t in,
                   const Routing& routing) {
    const ValueId y = multiply_experts(decoder_, x, load_bank(layer, name, out, in), routing);
    const ValueId bias = decoder_.load_f32(layer, name, {sizes_.num_experts, out},
                                           decoder_.is_gguf() ? ".bias" : "_bias");
    return add_expert_bias(decoder_, y, bias, routing);
  }

  // Safetensors hold packed experts as [experts, out, in], unpacked ones as [experts, in, out].
  ValueId load_bank(int64_t layer, WeightName name, int64_t out, int64_t in) {
    if (decoder_.is_gguf()) {
      return decoder_.load(layer, name, {sizes_.num_experts, out, in});
    }
    const WeightInfo* info = decoder_.file().find(decoder_.weight_name(layer, name, ""));
    if (info == nullptr || is_packed(info->dtype)) {
      return decoder_.load(layer, name, {sizes_.num_experts, out, in}, "");
    }
    return decoder_.builder().add(Transpose{.permutation = {0, 2, 1}},
                                  {decoder_.load(layer, name, {sizes_.num_experts, in, out}, "")});
  }

  // (up + 1) * gate * sigmoid(1.702 gate), gate and up clamped. Safetensors alternate the rows of
  // gate and up in one bank; GGUF has a bank for each.
  ValueId gate(ValueId tokens, int64_t layer, const Routing& routing) {
    const int64_t hidden = decoder_.config().hidden_size, ffn = sizes_.ffn_size;
    ValueId gate, up;
    if (decoder_.is_gguf()) {
      gate = multiply(tokens, layer, {"ffn_gate_exps", ""}, ffn, hidden, routing);
      up = multiply(tokens, layer, {"ffn_up_exps", ""}, ffn, hidden, routing);
    } else {
      const ValueId both =
          multiply(tokens, layer, {"", "mlp.experts.gate_up_proj"}, 2 * ffn, hidden, routing);
      gate = decoder_.slice_last(both, 0, ffn, 2);
      up = decoder_.slice_last(both, 1, ffn, 2);
    }
    Builder& builder = decoder_.builder();
    gate = builder.add(Clamp{.high = limit_}, {gate});
    up = builder.add(Clamp{.low = -limit_, .high = limit_}, {up});
    const ValueId open = builder.add(Sigmoid{}, {decoder_.scale(gate, 1.702)});
    const ValueId one = builder.add_scalar(DType::kF32, 1);
    return builder.add(Mul{}, {decoder_.add(up, one), builder.add(Mul{}, {gate, open})});
  }

  Decoder& decoder_;
  const ExpertSizes sizes_;
  const double limit_;
};

}  // namespace

Graph build_gpt_oss(const ModelFile& file, const GraphOptions& options) {
  check_gated_silu(file);
  Decoder decoder(file, read_transformer_config(file, {.default_head_size = 64}), options);
  const TransformerConfig& config = decoder.config();
  const auto windows =
      read_windows(file, config.num_layers, [](int64_t layer) { return layer % 2 == 0; });
  Decoder::AttentionOptions attention;
  attention.rope = decoder.rope_table({.default_base = 150000, .gguf_truncate = false});
  if (decoder.is_gguf() || file.find_bool({"", "attention_bias"}).value_or(true)) {
    attention.qkv_bias = attention.output_bias = Blocks::Bias::kRequired;
  }
  ExpertLayers experts(decoder);
  PreNormLayers layers;
  layers.ffn_norm = {"post_attention_norm", "post_attention_layernorm"};
  layers.attention = [&](ValueId x, int64_t layer) {
    attention.window = windows[static_cast<size_t>(layer)];
    attention.sinks = decoder.load_f32(layer, {"attn_sinks", "self_attn.sinks"}, {config.num_heads},
                                       decoder.is_gguf() ? ".weight" : "");
    return decoder.self_attention(x, layer, attention);
  };
  layers.feed_forward = [&](ValueId x, int64_t layer) { return experts.feed_forward(x, layer); };
  return build_pre_norm_decoder(decoder, layers);
}

}  // namespace rlx
