// Reading a model's configuration: the sizes that every family has, each checked where it is read,
// so that a graph is never built from an impossible one.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "models/model_file.h"

namespace rlx {

// A size: 1 to 2^31. An absent one is the fallback; without a fallback that throws kCorruptData
// naming the key. `what` names the value in errors ("hidden size").
int64_t read_size(const ModelFile& file, std::string_view what, ConfigKey key,
                  std::optional<int64_t> fallback = std::nullopt);

// Returns the value; throws kCorruptData naming file and value when it is outside [low, high].
int64_t check_range(const ModelFile& file, std::string_view what, int64_t value, int64_t low,
                    int64_t high);

// Throws kUnsupported unless the text at the key is absent or one of `known`: for values of which a
// family builds only some, such as the activation.
void check_choice(const ModelFile& file, ConfigKey key, std::span<const std::string_view> known);

// What all transformers here have in common.
struct TransformerConfig {
  int64_t vocab_size = 0;
  int64_t context_length = 0;  // that the model was made for
  int64_t hidden_size = 0;
  int64_t num_layers = 0;
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;
  int64_t head_size = 0;
  int64_t ffn_size = 0;
  double norm_eps = 1e-5;
};

// Where the values above stand in config.json, and the norm's epsilon in both formats. GGUF has one
// spelling for the others.
struct TransformerKeys {
  std::string_view context_length = "max_position_embeddings";
  std::string_view hidden_size = "hidden_size";
  std::string_view num_layers = "num_hidden_layers";
  std::string_view num_heads = "num_attention_heads";
  std::string_view num_kv_heads = "num_key_value_heads";
  std::string_view head_size = "head_dim";
  std::string_view ffn_size = "intermediate_size";
  ConfigKey norm_eps = {".attention.layer_norm_rms_epsilon", "rms_norm_eps"};
  int64_t default_ffn_factor = 0;  // times the hidden size when ffn_size is absent; 0: required
  int64_t default_head_size = 0;   // where config.json has none; 0: the hidden size over the heads
};

// Throws kCorruptData naming a missing or impossible value (zero layers, heads that do not divide,
// sizes over 2^31).
TransformerConfig read_transformer_config(const ModelFile& file, const TransformerKeys& keys = {});

// Tokens of the vocabulary: vocab_size, or in GGUF the rows of the embedding.
int64_t read_vocab_size(const ModelFile& file);

// The sliding window of each layer, 0 for none. The width is `.attention.sliding_window` or
// sliding_window; without one, or with a width of 0, nothing slides. Which layers slide is in
// layer_types, or `.attention.sliding_window_pattern`; else it is those for which `slides` holds.
std::vector<int64_t> read_windows(const ModelFile& file, int64_t num_layers,
                                  const std::function<bool(int64_t layer)>& slides);

// The same for the Qwen families, whose windows use_sliding_window switches on: for the layers from
// max_window_layers on, or for all of them.
enum class QwenWindows : uint8_t { kUpperLayers, kAllLayers };
std::vector<int64_t> read_qwen_windows(const ModelFile& file, int64_t num_layers,
                                       QwenWindows which = QwenWindows::kUpperLayers);

}  // namespace rlx
