// Reductions of one f32 tile (at most elements_per_tile(kF32) elements), vectorised.
#pragma once

#include <cstdint>

namespace rlx::cpu {

struct ReduceTiles {
  // f32 lanes over one tile, then f64: the error is far below that of one f32 chain.
  double (*sum)(const float* x, int64_t n);
  // NaN when there is one; -infinity and infinity of nothing.
  float (*max)(const float* x, int64_t n);
  float (*min)(const float* x, int64_t n);
};

const ReduceTiles& reduce_tiles();

}  // namespace rlx::cpu
