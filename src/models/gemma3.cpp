// Gemma 3, the text model: local layers with a sliding window and their own rotary base between
// global ones, scaled embeddings, norms before and after each block, tanh-GELU gates. Safetensors
// hold the norms' weights less one; GGUF files have the one added.
#include <array>
#include <cmath>

#include "base/error.h"
#include "models/families.h"

namespace rlx {
namespace {

double read_attention_scale(const Decoder& decoder) {
  const ModelFile& file = decoder.file();
  const TransformerConfig& config = decoder.config();
  if (const auto size = file.find_float({"", "query_pre_attn_scalar"})) {
    if (!(*size > 0)) {
      throw_error(ErrorCode::kCorruptData,
                  "{}: query_pre_attn_scalar is {}, but it must be positive.", file.config_path(),
                  *size);
    }
    return 1 / std::sqrt(*size);
  }
  if (!decoder.is_gguf()) return 1.0 / 16;  // the configuration's class has 256
  // GGUF does not carry the value; of all models only the one of 27 B, with 62 layers, has another
  // than the head size: the width over the heads.
  const bool is_27b = config.num_layers == 62;
  return 1 / std::sqrt(static_cast<double>(is_27b ? config.hidden_size / config.num_heads
                                                  : config.head_size));
}

void check_text_model(const ModelFile& file) {
  constexpr std::array<std::string_view, 2> kActivations = {"gelu_pytorch_tanh", "gelu_tanh"};
  check_choice(file, {"", "hidden_activation"}, kActivations);
  if (file.format() == ModelFormat::kSafetensors && file.architecture() == "gemma3") {
    throw_error(ErrorCode::kUnsupported,
                "{}: This is Gemma 3 with its image encoder; only the text model, of the type "
                "'gemma3_text', is supported.",
                file.config_path());
  }
  if (file.find_bool({"", "use_bidirectional_attention"}).value_or(false)) {
    throw_error(ErrorCode::kUnsupported, "{}: Bidirectional attention is not supported.",
                file.config_path());
  }
}

ValueId build_layer(Decoder& decoder, ValueId x, int64_t layer,
                    const Decoder::AttentionOptions& attention) {
  const double offset = attention.norm_offset;
  ValueId y = decoder.rms_norm(x, layer, {"attn_norm", "input_layernorm"}, offset);
  y = decoder.self_attention(y, layer, attention);
  y = decoder.rms_norm(y, layer, {"post_attention_norm", "post_attention_layernorm"}, offset);
  x = decoder.add(x, y);
  y = decoder.rms_norm(x, layer, {"ffn_norm", "pre_feedforward_layernorm"}, offset);
  y = decoder.feed_forward(y, layer, Decoder::Gate::kGeluTanh);
  y = decoder.rms_norm(y, layer, {"post_ffw_norm", "post_feedforward_layernorm"}, offset);
  return decoder.add(x, y);
}

}  // namespace

Graph build_gemma3(const ModelFile& file, const GraphOptions& options) {
  check_text_model(file);
  Decoder decoder(file, read_transformer_config(file, {.default_head_size = 256}), options);
  const TransformerConfig& config = decoder.config();
  const ValueId global_rope =
      decoder.rope_table({.section = "rope_parameters.full_attention", .default_base = 1e6});
  const ValueId local_rope =
      decoder.rope_table({.section = "rope_parameters.sliding_attention",
                          .base = {".rope.freq_base_swa", "rope_local_base_freq"},
                          .scaled = false});
  Decoder::AttentionOptions attention;
  attention.head_norm = true;
  attention.norm_offset = decoder.is_gguf() ? 0 : 1;
  attention.scale = read_attention_scale(decoder);
  attention.soft_cap =
      file.find_float({".attn_logit_softcapping", "attn_logit_softcapping"}).value_or(0);
  const int64_t period =
      check_range(file, "sliding window pattern",
                  file.find_int({"", "sliding_window_pattern"}).value_or(6), 1, 10000);
  const auto windows = read_windows(file, config.num_layers,
                                    [&](int64_t layer) { return (layer + 1) % period != 0; });
  ValueId x = decoder.scale(decoder.embed(), std::sqrt(static_cast<double>(config.hidden_size)));
  decoder.record_hidden(x);
  for (int64_t layer = 0; layer < config.num_layers; ++layer) {
    attention.window = windows[static_cast<size_t>(layer)];
    attention.rope = attention.window > 0 ? local_rope : global_rope;
    x = build_layer(decoder, x, layer, attention);
    decoder.record_hidden(x);
  }
  x = decoder.rms_norm(decoder.take_output_rows(x), -1, {"output_norm", "model.norm"},
                       attention.norm_offset);
  return decoder.finish(
      x, file.find_float({".final_logit_softcapping", "final_logit_softcapping"}).value_or(0));
}

}  // namespace rlx
