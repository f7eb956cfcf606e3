// Exact planning of items of any form. Items of several pieces may interlock, lie in one another's
// holes or hold one another up across alignments, which the tree search does not cover: here every
// pair alive together is decided on its own, so nothing is assumed about how items rest.
#pragma once

#include <cstdint>

#include "memory/normal_form.h"
#include "memory/solve_part.h"

namespace rlx::memory {

// Whether `part` is of the kind that search_pairs is for: not only rectangles, and few enough pairs
// alive together.
bool is_for_pair_search(const Part& part);

// For two items alive together, the differences of their offsets that make them overlap are a few
// open intervals. The search takes the least offsets that the decided pairs allow; if some pair
// overlaps there, its difference must go into one of the gaps between its intervals, and each is
// tried. Lowers `plan` until `goal`, the least height, or until `num_nodes` are spent or `effort`
// is. Returns a height that it has proven no plan of this part to be below, or 0.
int64_t search_pairs(const Part& part, int64_t goal, int64_t num_nodes, Effort& effort,
                     PartPlan& plan);

}  // namespace rlx::memory
