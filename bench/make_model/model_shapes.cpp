#include "model_shapes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"

namespace rlx::bench {
namespace {

// Sizes from the models' published configurations; words and merges from their tokenizers.
constexpr VocabShape kLlama3Vocab{
    .size = 128256, .num_words = 128000, .num_control = 256, .num_merges = 280147};

constexpr ModelShape kShapes[] = {
    {.name = "smollm2-135m",
     .architecture = "llama",
     .context = 8192,
     .hidden = 576,
     .layers = 30,
     .heads = 9,
     .kv_heads = 3,
     .head_size = 64,
     .ffn = 1536,
     .norm_eps = 1e-5,
     .rope_base = 100000,
     .tied = true,
     .vocab = {.size = 49152, .num_words = 49135, .num_control = 17, .num_merges = 48900},
     .pre = "smollm",
     .bos = 49135,
     .eos = 49136},
    {.name = "qwen3-0.6b",
     .architecture = "qwen3",
     .context = 40960,
     .hidden = 1024,
     .layers = 28,
     .heads = 16,
     .kv_heads = 8,
     .head_size = 128,
     .ffn = 3072,
     .norm_eps = 1e-6,
     .rope_base = 1000000,
     .tied = true,
     .vocab = {.size = 151936, .num_words = 151643, .num_control = 26, .num_merges = 151387},
     .pre = "qwen2",
     .bos = 151643,
     .eos = 151645},
    {.name = "llama-3.2-1b",
     .architecture = "llama",
     .context = 131072,
     .hidden = 2048,
     .layers = 16,
     .heads = 32,
     .kv_heads = 8,
     .head_size = 64,
     .ffn = 8192,
     .norm_eps = 1e-5,
     .rope_base = 500000,
     .tied = true,
     .rope_divisors = true,
     .vocab = kLlama3Vocab,
     .pre = "llama-bpe",
     .bos = 128000,
     .eos = 128009},
    {.name = "llama-3.1-8b",
     .architecture = "llama",
     .context = 131072,
     .hidden = 4096,
     .layers = 32,
     .heads = 32,
     .kv_heads = 8,
     .head_size = 128,
     .ffn = 14336,
     .norm_eps = 1e-5,
     .rope_base = 500000,
     .tied = false,
     .rope_divisors = true,
     .vocab = kLlama3Vocab,
     .pre = "llama-bpe",
     .bos = 128000,
     .eos = 128009},
    {.name = "gpt-oss-20b",
     .architecture = "gpt-oss",
     .context = 131072,
     .hidden = 2880,
     .layers = 24,
     .heads = 64,
     .kv_heads = 8,
     .head_size = 64,
     .ffn = 2880,
     .norm_eps = 1e-5,
     .rope_base = 150000,
     .tied = false,
     .experts = 32,
     .active_experts = 4,
     .vocab = {.size = 201088, .num_words = 199998, .num_control = 1090, .num_merges = 446189},
     .pre = "gpt-4o",
     .bos = 199998,
     .eos = 200002},
    // Nobody's model: for tests.
    {.name = "tiny",
     .architecture = "llama",
     .context = 256,
     .hidden = 512,
     .layers = 2,
     .heads = 8,
     .kv_heads = 2,
     .head_size = 64,
     .ffn = 1024,
     .norm_eps = 1e-5,
     .rope_base = 10000,
     .tied = true,
     .vocab = {.size = 1024, .num_words = 1000, .num_control = 8, .num_merges = 800},
     .pre = "smollm",
     .bos = 1000,
     .eos = 1001},
    {.name = "tiny-moe",
     .architecture = "gpt-oss",
     .context = 256,
     .hidden = 256,
     .layers = 2,
     .heads = 4,
     .kv_heads = 2,
     .head_size = 64,
     .ffn = 256,
     .norm_eps = 1e-5,
     .rope_base = 10000,
     .tied = false,
     .experts = 8,
     .active_experts = 2,
     .vocab = {.size = 1024, .num_words = 1000, .num_control = 8, .num_merges = 800},
     .pre = "gpt-4o",
     .bos = 1000,
     .eos = 1001},
};

struct FileKind {
  std::string_view name;
  uint32_t file_type;  // general.file_type
  DType dtype;
  bool is_mixture = false;  // with more bits where llama.cpp's "M" mixtures have them
};

constexpr FileKind kKinds[] = {
    {"f32", 0, DType::kF32},        {"f16", 1, DType::kF16},
    {"bf16", 32, DType::kBF16},     {"q8_0", 7, DType::kQ8_0},
    {"q4_0", 2, DType::kQ4_0},      {"q4_1", 3, DType::kQ4_1},
    {"q5_0", 8, DType::kQ5_0},      {"q5_1", 9, DType::kQ5_1},
    {"q2_k", 10, DType::kQ2_K},     {"q3_k", 11, DType::kQ3_K},
    {"q4_k", 14, DType::kQ4_K},     {"q4_k_m", 15, DType::kQ4_K, true},
    {"q5_k", 16, DType::kQ5_K},     {"q5_k_m", 17, DType::kQ5_K, true},
    {"q6_k", 18, DType::kQ6_K},     {"iq4_nl", 25, DType::kIQ4_NL},
    {"iq4_xs", 30, DType::kIQ4_XS}, {"mxfp4", 38, DType::kMXFP4},
};

const FileKind& find_kind(std::string_view name) {
  std::vector<std::string_view> names;
  for (const FileKind& kind : kKinds) {
    if (kind.name == name) return kind;
    names.push_back(kind.name);
  }
  throw_error(ErrorCode::kInvalidArgument, "There is no kind of file '{}'; the kinds are: {}.",
              name, fmt::join(names, ", "));
}

// The layers whose values and down projections get more bits: the first and last eighth, and every
// third between.
bool has_more_bits(int64_t layer, int64_t layers) {
  return layer < layers / 8 || layer >= 7 * layers / 8 || (layer - layers / 8) % 3 == 2;
}

// What rows become that do not fill whole blocks of 256.
DType fall_back(DType dtype, int64_t columns) {
  if (columns % elements_per_block(dtype) == 0) return dtype;
  DType smaller = DType::kF16;
  switch (dtype) {
    case DType::kQ2_K:
    case DType::kQ3_K:
      smaller = DType::kQ4_0;
      break;
    case DType::kQ4_K:
      smaller = DType::kQ5_0;
      break;
    case DType::kQ5_K:
      smaller = DType::kQ5_1;
      break;
    case DType::kQ6_K:
      smaller = DType::kQ8_0;
      break;
    case DType::kIQ4_XS:
      smaller = DType::kIQ4_NL;
      break;
    default:
      break;
  }
  return columns % elements_per_block(smaller) == 0 ? smaller : DType::kF16;
}

void add_expert_tensors(const ModelShape& shape, int64_t layer, std::vector<TensorShape>& tensors) {
  const int64_t hidden = shape.hidden, ffn = shape.ffn, experts = shape.experts;
  const auto add = [&](std::string_view name, Role role, std::vector<int64_t> extents) {
    tensors.push_back({fmt::format("blk.{}.{}", layer, name), role, layer, std::move(extents)});
  };
  add("ffn_gate_inp.weight", Role::kRouter, {experts, hidden});
  add("ffn_gate_inp.bias", Role::kBias, {experts});
  add("ffn_gate_exps.weight", Role::kGate, {experts, ffn, hidden});
  add("ffn_gate_exps.bias", Role::kBias, {experts, ffn});
  add("ffn_up_exps.weight", Role::kUp, {experts, ffn, hidden});
  add("ffn_up_exps.bias", Role::kBias, {experts, ffn});
  add("ffn_down_exps.weight", Role::kDown, {experts, hidden, ffn});
  add("ffn_down_exps.bias", Role::kBias, {experts, hidden});
}

void add_layer_tensors(const ModelShape& shape, int64_t layer, std::vector<TensorShape>& tensors) {
  const int64_t hidden = shape.hidden, ffn = shape.ffn;
  const int64_t q = shape.heads * shape.head_size, kv = shape.kv_heads * shape.head_size;
  const bool is_gpt_oss = shape.architecture == "gpt-oss";
  const auto add = [&](std::string_view name, Role role, std::vector<int64_t> extents) {
    tensors.push_back({fmt::format("blk.{}.{}", layer, name), role, layer, std::move(extents)});
  };
  const auto add_projection = [&](std::string_view name, Role role, int64_t out, int64_t in) {
    add(fmt::format("{}.weight", name), role, {out, in});
    if (is_gpt_oss) add(fmt::format("{}.bias", name), Role::kBias, {out});
  };
  add("attn_norm.weight", Role::kNorm, {hidden});
  add_projection("attn_q", Role::kQuery, q, hidden);
  add_projection("attn_k", Role::kKey, kv, hidden);
  add_projection("attn_v", Role::kValue, kv, hidden);
  if (shape.architecture == "qwen3") {
    add("attn_q_norm.weight", Role::kNorm, {shape.head_size});
    add("attn_k_norm.weight", Role::kNorm, {shape.head_size});
  }
  add_projection("attn_output", Role::kAttentionOutput, hidden, q);
  if (is_gpt_oss) {
    add("attn_sinks.weight", Role::kBias, {shape.heads});
    add("post_attention_norm.weight", Role::kNorm, {hidden});
    return add_expert_tensors(shape, layer, tensors);
  }
  add("ffn_norm.weight", Role::kNorm, {hidden});
  add_projection("ffn_gate", Role::kGate, ffn, hidden);
  add_projection("ffn_up", Role::kUp, ffn, hidden);
  add_projection("ffn_down", Role::kDown, hidden, ffn);
}

}  // namespace

std::span<const ModelShape> model_shapes() { return kShapes; }

const ModelShape& find_model_shape(std::string_view name) {
  std::vector<std::string_view> names;
  for (const ModelShape& shape : kShapes) {
    if (shape.name == name) return shape;
    names.push_back(shape.name);
  }
  throw_error(ErrorCode::kNotFound, "There is no shape '{}'; the shapes are: {}.", name,
              fmt::join(names, ", "));
}

std::vector<TensorShape> list_tensors(const ModelShape& shape) {
  std::vector<TensorShape> tensors;
  const int64_t vocab = shape.vocab.size;
  tensors.push_back({"token_embd.weight", Role::kEmbedding, 0, {vocab, shape.hidden}});
  tensors.push_back({"output_norm.weight", Role::kNorm, 0, {shape.hidden}});
  if (!shape.tied) tensors.push_back({"output.weight", Role::kOutput, 0, {vocab, shape.hidden}});
  if (shape.rope_divisors) {
    tensors.push_back({"rope_freqs.weight", Role::kRopeDivisors, 0, {shape.head_size / 2}});
  }
  for (int64_t layer = 0; layer < shape.layers; ++layer) {
    add_layer_tensors(shape, layer, tensors);
  }
  return tensors;
}

DType choose_dtype(const ModelShape& shape, const TensorShape& tensor, std::string_view type) {
  const FileKind& kind = find_kind(type);
  if (tensor.role >= Role::kRouter) return DType::kF32;
  DType dtype = kind.dtype;
  const bool is_head =
      tensor.role == Role::kOutput || (shape.tied && tensor.role == Role::kEmbedding);
  if (dtype == DType::kMXFP4) {
    dtype = tensor.shape.size() == 3 ? DType::kMXFP4 : DType::kQ8_0;
  } else if (is_head && is_packed(dtype) && dtype != DType::kQ8_0) {
    dtype = DType::kQ6_K;
  } else if (kind.is_mixture && (tensor.role == Role::kValue || tensor.role == Role::kDown) &&
             has_more_bits(tensor.layer, shape.layers)) {
    dtype = DType::kQ6_K;
  }
  return fall_back(dtype, tensor.shape.back());
}

void add_metadata(const ModelShape& shape, std::string_view type, GgufStream& file) {
  const std::string arch(shape.architecture);
  const auto add_count = [&](std::string_view key, int64_t value) {
    file.add(fmt::format("{}.{}", arch, key), static_cast<uint32_t>(value));
  };
  const auto add_float = [&](std::string_view key, double value) {
    file.add(fmt::format("{}.{}", arch, key), static_cast<float>(value));
  };
  file.add("general.architecture", arch);
  file.add("general.name", fmt::format("random weights in the shape of {}", shape.name));
  file.add("general.file_type", find_kind(type).file_type);
  file.add("general.quantization_version", uint32_t{2});
  add_count("context_length", shape.context);
  add_count("embedding_length", shape.hidden);
  add_count("block_count", shape.layers);
  add_count("feed_forward_length", shape.ffn);
  add_count("attention.head_count", shape.heads);
  add_count("attention.head_count_kv", shape.kv_heads);
  add_count("attention.key_length", shape.head_size);
  add_count("attention.value_length", shape.head_size);
  add_float("attention.layer_norm_rms_epsilon", shape.norm_eps);
  add_float("rope.freq_base", shape.rope_base);
  add_count("vocab_size", shape.vocab.size);
  if (arch == "llama") add_count("rope.dimension_count", shape.head_size);
  if (shape.experts > 0) {
    add_count("expert_count", shape.experts);
    add_count("expert_used_count", shape.active_experts);
    add_count("expert_feed_forward_length", shape.ffn);
  }
  if (arch == "gpt-oss") {
    add_count("attention.sliding_window", 128);
    file.add(fmt::format("{}.rope.scaling.type", arch), "yarn");
    add_float("rope.scaling.factor", 32);
    add_count("rope.scaling.original_context_length", 4096);
  }
}

}  // namespace rlx::bench
