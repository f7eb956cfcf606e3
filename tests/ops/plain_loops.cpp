#include "plain_loops.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/attention.h"
#include "ops/matmul.h"
#include "ops/norm.h"

namespace rlx {
namespace {

using Inputs = std::vector<ReferenceTensor>;

// Softmax along an axis, or its logarithm, by the log-sum-exp of each line of elements.
ReferenceTensor softmax_plainly(const ReferenceTensor& x, int64_t axis, bool logarithm) {
  const int64_t rank = static_cast<int64_t>(x.shape.size());
  if (axis < 0) axis += rank;
  int64_t stride = 1;
  for (int64_t d = axis + 1; d < rank; ++d) stride *= x.shape[d];
  const int64_t length = x.shape[axis];
  ReferenceTensor y = x;
  for (int64_t n = 0; n < x.num_elements(); ++n) {
    const int64_t line = n - (n / stride % length) * stride;
    double shift = -std::numeric_limits<double>::infinity();
    for (int64_t i = 0; i < length; ++i) shift = std::max(shift, x.floats[line + i * stride]);
    double total = 0;
    for (int64_t i = 0; i < length; ++i) total += std::exp(x.floats[line + i * stride] - shift);
    const double result = x.floats[n] - shift - std::log(total);
    y.floats[n] = logarithm ? result : std::exp(result);
  }
  return y;
}

// The norms of the last axis: with the mean taken off (layer norm) or not (RMS norm).
ReferenceTensor norm_plainly(const ReferenceTensor& x, const ReferenceTensor& weight,
                             const ReferenceTensor* bias, double eps) {
  ReferenceTensor y = x;
  const int64_t columns = x.shape.back();
  for (int64_t start = 0; start < x.num_elements(); start += columns) {
    double mean = 0;
    for (int64_t i = 0; bias != nullptr && i < columns; ++i) mean += x.floats[start + i] / columns;
    double variance = 0;
    for (int64_t i = 0; i < columns; ++i) {
      variance += std::pow(x.floats[start + i] - mean, 2) / columns;
    }
    for (int64_t i = 0; i < columns; ++i) {
      y.floats[start + i] =
          (x.floats[start + i] - mean) / std::sqrt(variance + eps) * weight.floats[i] +
          (bias != nullptr ? bias->floats[i] : 0);
    }
  }
  return y;
}

ReferenceTensor rope_table_plainly(const RopeTable& op, const Inputs& in) {
  const int64_t tokens = in[0].shape[0], half = in[1].shape[0];
  ReferenceTensor table = make_reference_tensor(DType::kF32, {tokens, 2 * half});
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t i = 0; i < half; ++i) {
      const double angle = static_cast<double>(in[0].integers[t]) * in[1].floats[i];
      table.floats[t * 2 * half + i] = std::cos(angle) * op.scale;
      table.floats[t * 2 * half + half + i] = std::sin(angle) * op.scale;
    }
  }
  return table;
}

ReferenceTensor rope_plainly(const Rope& op, const Inputs& in) {
  const ReferenceTensor& x = in[0];
  const ReferenceTensor& table = in[1];
  const int64_t tokens = x.shape[1], heads = x.shape[2], dim = x.shape[3];
  const int64_t rotary = table.shape[1];
  ReferenceTensor y = x;
  for (int64_t row = 0; row < x.shape[0] * tokens * heads; ++row) {
    const int64_t token = row / heads % tokens;
    for (int64_t i = 0; i < rotary / 2; ++i) {
      const int64_t first = row * dim + (op.interleaved ? 2 * i : i);
      const int64_t second = op.interleaved ? first + 1 : first + rotary / 2;
      const double c = table.floats[token * rotary + i];
      const double s = table.floats[token * rotary + rotary / 2 + i];
      y.floats[first] = x.floats[first] * c - x.floats[second] * s;
      y.floats[second] = x.floats[second] * c + x.floats[first] * s;
    }
  }
  return y;
}

double mask_at(const ReferenceTensor& mask, int64_t b, int64_t h, int64_t t, int64_t s) {
  const int64_t index[] = {b, h, t, s};
  const size_t skipped = 4 - mask.shape.size();
  int64_t place = 0;
  for (size_t d = 0; d < mask.shape.size(); ++d) {
    place = place * mask.shape[d] + (mask.shape[d] == 1 ? 0 : index[skipped + d]);
  }
  return mask.at(place);
}

