// The shared blocks of decoder-only language models. A family file reads what is special to it and
// puts these blocks together; see llama.cpp for the plainest example.
//
// The graph has input `input_ids` i64[1, tokens], one pair of states `cache.k.N` and `cache.v.N`
// [1, context, key/value heads, head size] per layer, and output `logits` f32[1, tokens,
// vocabulary] (or [1, 1, vocabulary] for the last token alone). Symbols: 1 <= tokens <= max_tokens,
// and past, the number of tokens that the cache holds before the run.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ir/graph.h"
#include "models/model_file.h"

namespace rlx {

struct GraphOptions {
  int64_t context = 0;       // rows of the key/value cache; 0: the model's own context length
  int64_t max_tokens = 512;  // most tokens of one run
  DType cache_dtype = DType::kF16;
  bool all_logits = false;  // logits of every token, not only of the last
  // Rounds the rotary frequencies to f16 or bf16 first, as a program does that casts a whole model,
  // buffers included. Off (f32) is what the model means; this is for comparing with such a program.
  DType rope_dtype = DType::kF32;
  bool hidden_states = false;  // also outputs `hidden.N`: the embedding and each layer's result
};

// What all decoder families have in common.
struct DecoderConfig {
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

// Reads the common values under their usual names. Throws kCorruptData naming a missing or
// impossible value (zero layers, heads that do not divide, sizes over 2^31).
DecoderConfig read_decoder_config(const ModelFile& file);

// Builds a decoder graph block by block. Weights are given by the two spellings of their name,
// without "blk.N." / "model.layers.N." and ".weight"; each is checked against the shape that the
// configuration asks for.
class Decoder {
 public:
  Decoder(const ModelFile& file, const DecoderConfig& config, const GraphOptions& options);

  Builder& builder() { return builder_; }
  const DecoderConfig& config() const { return config_; }

  // Embedded tokens, f32[1, tokens, hidden]. Call first.
  ValueId embed();
  // RMS norm by a weight of the current layer, or of the whole model when `layer` is negative.
  ValueId norm(ValueId x, int64_t layer, std::string_view gguf, std::string_view hf);
  // x . w^T (+ bias when the file has one and `bias`), w [out, in] of the layer.
  ValueId project(ValueId x, int64_t layer, std::string_view gguf, std::string_view hf, int64_t out,
                  int64_t in, bool bias = false);

  struct AttentionOptions {
    bool qkv_bias = false;          // biases on the projections to query, key and value
    bool head_norm = false;         // RMS norm of each query and key head
    bool interleaved_rope = false;  // pairs (2i, 2i + 1) instead of (i, i + half)
    int64_t window = 0;             // sliding window; 0: none
  };
  // Self-attention over the layer's cache, f32[1, tokens, hidden].
  ValueId attend(ValueId x, int64_t layer, const AttentionOptions& options);
  // down(silu(gate(x)) * up(x)).
  ValueId feed_forward(ValueId x, int64_t layer);
  ValueId add(ValueId a, ValueId b);

  // Final norm and vocabulary projection; adds the outputs and returns the graph.
  Graph finish(ValueId x);
  // Adds output `hidden.N` when the options ask for hidden states; N counts the calls.
  void record_hidden(ValueId x);

  // A weight of the layer (or of the model when `layer` < 0) with the given shape.
  ValueId load(int64_t layer, std::string_view gguf, std::string_view hf,
               std::vector<int64_t> shape, std::string_view suffix = ".weight");

 private:
  std::string weight_name(int64_t layer, std::string_view gguf, std::string_view hf,
                          std::string_view suffix) const;
  void set_source(int64_t layer, std::string_view block);
  ValueId make_rope_table();

  const ModelFile& file_;
  const DecoderConfig config_;
  const GraphOptions options_;
  const int64_t context_;
  Graph graph_;
  Builder builder_;
  ValueId embedding_;
  ValueId rope_table_;
  int num_hidden_ = 0;
};

// The plain pre-norm decoder of Llama and its relatives: x += attend(norm(x)); x +=
// feed_forward(norm(x)).
Graph build_pre_norm_decoder(const ModelFile& file, const GraphOptions& options,
                             const Decoder::AttentionOptions& attention);

}  // namespace rlx
