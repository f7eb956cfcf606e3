// The inner float loops of matrix products and attention, compiled once per vector target. Every
// product is a sum of rows of the left side times rows of the right side, both contiguous along the
// depth: a weight is stored so, and a row of a cache too, hence decoding (one row) reads the weight
// as it lies and prefill needs no transposed copy.
//
// One output is always added in the same order: lane l of a vector takes the elements l, l + N, ...
// one after the other, then the lanes are added as a fixed tree. Neither the number of rows nor the
// place of a tile changes its bits.
#pragma once

#include <cstdint>

#include "rlx/dtype.h"

namespace rlx::cpu {

// Callers cut the depth into parts of this many elements, which is a multiple of every packed
// block, so that unpacked parts stay in the cache: a class of a panel (matmul_tiles.h) takes 16 KiB
// of a first-level cache of 32. Also a part of the order of additions: part after part.
inline constexpr int64_t kDepthPart = 1024;

struct DenseKernels {
  // out[r * out_stride + c] = sum over i < depth of x[r][i] * w[c * w_stride + i], added to what is
  // there when `accumulate`. w is f32, f16 or bf16 of any alignment of its dtype; strides count
  // elements. Reads nothing beyond the depth.
  void (*multiply)(const float* const* x, int64_t rows, const void* w, DType w_dtype,
                   int64_t w_stride, int64_t columns, int64_t depth, bool accumulate, float* out,
                   int64_t out_stride);
  // out[i] = from[i], from f32, f16 or bf16.
  void (*widen)(const void* from, DType dtype, int64_t count, float* out);
  // out[j * out_stride + i] = from[i * from_stride + j] for i < rows, j < columns.
  void (*widen_transposed)(const void* from, DType dtype, int64_t from_stride, int64_t rows,
                           int64_t columns, float* out, int64_t out_stride);
  // to[i] = from[i] rounded to f32, f16 or bf16.
  void (*narrow)(const float* from, int64_t count, DType dtype, void* to);
  // x[i] = activation(x[i] + bias[i]) + residual[i]; bias and residual may be null. The number is
  // that of rlx::Activation.
  void (*finish)(float* x, const float* bias, const float* residual, int activation, int64_t count);
};

// The table for the processor at hand.
const DenseKernels& dense_kernels();

}  // namespace rlx::cpu
