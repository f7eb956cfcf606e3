// The independent witness of a plan: shares no code with the planner, so that a fault of one is
// caught by the other. Cheap enough to run on every compile.
#pragma once

#include "memory/place.h"
#include "memory/problem.h"

namespace rlx::memory {

// Throws rlx::Error unless `placement` is a valid plan of `problem`: one offset per unit, no offset
// negative, all multiples of the alignment, pins respected, no byte occupied by two units at one
// step, and a height that covers every unit and exceeds the highest end by less than the smallest
// alignment. Overlaps are named by the two units, their bytes and their steps. O(n log n) for
// pieces that do not overlap inside their unit.
void check_placement(const Problem& problem, const Placement& placement);

}  // namespace rlx::memory
