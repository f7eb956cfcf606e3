#include "write_random_model.h"

#include <algorithm>
#include <cmath>

#include "tensor/storage.h"

namespace rlx::bench {
namespace {

void add_vocabulary(const ModelShape& shape, RandomBits& random, GgufStream& file) {
  const RandomVocab vocab = make_random_vocab(shape.vocab, random);
  file.add("tokenizer.ggml.model", "gpt2");
  file.add("tokenizer.ggml.pre", shape.pre);
  file.add("tokenizer.ggml.tokens", vocab.tokens);
  file.add("tokenizer.ggml.token_type", vocab.types);
  file.add("tokenizer.ggml.merges", vocab.merges);
  file.add("tokenizer.ggml.bos_token_id", shape.bos);
  file.add("tokenizer.ggml.eos_token_id", shape.eos);
  file.add("tokenizer.ggml.add_bos_token", false);
}

// A product with a normalised input then has values of about 1, whatever the depth.
double choose_spread(const TensorShape& tensor) {
  if (tensor.role == Role::kBias) return 0.05;
  return 1.0 / std::sqrt(static_cast<double>(tensor.shape.back()));
}

// The values of roles that are not random; empty for the others.
std::vector<float> list_fixed_values(const TensorShape& tensor) {
  std::vector<float> values;
  if (tensor.role == Role::kNorm || tensor.role == Role::kRopeDivisors) {
    values.assign(static_cast<size_t>(tensor.shape.back()), 1.0f);
  }
  if (tensor.role == Role::kRopeDivisors) {
    // The slow half of the frequencies is slowed further, up to 32 times.
    for (size_t i = values.size() / 2; i < values.size(); ++i) {
      values[i] = std::min(32.0f, 1.0f + 4.0f * static_cast<float>(i - values.size() / 2));
    }
  }
  return values;
}

void append_random(DType dtype, double spread, int64_t size_bytes, RandomBits& random,
                   GgufStream& file) {
  constexpr int64_t kPieceBytes = int64_t{4} << 20;
  const int64_t piece_bytes = kPieceBytes / bytes_per_block(dtype) * bytes_per_block(dtype);
  std::vector<std::byte> piece(static_cast<size_t>(std::min(piece_bytes, size_bytes)));
  for (int64_t at = 0; at < size_bytes; at += piece_bytes) {
    piece.resize(static_cast<size_t>(std::min(piece_bytes, size_bytes - at)));
    fill_random_blocks(dtype, spread, random, piece);
    file.append(piece);
  }
}

}  // namespace

void write_random_model(const ModelShape& shape, std::string_view type, uint64_t seed,
                        const std::string& path) {
  RandomBits random(seed);
  GgufStream file;
  add_metadata(shape, type, file);
  add_vocabulary(shape, random, file);
  const std::vector<TensorShape> tensors = list_tensors(shape);
  for (const TensorShape& tensor : tensors) {
    file.declare_tensor(tensor.name, choose_dtype(shape, tensor, type), tensor.shape);
  }
  file.open(path);
  for (const TensorShape& tensor : tensors) {
    const std::vector<float> fixed = list_fixed_values(tensor);
    if (!fixed.empty()) {
      file.append(std::as_bytes(std::span(fixed)));
    } else {
      int64_t elements = 1;
      for (const int64_t extent : tensor.shape) elements *= extent;
      const DType dtype = choose_dtype(shape, tensor, type);
      append_random(dtype, choose_spread(tensor), storage_bytes(dtype, elements), random, file);
    }
    file.end_tensor();
  }
  file.close();
}

}  // namespace rlx::bench
