// BERT: an encoder with learned positions and post-layer norms, for several sequences at once.
//
// Inputs `input_ids`, `attention_mask` (1: a token, 0: padding) and `token_type_ids` (the segment:
// 0, or 1 for the second of a pair of texts), i64[batch, tokens]; outputs `last_hidden_state`
// f32[batch, tokens, hidden], `mean_pooled` f32[batch, hidden] (the mean over the tokens that the
// mask counts, of length 1: a sentence embedding), and `pooler_output` f32[batch, hidden] where the
// file has a pooler.
#include <algorithm>

#include "base/error.h"
#include "models/activations.h"
#include "models/families.h"
#include "ops/attention.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/move.h"
#include "ops/reduce.h"
#include "ops/view.h"

namespace rlx {
namespace {

constexpr TransformerKeys kKeys{.num_kv_heads = "",
                                .head_size = "",
                                .norm_eps = {".attention.layer_norm_epsilon", "layer_norm_eps"}};

class Encoder : public Blocks {
 public:
  Encoder(const ModelFile& file, const GraphOptions& options, const std::string& prefix)
      : Blocks(file, read_transformer_config(file, kKeys), prefix + "encoder.layer."),
        options_(options),
        prefix_(prefix),
        activation_(read_activation(file, {"", "hidden_act"}, ActivationKind::kGelu)) {
    if (options.context > config_.context_length) {
      throw_error(ErrorCode::kOutOfRange,
                  "A context of {} tokens is asked for, but the model is made for 1 to {}.",
                  options.context, config_.context_length);
    }
    if (options.max_tokens < 1 || options.max_batch < 1) {
      throw_error(
          ErrorCode::kOutOfRange,
          "Runs of at most {} sequences of at most {} tokens are asked for; 1 is the least.",
          options.max_batch, options.max_tokens);
    }
    const int64_t context = options.context > 0 ? options.context : config_.context_length;
    graph_.declare_symbol({"batch", 1, options.max_batch});
    graph_.declare_symbol({"tokens", 1, std::min(options.max_tokens, context)});
  }

  Graph build();

 private:
  ValueId embed();
  // Row or rows of an embedding table, f32.
  ValueId take_rows(std::string_view gguf, std::string_view hf, int64_t num_rows, Dim count);
  int64_t count_gguf_segments() const;
  ValueId attend(ValueId x, int64_t layer);
  ValueId feed_forward(ValueId x, int64_t layer);
  void add_pooler(ValueId x);
  void add_mean(ValueId x);
  void record_hidden(ValueId x, int64_t index);

