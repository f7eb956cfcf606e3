// The inner loops of attention besides the scores (which are products of matmul_dense.h), compiled
// once per vector target. What a row of queries gets does not depend on how many rows stand beside
// it: keys are taken in blocks of a fixed size, in order.
#pragma once

#include <cstdint>

#include "rlx/dtype.h"

namespace rlx::cpu {

// Keys whose scores are turned into weights at once: 64 f32 rows of 128 for keys and as many for
// values take 64 KiB.
inline constexpr int64_t kKeyBlock = 64;

// The running softmax of one row: the largest score so far and the sum of exp(score - largest).
struct SoftmaxState {
  float largest;
  float sum;
};

struct AttentionKernels {
  // Turns the raw scores of one row and one block into weights: score * scale, capped when
  // soft_cap > 0, plus the mask when there is one; scores outside [begin, end) do not count.
  // Weights are exp(score - largest), zero up to kKeyBlock. Updates the state and returns the
  // factor by which everything summed before shrinks. `scores` and `mask` have kKeyBlock entries,
  // those from `end` on of any content.
  float (*weigh)(float* scores, const float* mask, int64_t begin, int64_t end, float scale,
                 float soft_cap, SoftmaxState* state);
  // out[r][j] += sum over key < keys of weights[r * kKeyBlock + key] * v[key * v_stride + j], keys
  // in order, for j < columns. v is f32, f16 or bf16.
  void (*accumulate)(const float* weights, int64_t rows, const void* v, DType v_dtype,
                     int64_t v_stride, int64_t keys, int64_t columns, float* out,
                     int64_t out_stride);
  // out[i] = from[i] for a row of q8_0; count is a multiple of 32.
  void (*widen_q8_0)(const void* from, int64_t count, float* out);
  // a[i] = a[i] * a_factor + b[i] * b_factor; b may be null.
  void (*combine)(float* a, float a_factor, const float* b, float b_factor, int64_t count);
  float (*exp)(float x);
};

const AttentionKernels& attention_inner_kernels();

}  // namespace rlx::cpu
