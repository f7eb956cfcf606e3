// Row functions of the normalisations and of rotary positions: each works on one contiguous row of
// the compute type, f32 (vectorised) or f64 (plain). Sums run in blocks of fixed size, so the
// result does not depend on threads, and stay accurate over long rows.
#pragma once

#include <cstdint>

namespace rlx::cpu {

// `out` may be `x` (or, for add_rms_norm, `sum` may be `x` or `y`).
template <typename T>
struct NormRows {
  // out = x / sqrt(mean(x^2) + eps) * weight
  void (*rms_norm)(const T* x, const T* weight, double eps, T* out, int64_t n);
  // sum = x + y; out = rms_norm(sum)
  void (*add_rms_norm)(const T* x, const T* y, const T* weight, double eps, T* sum, T* out,
                       int64_t n);
  // out = (x - mean) / sqrt(variance + eps) * weight + bias
  void (*layer_norm)(const T* x, const T* weight, const T* bias, double eps, T* out, int64_t n);
  // out = exp(x - max) / sum(exp(x - max))
  void (*softmax)(const T* x, T* out, int64_t n);
  // out = x - max - log(sum(exp(x - max)))
  void (*log_softmax)(const T* x, T* out, int64_t n);

  // Softmax along another axis, for n neighbouring columns at once: first max over the rows, then
  // sum of exp(x - max) over the rows, then the result of each row.
  void (*column_max)(const T* x, T* max, int64_t n);
  void (*column_sum)(const T* x, const T* max, double* sum, int64_t n);
  void (*column_softmax)(const T* x, const T* max, const double* sum, T* out, int64_t n);
  void (*column_log_softmax)(const T* x, const T* max, const double* sum, T* out, int64_t n);

  // Turns the pairs (x[i], x[i + half]), or (x[2 i], x[2 i + 1]), by the angles whose cosines and
  // sines the table holds.
  void (*rope)(const T* x, const float* cosines, const float* sines, T* out, int64_t half);
  void (*rope_interleaved)(const T* x, const float* cosines, const float* sines, T* out,
                           int64_t half);
};

const NormRows<float>& norm_rows_f32();
const NormRows<double>& norm_rows_f64();
template <typename T>
const NormRows<T>& norm_rows();
template <>
inline const NormRows<float>& norm_rows<float>() {
  return norm_rows_f32();
}
template <>
inline const NormRows<double>& norm_rows<double>() {
  return norm_rows_f64();
}

// cosines[i] = cos(a) * scale and sines[i] = sin(a) * scale with a = position * frequencies[i]
// rounded to f32, as the reference models compute it.
void fill_rope_row(float position, const float* frequencies, float scale, float* cosines,
                   float* sines, int64_t half);

}  // namespace rlx::cpu
