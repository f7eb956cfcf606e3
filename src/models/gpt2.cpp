// GPT-2: learned positions, layer norms, one projection for query, key and value, plain GELU.
// Safetensors hold its matrices as [in, out], with or without "transformer." before the names.
#include <cmath>

#include "base/error.h"
#include "models/activations.h"
#include "models/families.h"
#include "ops/elementwise.h"
#include "ops/move.h"

namespace rlx {
namespace {

constexpr TransformerKeys kKeys{.context_length = "n_positions",
                                .hidden_size = "n_embd",
                                .num_layers = "n_layer",
                                .num_heads = "n_head",
                                .num_kv_heads = "",
                                .head_size = "",
                                .ffn_size = "n_inner",
                                .norm_eps = {".attention.layer_norm_epsilon", "layer_norm_epsilon"},
                                .default_ffn_factor = 4};

ValueId embed(Decoder& decoder, const std::string& prefix) {
  const std::string tokens = prefix + "wte", positions = prefix + "wpe";
  const ValueId x = decoder.embed({"token_embd", tokens});
  const TransformerConfig& config = decoder.config();
  const ValueId table =
      decoder.load(-1, {"position_embd", positions}, {config.context_length, config.hidden_size});
  Builder& builder = decoder.builder();
  ValueId rows = builder.add(Gather{.axis = 0}, {table, decoder.positions()});
  if (builder.type(rows).dtype != DType::kF32) {
    rows = builder.add(Cast{.dtype = DType::kF32}, {rows});
  }
  return decoder.add(x, rows);
}

ValueId attend(Decoder& decoder, ValueId x, int64_t layer, double scale) {
  const int64_t hidden = decoder.config().hidden_size;
  decoder.set_source(layer, "attn");
  const ValueId qkv = decoder.project(
      x, layer, {"attn_qkv", "attn.c_attn"},
      {.out = 3 * hidden, .in = hidden, .bias = Blocks::Bias::kRequired, .hf_input_major = true});
  const ValueId joined = decoder.attend(decoder.split_heads(qkv), layer, {.scale = scale});
  return decoder.project(
      joined, layer, {"attn_output", "attn.c_proj"},
      {.out = hidden, .in = hidden, .bias = Blocks::Bias::kRequired, .hf_input_major = true});
}

ValueId feed_forward(Decoder& decoder, ValueId x, int64_t layer, ActivationKind activation) {
  const int64_t hidden = decoder.config().hidden_size, ffn = decoder.config().ffn_size;
  decoder.set_source(layer, "ffn");
  const ValueId up = decoder.project(
      x, layer, {"ffn_up", "mlp.c_fc"},
      {.out = ffn, .in = hidden, .bias = Blocks::Bias::kRequired, .hf_input_major = true});
  return decoder.project(
      activate(decoder, up, activation), layer, {"ffn_down", "mlp.c_proj"},
      {.out = hidden, .in = ffn, .bias = Blocks::Bias::kRequired, .hf_input_major = true});
}

}  // namespace

Graph build_gpt2(const ModelFile& file, const GraphOptions& options) {
  if (file.find_bool({"", "add_cross_attention"}).value_or(false)) {
    throw_error(ErrorCode::kUnsupported, "{}: Cross-attention is not supported.",
                file.config_path());
  }
  const std::string prefix = file.find("wte.weight") != nullptr ? "" : "transformer.";
  Decoder decoder(file, read_transformer_config(file, kKeys), options, prefix + "h.");
  const ActivationKind activation =
      read_activation(file, {"", "activation_function"}, ActivationKind::kGeluTanh);
  const bool scaled = file.find_bool({"", "scale_attn_weights"}).value_or(true);
  const bool by_layer = file.find_bool({"", "scale_attn_by_inverse_layer_idx"}).value_or(false);
  const double head_size = static_cast<double>(decoder.config().head_size);

  ValueId x = embed(decoder, prefix);
  decoder.record_hidden(x);
  for (int64_t layer = 0; layer < decoder.config().num_layers; ++layer) {
    double scale = scaled ? 1 / std::sqrt(head_size) : 1;
    if (by_layer) scale /= static_cast<double>(layer + 1);
    const ValueId normed = decoder.layer_norm(x, layer, {"attn_norm", "ln_1"});
    x = decoder.add(x, attend(decoder, normed, layer, scale));
    const ValueId fed = decoder.layer_norm(x, layer, {"ffn_norm", "ln_2"});
    x = decoder.add(x, feed_forward(decoder, fed, layer, activation));
    decoder.record_hidden(x);
  }
  const std::string last_norm = prefix + "ln_f";
  return decoder.finish(
      decoder.layer_norm(decoder.take_output_rows(x), -1, {"output_norm", last_norm}));
}

}  // namespace rlx
