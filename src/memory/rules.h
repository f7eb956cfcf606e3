// Plans by rules of placement: no search, a few orders, the best of them, and then orders that
// learn from what came out too high.
#pragma once

#include <cstdint>
#include <vector>

#include "memory/normal_form.h"
#include "memory/solve_part.h"

namespace rlx::memory {

// Skylines in several orders, and first fit where there are pins or pieces. Stops at the first plan
// of height `goal` or less. Throws rlx::Error when pins overlap.
PartPlan place_by_rules(const Part& part, int64_t goal);

// Fills the skyline again and again: after each run, the items that caused losses over `goal` (see
// skyline.h) move towards the front of the order. Keeps the lowest plan in `plan`, stops at `goal`,
// and takes at most half of what `effort` holds. Does nothing for parts with pins.
void improve_by_learning(const Part& part, int64_t goal, Effort& effort, PartPlan& plan);

}  // namespace rlx::memory
