#include "models/config.h"

#include <algorithm>

#include "base/error.h"

namespace rlx {
namespace {

int64_t read_head_size(const ModelFile& file, const TransformerConfig& config, ConfigKey key,
                       int64_t default_size) {
  auto head_size = file.find_int(key);
  if (!head_size && default_size > 0 && file.format() == ModelFormat::kSafetensors) {
    head_size = default_size;
  }
  if (!head_size && config.hidden_size % config.num_heads != 0) {
    throw_error(ErrorCode::kCorruptData, "{}: A hidden size of {} does not divide into {} heads.",
                file.config_path(), config.hidden_size, config.num_heads);
  }
  return check_range(file, "head size", head_size.value_or(config.hidden_size / config.num_heads),
                     1, 65536);
}

}  // namespace

int64_t check_range(const ModelFile& file, std::string_view what, int64_t value, int64_t low,
                    int64_t high) {
  if (value < low || value > high) {
    throw_error(ErrorCode::kCorruptData, "{}: The {} is {}, but {} to {} is expected.",
                file.config_path(), what, value, low, high);
  }
  return value;
}

int64_t read_size(const ModelFile& file, std::string_view what, ConfigKey key,
                  std::optional<int64_t> fallback) {
  constexpr int64_t kMost = int64_t{1} << 31;
  const auto value = file.find_int(key);
  if (!value && fallback) return check_range(file, what, *fallback, 1, kMost);
  return check_range(file, what, file.read_int(key), 1, kMost);
}

void check_choice(const ModelFile& file, ConfigKey key, std::span<const std::string_view> known) {
  const auto value = file.find_string(key);
  if (!value || std::find(known.begin(), known.end(), *value) != known.end()) return;
  throw_error(ErrorCode::kUnsupported, "{}: The key '{}' is '{}', but only {} is supported.",
              file.config_path(), file.format() == ModelFormat::kGguf ? key.gguf : key.hf, *value,
              fmt::join(known, ", "));
}

TransformerConfig read_transformer_config(const ModelFile& file, const TransformerKeys& keys) {
  TransformerConfig config;
  config.vocab_size = read_vocab_size(file);
  config.context_length =
      read_size(file, "context length", {".context_length", keys.context_length});
  config.hidden_size = read_size(file, "hidden size", {".embedding_length", keys.hidden_size});
  config.num_layers = check_range(file, "number of layers",
                                  file.read_int({".block_count", keys.num_layers}), 1, 10000);
  config.num_heads = read_size(file, "number of heads", {".attention.head_count", keys.num_heads});
  config.num_kv_heads =
      read_size(file, "number of key/value heads", {".attention.head_count_kv", keys.num_kv_heads},
                config.num_heads);
  if (config.num_heads % config.num_kv_heads != 0) {
    throw_error(ErrorCode::kCorruptData, "{}: {} heads cannot be grouped over {} key/value heads.",
                file.config_path(), config.num_heads, config.num_kv_heads);
  }
  config.head_size = read_head_size(file, config, {".attention.key_length", keys.head_size},
                                    keys.default_head_size);
  const auto value_size = file.find_int({".attention.value_length", ""});
  if (value_size && *value_size != config.head_size) {
    throw_error(ErrorCode::kUnsupported,
                "{}: Values of {} elements a head beside keys of {} are not supported.",
                file.config_path(), *value_size, config.head_size);
  }
  std::optional<int64_t> default_ffn;
  if (keys.default_ffn_factor > 0) default_ffn = keys.default_ffn_factor * config.hidden_size;
  config.ffn_size =
      read_size(file, "feed-forward size", {".feed_forward_length", keys.ffn_size}, default_ffn);
  config.norm_eps = file.read_float(keys.norm_eps);
  return config;
}

int64_t read_vocab_size(const ModelFile& file) {
  if (file.format() == ModelFormat::kSafetensors) {
    return read_size(file, "vocabulary size", {"", "vocab_size"});
  }
  // The embedding has a row per token: the surest source.
  const WeightInfo* embedding = file.find("token_embd.weight");
  const int64_t rows =
      embedding != nullptr && embedding->shape.size() == 2 ? embedding->shape[0] : 0;
  return read_size(file, "vocabulary size", {".vocab_size", ""}, rows);
}

namespace {

// Whether each layer slides, as the file lists it; nothing when it does not.
std::optional<std::vector<bool>> find_sliding_layers(const ModelFile& file) {
  if (file.gguf() != nullptr) {
    const std::string key = file.architecture() + ".attention.sliding_window_pattern";
    const GgufValue* value = file.gguf()->find(key);
    const bool is_list = value != nullptr && value->type == GgufType::kArray;
    return is_list ? file.gguf()->find_bool_array(key) : std::nullopt;
  }
  const auto types = file.find_strings({"", "layer_types"});
  if (!types) return std::nullopt;
  std::vector<bool> sliding;
  for (const std::string& type : *types) {
    sliding.push_back(type == "sliding_attention");
    if (!sliding.back() && type != "full_attention") {
      throw_error(ErrorCode::kUnsupported,
                  "{}: Layer {} is of the type '{}', but only full_attention and "
                  "sliding_attention are supported.",
                  file.config_path(), sliding.size() - 1, type);
    }
  }
  return sliding;
}

}  // namespace

std::vector<int64_t> read_windows(const ModelFile& file, int64_t num_layers,
                                  const std::function<bool(int64_t layer)>& slides) {
  std::vector<int64_t> windows(static_cast<size_t>(num_layers), 0);
  const int64_t window =
      check_range(file, "sliding window",
                  file.find_int({".attention.sliding_window", "sliding_window"}).value_or(0), 0,
                  int64_t{1} << 31);
  const auto listed = find_sliding_layers(file);
  if (listed && static_cast<int64_t>(listed->size()) != num_layers) {
    throw_error(ErrorCode::kCorruptData,
                "{}: The types of {} layers are listed, but there are {} layers.",
                file.config_path(), listed->size(), num_layers);
  }
  for (size_t layer = 0; layer < windows.size(); ++layer) {
    if (listed ? (*listed)[layer] : slides(static_cast<int64_t>(layer))) windows[layer] = window;
  }
  return windows;
}

std::vector<int64_t> read_qwen_windows(const ModelFile& file, int64_t num_layers,
                                       QwenWindows which) {
  if (!file.find_bool({"", "use_sliding_window"}).value_or(false)) {
    return std::vector<int64_t>(static_cast<size_t>(num_layers), 0);
  }
  if (which == QwenWindows::kAllLayers) {
    return std::vector<int64_t>(
        static_cast<size_t>(num_layers),
        check_range(file, "sliding window", file.find_int({"", "sliding_window"}).value_or(4096), 1,
                    int64_t{1} << 31));
  }
  constexpr int64_t kDefaultFirst = 28;  // what the configuration's class has
  const int64_t first = file.find_int({"", "max_window_layers"}).value_or(kDefaultFirst);
  return read_windows(file, num_layers, [&](int64_t layer) { return layer >= first; });
}

}  // namespace rlx
