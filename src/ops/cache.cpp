#include "ops/cache.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/infer.h"
#include "ops/reference_loops.h"
#include "tensor/packed.h"

namespace rlx {
namespace {

void check_indices(const InferContext& context, int i, const Dim& tokens, std::string_view what) {
  if (context.input(i).dtype != DType::kI64) {
    context.fail("Input {} is {}, but i64 is expected.", i, to_string(context.input(i)));
  }
  check_vector(context, i, tokens, what);
}

void check_window(const InferContext& context, int64_t window) {
  if (window < 0) context.fail("window={} is given, but 0 or more is expected.", window);
}

int64_t text_of(const ReferenceTensor* texts, int64_t token, int64_t num_texts) {
  const int64_t text = texts != nullptr ? texts->integers[token] : 0;
  if (text < 0 || text >= num_texts) {
    throw_error(ErrorCode::kOutOfRange, "Token {} is of text {}, but the cache has {} texts.",
                token, text, num_texts);
  }
  return text;
}

void check_position(int64_t rows, int64_t window, int64_t tokens, int64_t position) {
  if (holds_position(rows, window, tokens, position)) return;
  throw_error(ErrorCode::kOutOfRange,
              "A token is at position {}, but the cache has {} rows for a window of {}.", position,
              rows, window);
}

}  // namespace

void check_cache_dtype(const InferContext& context, int i) {
  const TensorType& type = context.input(i);
  if (type.dtype != DType::kQ8_0) return check_float(context, i);
  if (type.rank() == 0 || !type.shape.back().is_constant() ||
      type.shape.back().constant() % elements_per_block(type.dtype) != 0) {
    context.fail("Input {} is {}, but whole blocks of {} along the last axis are expected.", i,
                 to_string(type), elements_per_block(type.dtype));
  }
}

void round_cache_row(ReferenceTensor& cache, int64_t begin, int64_t count) {
  if (!is_packed(cache.dtype)) return;
  const int64_t block = elements_per_block(cache.dtype);
  std::vector<float> floats(static_cast<size_t>(block));
  std::vector<std::byte> packed(static_cast<size_t>(bytes_per_block(cache.dtype)));
  for (int64_t at = begin; at < begin + count; at += block) {
    double* values = cache.floats.data() + at;
    std::copy(values, values + block, floats.begin());
    try {
      encode_row(cache.dtype, floats.data(), block, packed.data());
      decode_row(cache.dtype, packed.data(), block, floats.data());
    } catch (const Error&) {
      std::fill(floats.begin(), floats.end(), std::numeric_limits<float>::quiet_NaN());
    }
    std::copy(floats.begin(), floats.end(), values);
  }
}

std::vector<TensorType> CacheWrite::infer(const InferContext& context) const {
  const TensorType& cache = context.input(0);
  const TensorType& update = context.input(1);
  check_cache_dtype(context, 0);
  check_float(context, 1);
  check_rank_at_least(context, 0, 3);
  check_rank(context, 1, cache.rank());
  check_extent(context, 1, 0, 1, "one run of tokens");
  for (int axis = 2; axis < cache.rank(); ++axis) {
    check_extent(context, 1, axis, cache.shape[axis], "the extent of the cache");
  }
  const Dim& tokens = update.shape[1];
  check_indices(context, 2, tokens, "a position for each token");
  if (context.inputs.size() > 3) check_indices(context, 3, tokens, "a text for each token");
  check_window(context, window);
  return {cache};
}

void CacheWrite::reference(const ReferenceContext& context) const {
  const ReferenceTensor& cache = context.input(0);
  const ReferenceTensor& update = context.input(1);
  const ReferenceTensor* texts = context.inputs.size() > 3 ? &context.input(3) : nullptr;
  ReferenceTensor& output = context.outputs[0];
  for (int64_t i = 0; i < cache.num_elements(); ++i) copy_element(cache, i, output, i);
  const int64_t rows = cache.shape[1], tokens = update.shape[1];
  const int64_t width = split_at_axis(cache.shape, 1).inner;
  for (int64_t token = 0; token < tokens; ++token) {
    const int64_t position = context.input(2).integers[token];
    check_position(rows, window, tokens, position);
    const int64_t row = text_of(texts, token, cache.shape[0]) * rows + position % rows;
    for (int64_t i = 0; i < width; ++i) {
      convert_element(update, token * width + i, output, row * width + i);
    }
    round_cache_row(output, row * width, width);
  }
}

std::vector<TensorType> CachedAttention::infer(const InferContext& context) const {
  const int expected = 4 + (texts ? 1 : 0) + (sinks ? 1 : 0);
  if (static_cast<int>(context.inputs.size()) != expected) {
    context.fail("{} inputs are given, but {} are expected with texts={} and sinks={}.",
                 context.inputs.size(), expected, texts, sinks);
  }
  check_float(context, 0);
  for (int i = 0; i < 3; ++i) {
    if (i > 0) check_cache_dtype(context, i);
    if (context.input(i).dtype == DType::kF64) {
      context.fail("Input {} is f64, but it is computed in f32.", i);
    }
    check_rank(context, i, 4);
  }
  const Shape& q = context.input(0).shape;
  const Shape& k = context.input(1).shape;
  const Shape& v = context.input(2).shape;
  check_extent(context, 0, 0, 1, "one run of tokens");
  check_extent(context, 1, 3, q[3], "the head size of q");
  for (int axis : {0, 1, 2}) check_extent(context, 2, axis, k[axis], "the extent of k");
  if (!q[2].is_constant() || !k[2].is_constant() || !q[3].is_constant()) {
    context.fail("q is {} and k is {}, but constant heads and head sizes are expected.",
                 to_string(context.input(0)), to_string(context.input(1)));
  }
  if (k[2].constant() < 1 || q[2].constant() % k[2].constant() != 0) {
    context.fail("q has {} heads and k has {}, but a multiple is expected.", q[2].constant(),
                 k[2].constant());
  }
  check_window(context, window);
  if (!(soft_cap >= 0) || std::isinf(soft_cap) || !std::isfinite(scale)) {
    context.fail(
        "soft_cap={} and scale={} are given, but finite values are expected, the first "
        "of 0 or more.",
        soft_cap, scale);
  }
  check_indices(context, 3, q[1], "a position for each token");
  if (texts) check_indices(context, 4, q[1], "a text for each token");
  if (sinks) {
    if (context.input(expected - 1).dtype != DType::kF32) {
      context.fail("The sinks are {}, but f32 is expected.",
                   to_string(context.input(expected - 1)));
    }
    check_vector(context, expected - 1, q[2], "one sink per head of q");
  }
  return {{context.input(0).dtype, {q[0], q[1], q[2], v[3]}}};
}

void CachedAttention::reference(const ReferenceContext& context) const {
  const ReferenceTensor &q = context.input(0), &k = context.input(1), &v = context.input(2);
  const ReferenceTensor& positions = context.input(3);
  const ReferenceTensor* text_ids = texts ? &context.input(4) : nullptr;
  const ReferenceTensor* sink = sinks ? context.inputs.back() : nullptr;
  const int64_t tokens = q.shape[1], heads = q.shape[2], dim = q.shape[3];
  const int64_t rows = k.shape[1], key_heads = k.shape[2], width = v.shape[3];
  const double factor = scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(dim));
  for (int64_t token = 0; token < tokens; ++token) {
    const int64_t position = positions.integers[token];
    check_position(rows, window, tokens, position);
    const int64_t text = text_of(text_ids, token, k.shape[0]);
    const int64_t first = window > 0 ? std::max<int64_t>(0, position - window + 1) : 0;
    for (int64_t head = 0; head < heads; ++head) {
      const auto row_of = [&](int64_t key) {
        return (text * rows + key % rows) * key_heads + head / (heads / key_heads);
      };
      std::vector<double> weights;
      double largest = sink != nullptr ? sink->floats[head] : -std::numeric_limits<double>::max();
      for (int64_t key = first; key <= position; ++key) {
        double score = 0;
        for (int64_t i = 0; i < dim; ++i) {
          score += q.floats[(token * heads + head) * dim + i] * k.floats[row_of(key) * dim + i];
        }
        score *= factor;
        if (soft_cap > 0) score = soft_cap * std::tanh(score / soft_cap);
        weights.push_back(score);
        largest = std::max(largest, score);
      }
      double sum = sink != nullptr ? std::exp(sink->floats[head] - largest) : 0;
      for (double& weight : weights) sum += weight = std::exp(weight - largest);
      for (int64_t j = 0; j < width; ++j) {
        double value = 0;
        for (int64_t key = first; key <= position; ++key) {
          value += weights[key - first] * v.floats[row_of(key) * width + j];
        }
        context.outputs[0].floats[(token * heads + head) * width + j] = value / sum;
      }
    }
  }
}

}  // namespace rlx
