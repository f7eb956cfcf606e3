// The f32 tile operations for the vector instructions of this processor, and the conversions
// between f32 and the 16-bit floats, which other kernels use too.
#pragma once

#include <array>
#include <cstdint>

#include "backends/cpu/kernels/elementwise_tiles.h"

namespace rlx::cpu {

struct F32Tiles {
  // By FormulaOp; null for `input` and `constant`.
  std::array<TileFunction, static_cast<size_t>(FormulaOp::select) + 1> functions{};
  void (*widen_f16)(const uint16_t* from, float* to, int64_t n) = nullptr;
  void (*widen_bf16)(const uint16_t* from, float* to, int64_t n) = nullptr;
  void (*narrow_f16)(const float* from, uint16_t* to, int64_t n) = nullptr;
  void (*narrow_bf16)(const float* from, uint16_t* to, int64_t n) = nullptr;
};

// For the processor at hand. Made on the first call; later calls are one load.
const F32Tiles& f32_tiles();

// A fresh table for the target that Highway now selects, so that a test can walk through targets.
F32Tiles make_f32_tiles_for_test();

}  // namespace rlx::cpu
