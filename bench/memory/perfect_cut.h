// Problems whose bound can be reached and that leave no byte free at any step: a rectangle of steps
// by bytes, cut into units. Nothing short of the cut itself, or another as perfect, reaches it.
#pragma once

#include <cstdint>

#include "memory/problem.h"

namespace rlx::memory {

enum class CutKind {
  kGuillotine,  // every cut goes from edge to edge
  kPinwheel,    // boxes are also cut into four around a fifth, which no straight cut separates
};

struct PerfectCut {
  CutKind kind = CutKind::kGuillotine;
  int32_t num_units = 100;
  int64_t num_steps = 1000;
  int64_t height_bytes = 1 << 20;
  uint64_t seed = 1;
};

// The same options give the same problem everywhere. Has exactly num_units units (for kPinwheel a
// few straight cuts make the number come out), unless the rectangle is too small to be cut so
// often.
Problem make_perfect_cut(const PerfectCut& options);

struct SyntheticNetwork {
  int32_t num_units = 5000;
  uint64_t seed = 1;
};

// A chain of layers whose results live a few steps, with some long skips: the shape of an ordinary
// inference graph, for timing.
Problem make_synthetic_network(const SyntheticNetwork& options);

}  // namespace rlx::memory