ReferenceTensor attention_plainly(const Attention& op, const Inputs& in) {
  const ReferenceTensor &q = in[0], &k = in[1], &v = in[2];
  const int64_t batch = q.shape[0], rows = q.shape[1], heads = q.shape[2], dim = q.shape[3];
  const int64_t keys = k.shape[1], key_heads = k.shape[2], width = v.shape[3];
  ReferenceTensor y = make_reference_tensor(q.dtype, {batch, rows, heads, width});
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t t = 0; t < rows; ++t) {
      for (int64_t h = 0; h < heads; ++h) {
        const int64_t kh = h * key_heads / heads;
        const int64_t position = keys - rows + t;
        double total = op.sinks ? std::exp(in.back().floats[h]) : 0;
        double* out = &y.floats[((b * rows + t) * heads + h) * width];
        for (int64_t s = 0; s < keys; ++s) {
          if (op.causal && s > position) continue;
          if (op.window > 0 && s <= position - op.window) continue;
          double score = 0;
          for (int64_t i = 0; i < dim; ++i) {
            score += q.floats[((b * rows + t) * heads + h) * dim + i] *
                     k.floats[((b * keys + s) * key_heads + kh) * dim + i];
          }
          score *= op.scale == 0 ? 1 / std::sqrt(static_cast<double>(dim)) : op.scale;
          if (op.soft_cap > 0) score = op.soft_cap * std::tanh(score / op.soft_cap);
          if (op.mask) {
            const double value = mask_at(in[3], b, h, t, s);
            if (in[3].dtype == DType::kBool && value == 0) continue;
            if (in[3].dtype != DType::kBool) score += value;
          }
          const double power = std::exp(score);
          total += power;
          for (int64_t i = 0; i < width; ++i) {
            out[i] += power * v.floats[((b * keys + s) * key_heads + kh) * width + i];
          }
        }
        for (int64_t i = 0; i < width; ++i) out[i] /= total;
      }
    }
  }
  return y;
}

double activate(Activation activation, double x) {
  switch (activation) {
    case Activation::kNone:
      return x;
    case Activation::kRelu:
      return x > 0 ? x : 0;
    case Activation::kGelu:
      return x * std::erfc(-x / std::sqrt(2.0)) / 2;
    case Activation::kGeluTanh:
      return x / (1 + std::exp(-2 * std::sqrt(2 / M_PI) * (x + 0.044715 * std::pow(x, 3))));
    case Activation::kSilu:
      return x / (1 + std::exp(-x));
    case Activation::kSigmoid:
      return 0.5 + std::tanh(x / 2) / 2;
    case Activation::kTanh:
      return 1 - 2 / (std::exp(2 * x) + 1);
  }
  return x;
}

ReferenceTensor linear_plainly(const Linear& op, const Inputs& in) {
  const ReferenceTensor &x = in[0], &w = in[1];
  const int64_t n = w.shape[0], k = w.shape[1];
  ReferenceTensor y = make_reference_tensor(x.dtype, x.shape);
  y.shape.back() = n;
  y.floats.assign(y.num_elements(), 0);
  for (int64_t place = 0; place < y.num_elements(); ++place) {
    const int64_t row = place / n, column = place % n;
    double sum = op.bias ? in[2].floats[column] : 0;
    for (int64_t i = 0; i < k; ++i) sum += x.floats[row * k + i] * w.floats[column * k + i];
    y.floats[place] = activate(op.activation, sum) + (op.residual ? in.back().floats[place] : 0);
  }
  return y;
}

}  // namespace

bool has_plain_loops(const Op& op) {
  return op.is<Softmax>() || op.is<LogSoftmax>() || op.is<RmsNorm>() || op.is<LayerNorm>() ||
         op.is<AddRmsNorm>() || op.is<RopeTable>() || op.is<Rope>() || op.is<Attention>() ||
         op.is<Linear>();
}

Inputs compute_plainly(const Op& op, const Inputs& in) {
  if (const auto* softmax = op.as<Softmax>()) return {softmax_plainly(in[0], softmax->axis, false)};
  if (const auto* softmax = op.as<LogSoftmax>()) {
    return {softmax_plainly(in[0], softmax->axis, true)};
  }
  if (const auto* norm = op.as<RmsNorm>()) return {norm_plainly(in[0], in[1], nullptr, norm->eps)};
  if (const auto* norm = op.as<LayerNorm>()) return {norm_plainly(in[0], in[1], &in[2], norm->eps)};
  if (const auto* norm = op.as<AddRmsNorm>()) {
    ReferenceTensor sum = in[0];
    for (size_t i = 0; i < sum.floats.size(); ++i) sum.floats[i] += in[1].floats[i];
    ReferenceTensor normed = norm_plainly(sum, in[2], nullptr, norm->eps);
    return {std::move(sum), std::move(normed)};
  }
  if (const auto* table = op.as<RopeTable>()) return {rope_table_plainly(*table, in)};
  if (const auto* rope = op.as<Rope>()) return {rope_plainly(*rope, in)};
  if (const auto* attention = op.as<Attention>()) return {attention_plainly(*attention, in)};
  if (const auto* linear = op.as<Linear>()) return {linear_plainly(*linear, in)};
  throw_error(ErrorCode::kUnsupported, "The op '{}' has no plain loops.", op.name());
}

}  // namespace rlx