  const GraphOptions& options_;
  const std::string prefix_;
  const ActivationKind activation_;
  const Dim batch_ = Dim::symbol("batch"), tokens_ = Dim::symbol("tokens");
  ValueId counted_;  // bool[batch, tokens]: not padding
};

ValueId Encoder::take_rows(std::string_view gguf, std::string_view hf, int64_t num_rows,
                           Dim count) {
  const std::string name = prefix_ + std::string(hf);
  const ValueId table = load(-1, {gguf, name}, {num_rows, config_.hidden_size});
  const ValueId rows =
      builder_.add(Slice{.starts = {0, 0}, .sizes = {count, config_.hidden_size}}, {table});
  if (builder_.type(rows).dtype == DType::kF32) return rows;
  return builder_.add(Cast{.dtype = DType::kF32}, {rows});
}

// GGUF has no key for them: the table says it.
int64_t Encoder::count_gguf_segments() const {
  const WeightInfo* table = file_.find("token_types.weight");
  return table != nullptr && !table->shape.empty() ? table->shape[0] : 1;
}

ValueId Encoder::embed() {
  set_source(-1, "token_embd");
  const ValueId ids = builder_.add_input("input_ids", {DType::kI64, {batch_, tokens_}});
  const ValueId mask = builder_.add_input("attention_mask", {DType::kI64, {batch_, tokens_}});
  counted_ = builder_.add(NotEqual{}, {mask, builder_.add_scalar(DType::kI64, 0)});
  const std::string words = prefix_ + "embeddings.word_embeddings";
  const ValueId table = load(-1, {"token_embd", words}, {config_.vocab_size, config_.hidden_size});
  ValueId x = builder_.add(Gather{.axis = 0}, {table, ids});
  if (builder_.type(x).dtype != DType::kF32) x = builder_.add(Cast{.dtype = DType::kF32}, {x});
  const int64_t segments = is_gguf()
                               ? count_gguf_segments()
                               : read_size(file_, "number of segments", {"", "type_vocab_size"});
  const std::string types = prefix_ + "embeddings.token_type_embeddings";
  const ValueId type_ids = builder_.add_input("token_type_ids", {DType::kI64, {batch_, tokens_}});
  const ValueId type_table = load_f32(-1, {"token_types", types}, {segments, config_.hidden_size});
  x = add(x, builder_.add(Gather{.axis = 0}, {type_table, type_ids}));
  x = add(x, take_rows("position_embd", "embeddings.position_embeddings", config_.context_length,
                       tokens_));
  const std::string norm = prefix_ + "embeddings.LayerNorm";
  return layer_norm(x, -1, {"token_embd_norm", norm});
}

ValueId Encoder::attend(ValueId x, int64_t layer) {
  set_source(layer, "attn");
  const int64_t hidden = config_.hidden_size;
  const Projection square{.out = hidden, .in = hidden, .bias = Bias::kRequired};
  const auto project_heads = [&](WeightName name) {
    return builder_.add(Reshape{.shape = {batch_, tokens_, config_.num_heads, config_.head_size}},
                        {project(x, layer, name, square)});
  };
  const ValueId q = project_heads({"attn_q", "attention.self.query"});
  const ValueId k = project_heads({"attn_k", "attention.self.key"});
  const ValueId v = project_heads({"attn_v", "attention.self.value"});
  const ValueId mask = builder_.add(Reshape{.shape = {batch_, 1, 1, tokens_}}, {counted_});
  const ValueId attended = builder_.add(Attention{.causal = false, .mask = true}, {q, k, v, mask});
  const ValueId joined = builder_.add(Reshape{.shape = {batch_, tokens_, hidden}}, {attended});
  return project(joined, layer, {"attn_output", "attention.output.dense"}, square);
}

ValueId Encoder::feed_forward(ValueId x, int64_t layer) {
  set_source(layer, "ffn");
  const ValueId up =
      project(x, layer, {"ffn_up", "intermediate.dense"},
              {.out = config_.ffn_size, .in = config_.hidden_size, .bias = Bias::kRequired});
  return project(activate(*this, up, activation_), layer, {"ffn_down", "output.dense"},
                 {.out = config_.hidden_size, .in = config_.ffn_size, .bias = Bias::kRequired});
}

void Encoder::add_pooler(ValueId x) {
  const std::string name = prefix_ + "pooler.dense";
  if (is_gguf() || !has_weight(-1, {"", name})) return;
  set_source(-1, "pooler");
  const int64_t hidden = config_.hidden_size;
  const ValueId first = builder_.add(Slice{.starts = {0, 0, 0}, .sizes = {batch_, 1, hidden}}, {x});
  const ValueId rows = builder_.add(Reshape{.shape = {batch_, hidden}}, {first});
  const ValueId dense =
      project(rows, -1, {"", name}, {.out = hidden, .in = hidden, .bias = Bias::kRequired});
  graph_.add_output("pooler_output", builder_.add(Tanh{}, {dense}));
}

void Encoder::add_mean(ValueId x) {
  set_source(-1, "mean_pooled");
  const int64_t hidden = config_.hidden_size;
  const ValueId weights = builder_.add(Cast{.dtype = DType::kF32}, {counted_});
  const ValueId row = builder_.add(Reshape{.shape = {batch_, 1, tokens_}}, {weights});
  const ValueId sum =
      builder_.add(Reshape{.shape = {batch_, hidden}}, {builder_.add(Matmul{}, {row, x})});
  // The mean divides by the number of tokens, the length by the root of the sum of squares; both
  // are kept from zero as the reference implementations do.
  const auto keep_from_zero = [&](ValueId value, double least) {
    return builder_.add(Clamp{.low = least}, {value});
  };
  const ValueId count = builder_.add(ReduceSum{.axes = {1}, .keep_dims = true}, {weights});
  const ValueId mean = builder_.add(Div{}, {sum, keep_from_zero(count, 1e-9)});
  const ValueId squares =
      builder_.add(ReduceSum{.axes = {1}, .keep_dims = true}, {builder_.add(Mul{}, {mean, mean})});
  const ValueId length = keep_from_zero(builder_.add(Sqrt{}, {squares}), 1e-12);
  graph_.add_output("mean_pooled", builder_.add(Div{}, {mean, length}));
}

void Encoder::record_hidden(ValueId x, int64_t index) {
  if (options_.hidden_states) graph_.add_output(fmt::format("hidden.{}", index), x);
}

Graph Encoder::build() {
  ValueId x = embed();
  record_hidden(x, 0);
  for (int64_t layer = 0; layer < config_.num_layers; ++layer) {
    x = layer_norm(add(x, attend(x, layer)), layer,
                   {"attn_output_norm", "attention.output.LayerNorm"});
    x = layer_norm(add(x, feed_forward(x, layer)), layer,
                   {"layer_output_norm", "output.LayerNorm"});
    record_hidden(x, layer + 1);
  }
  graph_.add_output("last_hidden_state", x);
  add_pooler(x);
  add_mean(x);
  return std::move(graph_);
}

}  // namespace

Graph build_bert(const ModelFile& file, const GraphOptions& options) {
  constexpr std::string_view kAbsolute[] = {"absolute"};
  check_choice(file, {"", "position_embedding_type"}, kAbsolute);
  if (file.find_bool({"", "is_decoder"}).value_or(false)) {
    throw_error(ErrorCode::kUnsupported, "{}: BERT as a decoder is not supported.",
                file.config_path());
  }
  // Models with a task's head hold the encoder under its name.
  const bool prefixed = file.find("bert.embeddings.word_embeddings.weight") != nullptr;
  return Encoder(file, options, prefixed ? "bert." : "").build();
}

}  // namespace rlx
