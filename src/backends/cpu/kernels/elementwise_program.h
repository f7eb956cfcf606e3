// An elementwise formula made ready for tiles: every step is one vectorised loop over a few hundred
// elements, and what lies between steps stays in the first-level cache. Made once per node; a run
// only reads it, so it neither allocates nor locks.
//
// Inputs broadcast by strides of 0 and may have any strides. An f32 input with a contiguous run is
// read in place and the last step writes the output in place, so that a single op costs no copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backends/cpu/kernels/elementwise_tiles.h"
#include "ir/formula.h"
#include "tensor/shape.h"

namespace rlx::cpu {

struct TileProgram {
  struct Input {
    DType dtype = DType::kF32;
    TileLoad load = nullptr;  // null when the formula does not use the input
  };
  struct Constant {
    int32_t slot = -1;
    uint64_t bits = 0;  // the value in the compute type
  };
  struct Step {
    TileFunction run = nullptr;
    int32_t a = -1, b = -1, c = -1, out = -1;  // slots
  };

  ComputeType type = ComputeType::kF32;
  DType output = DType::kF32;
  // Slot i is input i; then one slot a constant and one a step. A slot names a tile: its register,
  // or an input's or the output's own memory.
  std::vector<Input> inputs;
  std::vector<Constant> constants;
  std::vector<Step> steps;
  std::vector<int32_t> registers;  // of each slot
  int32_t num_registers = 0;
  int32_t result = -1;  // slot
  TileStore store = nullptr;
  bool writes_output_in_place = false;
  int64_t cost = 1;  // of an element, in cheap steps

  int64_t num_slots() const { return static_cast<int64_t>(registers.size()); }
  int64_t scratch_bytes_per_thread() const;
};

// The type in which a formula over inputs of these dtypes runs: floats when one is a float.
ComputeType choose_compute_type(std::span<const DType> inputs, DType output);

// Every dtype must satisfy is_tile_dtype. Throws kUnsupported when a step has no meaning on the
// compute type.
std::shared_ptr<const TileProgram> make_tile_program(const Formula& formula,
                                                     std::span<const DType> inputs, DType output,
                                                     ComputeType type);

// This thread's share of output = formula(inputs). `output` is contiguous; inputs broadcast to its
// shape. `scratch` has scratch_bytes_per_thread() for each thread, aligned to 64.
void run_tile_program(const TileProgram& program, std::span<const TensorView* const> inputs,
                      const TensorView& output, std::byte* scratch, int thread, int num_threads);

}  // namespace rlx::cpu
