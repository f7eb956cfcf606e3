#include "models/decoder.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "ir/reference_tensor.h"
#include "ops/attention.h"
#include "ops/cache.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/move.h"
#include "ops/view.h"

namespace rlx {

namespace {

void check_range_of_texts(int64_t texts) {
  constexpr int64_t kMost = 4096;
  if (texts >= 1 && texts <= kMost) return;
  throw_error(ErrorCode::kOutOfRange, "{} texts at once are asked for, but 1 to {} are expected.",
              texts, kMost);
}

}  // namespace

Decoder::Decoder(const ModelFile& file, const TransformerConfig& config,
                 const GraphOptions& options, std::string hf_layers)
    : Blocks(file, config, std::move(hf_layers)),
      options_(options),
      context_(options.context == 0 ? config.context_length : options.context) {
  if (context_ < 1 || context_ > config.context_length) {
    throw_error(ErrorCode::kOutOfRange,
                "A context of {} tokens is asked for, but the model is made for 1 to {}.", context_,
                config.context_length);
  }
  if (options.max_tokens < 1) {
    throw_error(ErrorCode::kOutOfRange, "A run of at most {} tokens is asked for; 1 is the least.",
                options.max_tokens);
  }
  check_range_of_texts(options.texts);
  const DType cache = options.cache_dtype;
  if (is_packed(cache) && config.head_size % elements_per_block(cache) != 0) {
    throw_error(ErrorCode::kUnsupported,
                "A cache of {} keeps blocks of {} elements, but the heads of this model have {}.",
                to_string(cache), elements_per_block(cache), config.head_size);
  }
  // Each text has a token in a run, whatever the batch.
  const int64_t least = std::max(std::min(options.max_tokens, context_), options.texts);
  max_tokens_ = has_texts() ? std::max(least, options.max_tokens) : least;
  graph_.declare_symbol({"tokens", 1, max_tokens_});
  graph_.declare_symbol({"past", 0, context_ - 1});
  if (has_texts()) graph_.declare_symbol({"outputs", 1, options.texts});
}

ValueId Decoder::embed(WeightName name) {
  set_source(-1, "token_embd");
  const Dim tokens = Dim::symbol("tokens");
  const ValueId ids = builder_.add_input("input_ids", {DType::kI64, {1, tokens}});
  if (has_texts()) {
    texts_ = builder_.add_input("texts", {DType::kI64, {tokens}});
    output_rows_ = builder_.add_input("output_rows", {DType::kI64, {Dim::symbol("outputs")}});
  }
  embedding_ = load(-1, name, {config_.vocab_size, config_.hidden_size});
  const ValueId x = builder_.add(Gather{.axis = 0}, {embedding_, ids});
  if (builder_.type(x).dtype == DType::kF32) return x;
  return builder_.add(Cast{.dtype = DType::kF32}, {x});
}

ValueId Decoder::positions() {
  if (!positions_.is_valid() && has_texts()) {
    positions_ = builder_.add_input("positions", {DType::kI64, {Dim::symbol("tokens")}});
  } else if (!positions_.is_valid()) {
    positions_ = builder_.add(Iota{.shape = {Dim::symbol("tokens")}, .start = Dim::symbol("past")},
                              {}, "positions");
  }
  return positions_;
}

int64_t Decoder::rotary_size() const {
  int64_t rotary = config_.head_size;
  if (is_gguf()) {
    rotary = file_.find_int({".rope.dimension_count", ""}).value_or(rotary);
  } else {
    const auto old_factor = file_.find_float({"", "partial_rotary_factor"});
    const double factor = file_.find_float({"", "rope_parameters.partial_rotary_factor"})
                              .value_or(old_factor.value_or(1.0));
    if (!(factor > 0 && factor <= 1)) {
      throw_error(ErrorCode::kCorruptData,
                  "{}: The partial rotary factor is {}, but it must be above 0 and at most 1.",
                  file_.config_path(), factor);
    }
    rotary = static_cast<int64_t>(static_cast<double>(rotary) * factor);
  }
  if (rotary < 2 || rotary % 2 != 0 || rotary > config_.head_size) {
    throw_error(ErrorCode::kCorruptData,
                "{}: {} rotated elements are asked for, but an even number up to the head size {} "
                "is expected.",
                file_.config_path(), rotary, config_.head_size);
  }
  return rotary;
}

// GGUF carries the scalings "llama3" and "longrope" as divisors of the frequencies.
ValueId Decoder::divide_frequencies(ValueId inverse, int64_t rotary) {
  if (!is_gguf()) return inverse;
  std::string_view name = "rope_freqs";
  if (has_weight(-1, {"rope_factors_long", ""})) {
    const int64_t trained = file_.find_int({".rope.scaling.original_context_length", ""})
                                .value_or(config_.context_length);
    name = context_ > trained ? "rope_factors_long" : "rope_factors_short";
  } else if (!has_weight(-1, {name, ""})) {
    return inverse;
  }
  return builder_.add(Div{}, {inverse, load_f32(-1, {name, ""}, {rotary / 2})});
}

ValueId Decoder::rope_table(const RopeSource& source) {
  const auto found = rope_tables_.find(source.section);
  if (found != rope_tables_.end()) return found->second;
  const std::string block = builder_.source();
  set_source(-1, "rope");
  const int64_t rotary = rotary_size();
  RopeFrequencies frequencies = read_rope_frequencies(file_, rotary, context_, source);
  for (float& frequency : frequencies.inverse) {
    frequency = static_cast<float>(round_float(options_.rope_dtype, frequency));
  }
  std::vector<std::byte> bytes(frequencies.inverse.size() * sizeof(float));
  std::memcpy(bytes.data(), frequencies.inverse.data(), bytes.size());
  ValueId inverse = builder_.add_constant({DType::kF32, {rotary / 2}}, std::move(bytes));
  if (source.scaled) inverse = divide_frequencies(inverse, rotary);
  const ValueId table =
      builder_.add(RopeTable{.scale = frequencies.scale}, {positions(), inverse}, "rope");
  builder_.set_source(block);
  rope_tables_.emplace(source.section, table);
  return table;
}

Decoder::Heads Decoder::project_heads(ValueId x, int64_t layer, Bias bias) {
  set_source(layer, "attn");
  const auto project_to = [&](WeightName name, int64_t heads) {
    const int64_t out = heads * config_.head_size;
    const ValueId y =
        project(x, layer, name, {.out = out, .in = config_.hidden_size, .bias = bias});
    return builder_.add(Reshape{.shape = {1, Dim::symbol("tokens"), heads, config_.head_size}},
                        {y});
  };
  Heads heads;
  heads.q = project_to({"attn_q", "self_attn.q_proj"}, config_.num_heads);
  heads.k = project_to({"attn_k", "self_attn.k_proj"}, config_.num_kv_heads);
  heads.v = project_to({"attn_v", "self_attn.v_proj"}, config_.num_kv_heads);
  return heads;
}

Decoder::Heads Decoder::split_heads(ValueId qkv) {
  int64_t begin = 0;
  const auto take = [&](int64_t heads) {
    const int64_t size = heads * config_.head_size;
    const ValueId part = slice_last(qkv, begin, size);
    begin += size;
    return builder_.add(Reshape{.shape = {1, Dim::symbol("tokens"), heads, config_.head_size}},
                        {part});
  };
  Heads heads;
  heads.q = take(config_.num_heads);
  heads.k = take(config_.num_kv_heads);
  heads.v = take(config_.num_kv_heads);
  return heads;
}

int64_t Decoder::count_cache_rows(int64_t window) const {
  if (window <= 0 || window >= context_) return context_;
  return std::min(context_, window + max_tokens_ - 1);
}

bool Decoder::is_cached_by_place(int64_t window) const {
  return has_texts() || count_cache_rows(window) < context_;
}

ValueId Decoder::cache(std::string_view name, ValueId rows, int64_t layer, int64_t window) {
  const TensorType type{
      options_.cache_dtype,
      {options_.texts, count_cache_rows(window), config_.num_kv_heads, config_.head_size}};
  const ValueId state = builder_.add_state(fmt::format("cache.{}.{}", name, layer), type);
  if (!is_cached_by_place(window)) {
    return builder_.add(CacheAppend{.row = Dim::symbol("past"), .axis = 1}, {state, rows});
  }
  std::vector<ValueId> inputs = {state, rows, positions()};
  if (has_texts()) inputs.push_back(texts_);
  return builder_.add(CacheWrite{.window = window}, std::move(inputs));
}

ValueId Decoder::attend(Heads heads, int64_t layer, const AttentionOptions& options) {
  auto [q, k, v] = heads;
  if (options.head_norm) {
    q = rms_norm(q, layer, {"attn_q_norm", "self_attn.q_norm"}, options.norm_offset);
    k = rms_norm(k, layer, {"attn_k_norm", "self_attn.k_norm"}, options.norm_offset);
  }
  set_source(layer, "attn");
  if (options.rope.is_valid()) {
    q = builder_.add(Rope{.interleaved = options.interleaved_rope}, {q, options.rope});
    k = builder_.add(Rope{.interleaved = options.interleaved_rope}, {k, options.rope});
  }
  const ValueId keys = cache("k", k, layer, options.window);
  const ValueId values = cache("v", v, layer, options.window);
  std::vector<ValueId> inputs = {q, keys, values};
  const bool by_place = is_cached_by_place(options.window);
  if (by_place) inputs.push_back(positions());
  if (has_texts()) inputs.push_back(texts_);
  if (options.sinks.is_valid()) inputs.push_back(options.sinks);
  const ValueId attended = by_place
                               ? builder_.add(CachedAttention{.scale = options.scale,
                                                              .window = options.window,
                                                              .soft_cap = options.soft_cap,
                                                              .texts = has_texts(),
                                                              .sinks = options.sinks.is_valid()},
                                              std::move(inputs))
                               : builder_.add(Attention{.scale = options.scale,
                                                        .causal = true,
                                                        .window = options.window,
                                                        .soft_cap = options.soft_cap,
                                                        .sinks = options.sinks.is_valid()},
                                              std::move(inputs));
  const int64_t size = config_.num_heads * config_.head_size;
  return builder_.add(Reshape{.shape = {1, Dim::symbol("tokens"), size}}, {attended});
}

ValueId Decoder::self_attention(ValueId x, int64_t layer, const AttentionOptions& options) {
  const ValueId joined = attend(project_heads(x, layer, options.qkv_bias), layer, options);
  return project(joined, layer, {"attn_output", "self_attn.o_proj"},
                 {.out = config_.hidden_size,
                  .in = config_.num_heads * config_.head_size,
                  .bias = options.output_bias});
}

ValueId Decoder::feed_forward(ValueId x, int64_t layer, Gate gate) {
  set_source(layer, "ffn");
  const Projection widen{.out = config_.ffn_size, .in = config_.hidden_size};
  const ValueId gates = project(x, layer, {"ffn_gate", "mlp.gate_proj"}, widen);
  const ValueId up = project(x, layer, {"ffn_up", "mlp.up_proj"}, widen);
  const ValueId gated = gate == Gate::kSilu
                            ? builder_.add(Swiglu{}, {gates, up})
                            : builder_.add(Geglu{.approximate = GeluKind::kTanh}, {gates, up});
  return project(gated, layer, {"ffn_down", "mlp.down_proj"},
                 {.out = config_.hidden_size, .in = config_.ffn_size});
}

void Decoder::record_hidden(ValueId x) {
  if (options_.hidden_states) graph_.add_output(fmt::format("hidden.{}", num_hidden_), x);
  ++num_hidden_;
}

ValueId Decoder::take_output_rows(ValueId x) {
  set_source(-1, "output");
  if (options_.all_logits) return x;
  if (has_texts()) {
    const ValueId rows =
        builder_.add(Reshape{.shape = {Dim::symbol("tokens"), config_.hidden_size}}, {x});
    const ValueId chosen = builder_.add(Gather{.axis = 0}, {rows, output_rows_});
    return builder_.add(Reshape{.shape = {1, Dim::symbol("outputs"), config_.hidden_size}},
                        {chosen});
  }
  return builder_.add(
      Slice{.starts = {0, Dim::symbol("tokens") - 1, 0}, .sizes = {1, 1, config_.hidden_size}},
      {x});
}

Graph Decoder::finish(ValueId x, double soft_cap) {
  if (options_.hidden_states) graph_.add_output("hidden.final", x);
  set_source(-1, "output");
  constexpr WeightName kOutput{"output", "lm_head"};
  const bool tied = file_.find_bool({"", "tie_word_embeddings"}).value_or(!has_weight(-1, kOutput));
  ValueId logits;
  if (tied) {
    logits = builder_.add(Matmul{.transpose_b = true}, {x, embedding_});
  } else {
    logits = project(x, -1, kOutput, {.out = config_.vocab_size, .in = config_.hidden_size});
  }
  if (soft_cap > 0) {
    logits = scale(builder_.add(Tanh{}, {scale(logits, 1 / soft_cap)}), soft_cap);
  }
  graph_.name_value(logits, "logits");
  graph_.add_output("logits", logits);
  return std::move(graph_);
}

Graph build_pre_norm_decoder(Decoder& decoder, const PreNormLayers& layers) {
  ValueId x = decoder.embed();
  decoder.record_hidden(x);
  for (int64_t layer = 0; layer < decoder.config().num_layers; ++layer) {
    const ValueId normed = decoder.rms_norm(x, layer, {"attn_norm", "input_layernorm"});
    x = decoder.add(x, layers.attention(normed, layer));
    x = decoder.add(x, layers.feed_forward(decoder.rms_norm(x, layer, layers.ffn_norm), layer));
    decoder.record_hidden(x);
  }
  x = decoder.rms_norm(decoder.take_output_rows(x), -1, {"output_norm", "model.norm"});
  return decoder.finish(x);
}

Graph build_gated_decoder(Decoder& decoder, Decoder::AttentionOptions attention,
                          std::span<const int64_t> windows) {
  return build_pre_norm_decoder(
      decoder,
      {.attention =
           [&](ValueId x, int64_t layer) {
             if (!windows.empty()) attention.window = windows[static_cast<size_t>(layer)];
             return decoder.self_attention(x, layer, attention);
           },
       .feed_forward = [&](ValueId x, int64_t layer) { return decoder.feed_forward(x, layer); }});
}

}  // namespace rlx
