// Placement: storages get offsets in their segments, the work segment from the memory planner,
// whose answer an independent checker proves on every compile. Then barriers are left out where no
// bytes are shared.
#pragma once

#include "compiler/lowering.h"

namespace rlx {

// The most bytes of work alive at one step, each value in whole multiples of the alignment: what
// any placement needs at least.
int64_t find_work_bound(const Lowered& lowered, int64_t alignment_bytes);

// Fills in the offsets and the plan of `lowered.program`, and returns the program.
// Throws kOutOfRange when a size does not fit in 64 bits, and kOutOfMemory naming a value that is
// larger than the target's largest allocation.
Program plan_memory(Lowered lowered, const Target& target, int64_t effort_nodes);

}  // namespace rlx
