// The f64 row functions: plain loops, for models that ask for f64 and as a check of the f32 ones.
#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/kernels/norm_rows.h"

namespace rlx::cpu {
namespace {

constexpr int64_t kBlock = 1024;

// The sum of term(i) over [0, n), in blocks.
template <typename Term>
double sum_blocks(int64_t n, Term&& term) {
  double total = 0;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    double sum = 0;
    const int64_t end = std::min(n, begin + kBlock);
    for (int64_t i = begin; i < end; ++i) sum += term(i);
    total += sum;
  }
  return total;
}

void rms_norm(const double* x, const double* weight, double eps, double* out, int64_t n) {
  const double squares = sum_blocks(n, [&](int64_t i) { return x[i] * x[i]; });
  const double scale = 1 / std::sqrt(squares / static_cast<double>(n) + eps);
  for (int64_t i = 0; i < n; ++i) out[i] = x[i] * scale * weight[i];
}

void add_rms_norm(const double* x, const double* y, const double* weight, double eps, double* sum,
                  double* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) sum[i] = x[i] + y[i];
  rms_norm(sum, weight, eps, out, n);
}

void layer_norm(const double* x, const double* weight, const double* bias, double eps, double* out,
                int64_t n) {
  const double count = static_cast<double>(n);
  const double mean = sum_blocks(n, [&](int64_t i) { return x[i]; }) / count;
  const double squares = sum_blocks(n, [&](int64_t i) { return (x[i] - mean) * (x[i] - mean); });
  const double scale = 1 / std::sqrt(squares / count + eps);
  for (int64_t i = 0; i < n; ++i) out[i] = (x[i] - mean) * scale * weight[i] + bias[i];
}

double max_of_row(const double* x, int64_t n) {
  double max = -std::numeric_limits<double>::infinity();
  for (int64_t i = 0; i < n; ++i) max = x[i] > max ? x[i] : max;
  return max;
}

void softmax(const double* x, double* out, int64_t n) {
  const double max = max_of_row(x, n);
  const double sum = sum_blocks(n, [&](int64_t i) { return out[i] = std::exp(x[i] - max); });
  for (int64_t i = 0; i < n; ++i) out[i] /= sum;
}

void log_softmax(const double* x, double* out, int64_t n) {
  const double max = max_of_row(x, n);
  const double log_sum = std::log(sum_blocks(n, [&](int64_t i) { return std::exp(x[i] - max); }));
  for (int64_t i = 0; i < n; ++i) out[i] = x[i] - max - log_sum;
}

void column_max(const double* x, double* max, int64_t n) {
  for (int64_t i = 0; i < n; ++i) max[i] = x[i] > max[i] ? x[i] : max[i];
}

void column_sum(const double* x, const double* max, double* sum, int64_t n) {
  for (int64_t i = 0; i < n; ++i) sum[i] += std::exp(x[i] - max[i]);
}

void column_softmax(const double* x, const double* max, const double* sum, double* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = std::exp(x[i] - max[i]) / sum[i];
}

void column_log_softmax(const double* x, const double* max, const double* sum, double* out,
                        int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = x[i] - max[i] - std::log(sum[i]);
}

void rope(const double* x, const float* cosines, const float* sines, double* out, int64_t half) {
  for (int64_t i = 0; i < half; ++i) {
    const double x0 = x[i], x1 = x[i + half];
    out[i] = x0 * cosines[i] - x1 * sines[i];
    out[i + half] = x0 * sines[i] + x1 * cosines[i];
  }
}

void rope_interleaved(const double* x, const float* cosines, const float* sines, double* out,
                      int64_t half) {
  for (int64_t i = 0; i < half; ++i) {
    const double x0 = x[2 * i], x1 = x[2 * i + 1];
    out[2 * i] = x0 * cosines[i] - x1 * sines[i];
    out[2 * i + 1] = x0 * sines[i] + x1 * cosines[i];
  }
}

}  // namespace

const NormRows<double>& norm_rows_f64() {
  static constexpr NormRows<double> kRows = {
      rms_norm,   add_rms_norm,   layer_norm,         softmax, log_softmax,     column_max,
      column_sum, column_softmax, column_log_softmax, rope,    rope_interleaved};
  return kRows;
}

}  // namespace rlx::cpu
