// What the matrix product kernels share: where rows and batches lie in strided operands, the
// conversion of left sides that are not plain f32 rows, and what is applied to a finished tile
// before it is stored (bias, activation, residual, rounding to the output's dtype).
#pragma once

#include <array>
#include <cstdint>

#include "backends/cpu/kernel.h"
#include "ops/matmul.h"

namespace rlx::cpu {

// Turns the row-major index over some dimensions into an offset in elements.
class StridedIndex {
 public:
  StridedIndex() = default;
  // Adds an inner dimension. Dimensions of extent 1 cost nothing, and neighbours that lie without
  // a gap become one.
  void append(int64_t extent, int64_t stride);
  int64_t count() const { return count_; }
  int64_t offset(int64_t index) const {
    int64_t offset = 0;
    for (int i = rank_ - 1; i > 0; --i) {
      offset += index % extents_[i] * strides_[i];
      index /= extents_[i];
    }
    return rank_ == 0 ? 0 : offset + index * strides_[0];
  }

 private:
  int rank_ = 0;
  int64_t count_ = 1;
  std::array<int64_t, kMaxRank> extents_{};
  std::array<int64_t, kMaxRank> strides_{};
};

// A call as products of matrices: for each batch, out[rows, columns] = x[rows, depth] . w[columns,
// depth]^T. Strides count elements; those of a packed w count the elements that it stands for.
// Batches in which w is the same are joined, so that their rows share its tiles.
struct MatmulCall {
  const TensorView* x = nullptr;
  const TensorView* w = nullptr;
  const TensorView* out = nullptr;
  int64_t rows = 0, columns = 0, depth = 0, batches = 1;
  StridedIndex x_rows, x_batches, w_batches;
  int64_t x_depth_stride = 1, w_column_stride = 0, w_depth_stride = 1;

  const TensorView* bias = nullptr;
  const TensorView* residual = nullptr;
  Activation activation = Activation::kNone;

  const std::byte* x_at(int64_t batch, int64_t row) const;
  // Row 0 of w in this batch; whole blocks for a packed w.
  const std::byte* w_at(int64_t batch) const;
  // The first bytes of column c of a packed w.
  int64_t packed_column_bytes() const;
};

MatmulCall describe_matmul(const KernelCall& call);
MatmulCall describe_linear(const KernelCall& call);
// One batch whose rows are the pairs (token, active); w is that of expert 0.
MatmulCall describe_grouped_matmul(const KernelCall& call);

// Extents at the symbols' upper bounds, for the sizes of scratch.
struct MatmulBounds {
  int64_t rows = 0;    // over all batches
  int64_t x_rows = 0;  // fewer in a grouped_matmul whose experts share a row
  int64_t columns = 0, depth = 0;
  int64_t experts = 0;  // of grouped_matmul
};
MatmulBounds bound_matmul(const KernelQuery& query);
MatmulBounds bound_linear(const KernelQuery& query);
MatmulBounds bound_grouped_matmul(const KernelQuery& query);

// `count` elements at `from` with this stride in elements as f32, from any float dtype.
void convert_to_f32(const std::byte* from, DType dtype, int64_t stride, int64_t count, float* to);

// The rows of a grouped_matmul sorted by expert, in int32 scratch that the caller provides: the
// rows of expert e are rows[starts[e] .. starts[e + 1]), in increasing order. Rows whose id is
// outside [0, experts) are left out and reported in call.error.
struct ExpertRows {
  const int32_t* starts = nullptr;
  const int32_t* rows = nullptr;
};
ExpertRows sort_by_expert(const KernelCall& call, int64_t experts, std::byte* scratch);
int64_t expert_rows_bytes(int64_t rows, int64_t experts);

// Finishes a tile of f32 sums and stores it: `sums` holds rows `row_begin`... of the output (their
// stride is sum_stride) and columns [column_begin, column_begin + columns). `row_of` gives the
// output row of each row of the tile, or null when they are row_begin, row_begin + 1, ... Columns
// are at most kMaxTileColumns.
inline constexpr int64_t kMaxTileColumns = 64;
void store_tile(const MatmulCall& call, int64_t batch, const int32_t* row_of, int64_t row_begin,
                int64_t rows, int64_t column_begin, int64_t columns, float* sums,
                int64_t sum_stride);

}  // namespace rlx::cpu
