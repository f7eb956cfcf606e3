// The shapes of known models: what a file of each holds, tensor by tensor, and which element type a
// tensor gets in a file of a given kind. Only names and sizes; the weights are random.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gguf_stream.h"
#include "random_vocab.h"
#include "rlx/dtype.h"

namespace rlx::bench {

struct ModelShape {
  std::string_view name;          // "llama-3.2-1b"
  std::string_view architecture;  // general.architecture
  int64_t context, hidden, layers, heads, kv_heads, head_size, ffn;
  double norm_eps, rope_base;
  bool tied;                   // the embedding is the output matrix too
  bool rope_divisors = false;  // rope_freqs.weight, as Llama 3.1 and later carry it
  int64_t experts = 0, active_experts = 0;
  VocabShape vocab;
  std::string_view pre;  // tokenizer.ggml.pre
  uint32_t bos = 0, eos = 0;
};

std::span<const ModelShape> model_shapes();
// Throws kNotFound listing the names there are.
const ModelShape& find_model_shape(std::string_view name);

// What a tensor is for: decides its element type and the spread of its values.
enum class Role : uint8_t {
  kEmbedding,
  kOutput,
  kQuery,
  kKey,
  kValue,
  kAttentionOutput,
  kGate,
  kUp,
  kDown,
  kRouter,  // always f32, as are the roles below
  kNorm,    // all ones
  kBias,
  kRopeDivisors,  // from 1 up
};

struct TensorShape {
  std::string name;
  Role role;
  int64_t layer;               // 0 outside of layers
  std::vector<int64_t> shape;  // outermost first; three extents are a bank of experts
};

// In the order of the file.
std::vector<TensorShape> list_tensors(const ModelShape& shape);

// The element type of a tensor in a file of kind `type`: the name of an element type, or a mixture
// as llama.cpp's quantiser makes it, q4_k_m or q5_k_m. As there, the output matrix of a packed file
// is q6_k (q8_0 where q8_0 or mxfp4 is asked for), mxfp4 is for experts (others are q8_0), and rows
// that do not fill blocks of 256 fall back to blocks of 32. Throws kInvalidArgument for an unknown
// kind.
DType choose_dtype(const ModelShape& shape, const TensorShape& tensor, std::string_view type);

// Every metadata key but the vocabulary.
void add_metadata(const ModelShape& shape, std::string_view type, GgufStream& file);

}  // namespace rlx::bench
