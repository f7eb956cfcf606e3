// Placement on a device that cannot allocate everything at once: the address space is cut into
// blocks of one size, each an allocation of its own, and no unit may lie in two of them.
#pragma once

#include <cstdint>

#include "memory/place.h"

namespace rlx::memory {

// Plans `problem` so that no unit crosses a multiple of `block_bytes`. A plan of `place` that
// happens to cross none is taken; otherwise units go, by decreasing size, to the lowest bytes that
// are free while they live. Throws rlx::Error kOutOfMemory for a unit of more than `block_bytes`,
// kInvalidArgument for pinned units, and what `place` throws. `block_bytes` is a positive multiple
// of every alignment. O(n^2 log n).
Placement place_in_blocks(const Problem& problem, int64_t block_bytes,
                          const PlaceOptions& options = {});

// Throws kInternal naming the first unit that crosses a multiple of `block_bytes`.
void check_blocks(const Problem& problem, const Placement& placement, int64_t block_bytes);

}  // namespace rlx::memory
