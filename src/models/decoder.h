// The shared blocks of decoder-only language models. A family file reads what is special to it and
// puts these blocks together; see llama.cpp for the plainest example.
//
// The graph has input `input_ids` i64[1, tokens], one pair of states `cache.k.N` and `cache.v.N`
// [1, rows, key/value heads, head size] per layer, and output `logits` f32[1, tokens,
// vocabulary] (or [1, 1, vocabulary] for the last token alone). Symbols: 1 <= tokens <= max_tokens,
// and past, the number of tokens that the cache holds before the run. A layer has a row for each
// token of the context; one with a sliding window has only as many as a run reads, window +
// max_tokens - 1, where that is less, and its rows are used in turn.
//
// A graph for several texts at once (GraphOptions::texts) takes tokens of any of them side by side:
// inputs `positions` and `texts` i64[tokens] say where each token stands and in which text, and
// `output_rows` i64[outputs] which tokens' logits are wanted, f32[1, outputs, vocabulary]. Its
// states have texts as their first extent. Nothing depends on past there; its bound tells the
// context.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "models/blocks.h"
#include "models/rope_frequencies.h"

namespace rlx {

struct GraphOptions {
  int64_t context = 0;       // rows of the key/value cache; 0: the model's own context length
  int64_t max_tokens = 512;  // most tokens of one run (of an encoder: of one sequence)
  int64_t max_batch = 1;     // most sequences of one run; for encoders only
  int64_t texts = 1;         // texts that have a cache; above 1: the graph for several texts
  DType cache_dtype = DType::kF16;  // f32, f16, bf16, or q8_0 where heads are whole blocks
  bool all_logits = false;          // logits of every token, not only of the last
  // Rounds the rotary frequencies to f16 or bf16 first, as a program does that casts a whole model,
  // buffers included. Off (f32) is what the model means; this is for comparing with such a program.
  DType rope_dtype = DType::kF32;
  // Also outputs `hidden.0` (the embedding), `hidden.N` after layer N, and `hidden.final` after the
  // last norm.
  bool hidden_states = false;
};

class Decoder : public Blocks {
 public:
  // Throws kOutOfRange when the context is longer than the model's.
  Decoder(const ModelFile& file, const TransformerConfig& config, const GraphOptions& options,
          std::string hf_layers = "model.layers.");

  // Embedded tokens, f32[1, tokens, hidden]. Call once.
  ValueId embed(WeightName name = {"token_embd", "model.embed_tokens"});
  // Where each token stands in the sequence, i64[tokens].
  ValueId positions();
  // The angles of rotary positions, f32[tokens, rotary], made once per source.
  ValueId rope_table(const RopeSource& source = {});

  // Queries, keys and values, each [1, tokens, heads, head size].
  struct Heads {
    ValueId q, k, v;
  };
  // From three projections attn_q, attn_k, attn_v.
  Heads project_heads(ValueId x, int64_t layer, Bias bias = Bias::kOptional);
  // From one projection that holds the three after each other.
  Heads split_heads(ValueId qkv);

  struct AttentionOptions {
    Bias qkv_bias = Bias::kOptional;
    Bias output_bias = Bias::kOptional;
    bool head_norm = false;         // RMS norm of each query and key head
    double norm_offset = 0;         // added to the weights of these norms
    ValueId rope;                   // table of angles; invalid: no rotation
    bool interleaved_rope = false;  // pairs (2i, 2i + 1) instead of (i, i + half)
    int64_t window = 0;             // sliding window; 0: none
    double scale = 0;               // of the scores; 0: 1 / sqrt(head size)
    double soft_cap = 0;            // 0: none
    ValueId sinks;                  // f32[heads]; invalid: none
  };
  // Attention over the layer's cache, to which the keys and values are added:
  // f32[1, tokens, heads x head size], before the output projection.
  ValueId attend(Heads heads, int64_t layer, const AttentionOptions& options);
  // project_heads, attend, and the projection attn_output.
  ValueId self_attention(ValueId x, int64_t layer, const AttentionOptions& options);

  enum class Gate : uint8_t { kSilu, kGeluTanh };
  // down(gate(x) * up(x)), the gate through its activation.
  ValueId feed_forward(ValueId x, int64_t layer, Gate gate = Gate::kSilu);

  // Adds output `hidden.N` when the options ask for hidden states; N counts the calls. A family
  // calls it with the embedding and with each layer's result.
  void record_hidden(ValueId x);
  // The rows that logits are asked for: all, or the last. Before the last norm.
  ValueId take_output_rows(ValueId x);
  // Projects the normalised rows to the vocabulary by the output matrix, or by the embedding where
  // that is tied; adds the outputs and returns the graph. `soft_cap` bounds the logits; 0: none.
  Graph finish(ValueId x, double soft_cap = 0);

 private:
  int64_t rotary_size() const;
  ValueId divide_frequencies(ValueId inverse, int64_t rotary);
  bool has_texts() const { return options_.texts > 1; }
  // Rows of a layer's cache.
  int64_t count_cache_rows(int64_t window) const;
  // Whether the layer's rows are found by place instead of following each other.
  bool is_cached_by_place(int64_t window) const;
  ValueId cache(std::string_view name, ValueId rows, int64_t layer, int64_t window);

  const GraphOptions options_;
  const int64_t context_;
  int64_t max_tokens_ = 0;  // of a run
  ValueId embedding_, positions_, texts_, output_rows_;
  std::map<std::string, ValueId, std::less<>> rope_tables_;  // by section of the source
  int num_hidden_ = 0;
};

// The decoder of Llama and its relatives, by what differs between them: x += attention(norm(x));
// x += feed_forward(norm(x)), with RMS norms.
struct PreNormLayers {
  std::function<ValueId(ValueId x, int64_t layer)> attention;
  std::function<ValueId(ValueId x, int64_t layer)> feed_forward;
  WeightName ffn_norm = {"ffn_norm", "post_attention_layernorm"};
};
Graph build_pre_norm_decoder(Decoder& decoder, const PreNormLayers& layers);
// The same with self_attention and feed_forward. `windows` holds a window per layer, or nothing.
Graph build_gated_decoder(Decoder& decoder, Decoder::AttentionOptions attention,
                          std::span<const int64_t> windows = {});

}  // namespace rlx
