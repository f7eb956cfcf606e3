#include "models/decoder.h"

#include <cstring>

#include "base/error.h"
#include "models/rope_frequencies.h"
#include "ops/attention.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/move.h"
#include "ops/norm.h"
#include "ops/view.h"

namespace rlx {
namespace {

int64_t check_range(const ModelFile& file, std::string_view what, int64_t value, int64_t low,
                    int64_t high) {
  if (value < low || value > high) {
    throw_error(ErrorCode::kCorruptData, "{}: The {} is {}, but {} to {} is expected.",
                file.config_path(), what, value, low, high);
  }
  return value;
}

// Linear GGUF and safetensors spellings of one value, read and checked at once.
int64_t read_size(const ModelFile& file, std::string_view what, ConfigKey key,
                  std::optional<int64_t> fallback = std::nullopt) {
  constexpr int64_t kMost = int64_t{1} << 31;
  const auto value = file.find_int(key);
  if (!value && fallback) return *fallback;
  return check_range(file, what, file.read_int(key), 1, kMost);
}

// The embedding has a row per token: the surest source of the vocabulary's size.
int64_t read_vocab_size(const ModelFile& file) {
  if (file.format() == ModelFormat::kSafetensors) {
    return read_size(file, "vocabulary size", {"", "vocab_size"});
  }
  const WeightInfo* embedding = file.find("token_embd.weight");
  const int64_t rows =
      embedding != nullptr && embedding->shape.size() == 2 ? embedding->shape[0] : 0;
  return read_size(file, "vocabulary size", {".vocab_size", ""}, rows);
}

}  // namespace

DecoderConfig read_decoder_config(const ModelFile& file) {
  DecoderConfig config;
  config.vocab_size = read_vocab_size(file);
  config.context_length =
      read_size(file, "context length", {".context_length", "max_position_embeddings"});
  config.hidden_size = read_size(file, "hidden size", {".embedding_length", "hidden_size"});
  config.num_layers = check_range(file, "number of layers",
                                  file.read_int({".block_count", "num_hidden_layers"}), 1, 10000);
  config.num_heads =
      read_size(file, "number of heads", {".attention.head_count", "num_attention_heads"});
  config.num_kv_heads =
      read_size(file, "number of key/value heads",
                {".attention.head_count_kv", "num_key_value_heads"}, config.num_heads);
  config.ffn_size =
      read_size(file, "feed-forward size", {".feed_forward_length", "intermediate_size"});
  if (config.num_heads % config.num_kv_heads != 0) {
    throw_error(ErrorCode::kCorruptData, "{}: {} heads cannot be grouped over {} key/value heads.",
                file.config_path(), config.num_heads, config.num_kv_heads);
  }
  const auto head_size = file.find_int({".attention.key_length", "head_dim"});
  if (!head_size && config.hidden_size % config.num_heads != 0) {
    throw_error(ErrorCode::kCorruptData, "{}: A hidden size of {} does not divide into {} heads.",
                file.config_path(), config.hidden_size, config.num_heads);
  }
  config.head_size = check_range(
      file, "head size", head_size.value_or(config.hidden_size / config.num_heads), 1, 65536);
  config.norm_eps = file.read_float({".attention.layer_norm_rms_epsilon", "rms_norm_eps"});
  return config;
}

Decoder::Decoder(const ModelFile& file, const DecoderConfig& config, const GraphOptions& options)
    : file_(file),
      config_(config),
      options_(options),
      context_(options.context == 0 ? config.context_length : options.context),
      graph_(file.architecture()),
      builder_(graph_) {
  if (context_ < 1 || context_ > config.context_length) {
    throw_error(ErrorCode::kOutOfRange,
                "A context of {} tokens is asked for, but the model is made for 1 to {}.", context_,
                config.context_length);
  }
  if (options.max_tokens < 1) {
    throw_error(ErrorCode::kOutOfRange, "A run of at most {} tokens is asked for; 1 is the least.",
                options.max_tokens);
  }
  graph_.declare_symbol({"tokens", 1, std::min(options.max_tokens, context_)});
  graph_.declare_symbol({"past", 0, context_ - 1});
}

std::string Decoder::weight_name(int64_t layer, std::string_view gguf, std::string_view hf,
                                 std::string_view suffix) const {
  if (file_.format() == ModelFormat::kGguf) {
    return layer < 0 ? fmt::format("{}{}", gguf, suffix)
                     : fmt::format("blk.{}.{}{}", layer, gguf, suffix);
  }
  return layer < 0 ? fmt::format("{}{}", hf, suffix)
                   : fmt::format("model.layers.{}.{}{}", layer, hf, suffix);
}

ValueId Decoder::load(int64_t layer, std::string_view gguf, std::string_view hf,
                      std::vector<int64_t> shape, std::string_view suffix) {
  const std::string name = weight_name(layer, gguf, hf, suffix);
  const WeightInfo* info = file_.find(name);
  if (info == nullptr) {
    throw_error(ErrorCode::kNotFound, "The tensor '{}' is missing.", name);
  }
  if (info->shape != shape) {
    throw_error(ErrorCode::kCorruptData,
                "The tensor '{}' has the shape [{}], but the configuration asks for [{}].", name,
                fmt::join(info->shape, ", "), fmt::join(shape, ", "));
  }
  TensorType type{info->dtype, {}};
  for (int64_t extent : shape) type.shape.push_back(extent);
  return builder_.add_weight(name, std::move(type));
}

void Decoder::set_source(int64_t layer, std::string_view block) {
  builder_.set_source(layer < 0 ? std::string(block) : fmt::format("blk.{}.{}", layer, block));
}

ValueId Decoder::embed() {
  set_source(-1, "token_embd");
  const Dim tokens = Dim::symbol("tokens");
  const ValueId ids = builder_.add_input("input_ids", {DType::kI64, {1, tokens}});
  embedding_ =
      load(-1, "token_embd", "model.embed_tokens", {config_.vocab_size, config_.hidden_size});
  ValueId x = builder_.add(Gather{.axis = 0}, {embedding_, ids});
  if (builder_.type(x).dtype != DType::kF32) x = builder_.add(Cast{.dtype = DType::kF32}, {x});
  record_hidden(x);
  return x;
}

ValueId Decoder::norm(ValueId x, int64_t layer, std::string_view gguf, std::string_view hf) {
  set_source(layer, gguf);
  const Shape& shape = builder_.type(x).shape;
  const ValueId weight = load(layer, gguf, hf, {shape.back().constant()});
  return builder_.add(RmsNorm{.eps = config_.norm_eps}, {x, weight});
}

ValueId Decoder::project(ValueId x, int64_t layer, std::string_view gguf, std::string_view hf,
                         int64_t out, int64_t in, bool bias) {
  const std::string block = builder_.source();
  set_source(layer, gguf);
  const ValueId weight = load(layer, gguf, hf, {out, in});
  ValueId y = builder_.add(Matmul{.transpose_b = true}, {x, weight});
  if (bias) {
    ValueId b = load(layer, gguf, hf, {out}, ".bias");
    if (builder_.type(b).dtype != DType::kF32) b = builder_.add(Cast{.dtype = DType::kF32}, {b});
    y = builder_.add(Add{}, {y, b});
  }
  builder_.set_source(block);
  return y;
}

ValueId Decoder::make_rope_table() {
  const std::string block = builder_.source();
  set_source(-1, "rope");
  const int64_t rotary = file_.find_int({".rope.dimension_count", ""}).value_or(config_.head_size);
  if (rotary < 2 || rotary % 2 != 0 || rotary > config_.head_size) {
    throw_error(
        ErrorCode::kCorruptData,
        "{}: {} rotated elements are asked for, but an even number up to the head size {} is "
        "expected.",
        file_.config_path(), rotary, config_.head_size);
  }
  RopeFrequencies frequencies = read_rope_frequencies(file_, rotary, 10000.0);
  for (float& frequency : frequencies.inverse) {
    frequency = static_cast<float>(round_float(options_.rope_dtype, frequency));
  }
  std::vector<std::byte> bytes(frequencies.inverse.size() * sizeof(float));
  std::memcpy(bytes.data(), frequencies.inverse.data(), bytes.size());
  ValueId inverse = builder_.add_constant({DType::kF32, {rotary / 2}}, std::move(bytes));
  if (file_.format() == ModelFormat::kGguf && file_.find("rope_freqs.weight") != nullptr) {
    // GGUF carries the llama3 scaling as divisors.
    const ValueId divisors = load(-1, "rope_freqs", "", {rotary / 2});
    inverse = builder_.add(Div{}, {inverse, divisors});
  }
  const ValueId positions = builder_.add(
      Iota{.shape = {Dim::symbol("tokens")}, .start = Dim::symbol("past")}, {}, "positions");
  const ValueId table =
      builder_.add(RopeTable{.scale = frequencies.scale}, {positions, inverse}, "rope");
  builder_.set_source(block);
  return table;
}

ValueId Decoder::attend(ValueId x, int64_t layer, const AttentionOptions& options) {
  set_source(layer, "attn");
  if (!rope_table_.is_valid()) rope_table_ = make_rope_table();
  const Dim tokens = Dim::symbol("tokens");
  const int64_t head_size = config_.head_size;
  const int64_t q_size = config_.num_heads * head_size;
  const int64_t kv_size = config_.num_kv_heads * head_size;
  const auto split_heads = [&](ValueId value, int64_t heads) {
    return builder_.add(Reshape{.shape = {1, tokens, heads, head_size}}, {value});
  };
  ValueId q = split_heads(project(x, layer, "attn_q", "self_attn.q_proj", q_size,
                                  config_.hidden_size, options.qkv_bias),
                          config_.num_heads);
  ValueId k = split_heads(project(x, layer, "attn_k", "self_attn.k_proj", kv_size,
                                  config_.hidden_size, options.qkv_bias),
                          config_.num_kv_heads);
  const ValueId v = split_heads(project(x, layer, "attn_v", "self_attn.v_proj", kv_size,
                                        config_.hidden_size, options.qkv_bias),
                                config_.num_kv_heads);
  if (options.head_norm) {
    q = norm(q, layer, "attn_q_norm", "self_attn.q_norm");
    k = norm(k, layer, "attn_k_norm", "self_attn.k_norm");
    set_source(layer, "attn");
  }
  q = builder_.add(Rope{.interleaved = options.interleaved_rope}, {q, rope_table_});
  k = builder_.add(Rope{.interleaved = options.interleaved_rope}, {k, rope_table_});

  const TensorType cache{options_.cache_dtype, {1, context_, config_.num_kv_heads, head_size}};
  const Dim past = Dim::symbol("past");
  const auto append = [&](std::string_view name, ValueId rows) {
    const ValueId state = builder_.add_state(fmt::format("cache.{}.{}", name, layer), cache);
    return builder_.add(CacheAppend{.row = past, .axis = 1}, {state, rows});
  };
  const ValueId keys = append("k", k);
  const ValueId values = append("v", v);
  const ValueId attended =
      builder_.add(Attention{.causal = true, .window = options.window}, {q, keys, values});
  const ValueId joined = builder_.add(Reshape{.shape = {1, tokens, q_size}}, {attended});
  return project(joined, layer, "attn_output", "self_attn.o_proj", config_.hidden_size, q_size);
}

ValueId Decoder::feed_forward(ValueId x, int64_t layer) {
  set_source(layer, "ffn");
  const int64_t hidden = config_.hidden_size;
  const ValueId gate = project(x, layer, "ffn_gate", "mlp.gate_proj", config_.ffn_size, hidden);
  const ValueId up = project(x, layer, "ffn_up", "mlp.up_proj", config_.ffn_size, hidden);
  const ValueId gated = builder_.add(Swiglu{}, {gate, up});
  return project(gated, layer, "ffn_down", "mlp.down_proj", hidden, config_.ffn_size);
}

ValueId Decoder::add(ValueId a, ValueId b) { return builder_.add(Add{}, {a, b}); }

void Decoder::record_hidden(ValueId x) {
  if (options_.hidden_states) graph_.add_output(fmt::format("hidden.{}", num_hidden_), x);
  ++num_hidden_;
}

Graph Decoder::finish(ValueId x) {
  const Dim tokens = Dim::symbol("tokens");
  set_source(-1, "output");
  if (!options_.all_logits) {
    x = builder_.add(Slice{.starts = {0, tokens - 1, 0}, .sizes = {1, 1, config_.hidden_size}},
                     {x});
  }
  x = norm(x, -1, "output_norm", "model.norm");
  if (options_.hidden_states) graph_.add_output("hidden.final", x);
  set_source(-1, "output");
  const bool has_matrix = file_.find(weight_name(-1, "output", "lm_head", ".weight")) != nullptr;
  const bool tied = file_.find_bool({"", "tie_word_embeddings"}).value_or(!has_matrix);
  ValueId logits;
  if (tied) {
    logits = builder_.add(Matmul{.transpose_b = true}, {x, embedding_});
  } else {
    logits = project(x, -1, "output", "lm_head", config_.vocab_size, config_.hidden_size);
  }
  graph_.name_value(logits, "logits");
  graph_.add_output("logits", logits);
  return std::move(graph_);
}

Graph build_pre_norm_decoder(const ModelFile& file, const GraphOptions& options,
                             const Decoder::AttentionOptions& attention) {
  Decoder decoder(file, read_decoder_config(file), options);
  ValueId x = decoder.embed();
  for (int64_t layer = 0; layer < decoder.config().num_layers; ++layer) {
    const ValueId attended =
        decoder.attend(decoder.norm(x, layer, "attn_norm", "input_layernorm"), layer, attention);
    x = decoder.add(x, attended);
    const ValueId fed =
        decoder.feed_forward(decoder.norm(x, layer, "ffn_norm", "post_attention_layernorm"), layer);
    x = decoder.add(x, fed);
    decoder.record_hidden(x);
  }
  return decoder.finish(x);
}

}  // namespace rlx
