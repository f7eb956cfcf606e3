// Products of many rows: a panel of columns of w is unpacked to f32 once and multiplied by all
// rows. The results are those of DenseKernels::multiply to the bit, so a row does not depend on how
// many stand beside it. There, lane l of a vector sums the elements l, l + L, l + 2 L, ... of the
// depth and the lanes are added as a tree. Here a vector runs along the columns, so the depth is
// taken class by class: all elements that fall to lane l, one after the other, then those of l + 1,
// and the sums of classes are added as the same tree. Packing brings both sides into that order.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/matmul_dense.h"

namespace rlx::cpu {

struct TileKernels {
  int64_t columns;  // of a panel: two vectors

  // Floats of a packed part of a row, and of a packed panel; multiples of 16. A part of the depth
  // is up to kDepthPart elements.
  int64_t row_floats;
  int64_t panel_floats;

  // Packs `depth` <= kDepthPart elements of a row, from f32, f16 or bf16; zeros follow them up to a
  // whole number of vectors.
  void (*pack_row)(const void* x, DType dtype, int64_t depth, float* to);
  // Packs `depth` elements of columns of w, f32, f16 or bf16, that lie w_stride elements apart;
  // absent columns give zeros. The panel is aligned to 64 bytes.
  void (*pack_panel)(const void* w, DType dtype, int64_t w_stride, int64_t columns, int64_t depth,
                     float* panel);
  // out[r * columns + c] = sum over the depth, added to what is there when `accumulate`. The rows
  // are packed and lie x_stride floats apart; row_of lists which, or is null for the first ones.
  // `work` has kMaxLevels * rows * columns floats.
  void (*multiply)(const float* x, int64_t x_stride, const int32_t* row_of, int64_t rows,
                   const float* panel, int64_t depth, bool accumulate, float* work, float* out);
};
inline constexpr int64_t kMaxLevels = 4;

const TileKernels& tile_kernels();

}  // namespace rlx::cpu
