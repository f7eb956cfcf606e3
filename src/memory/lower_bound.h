// The least that any plan needs: the bytes alive together. It is the proof that a plan which
// reaches it cannot be improved, and the figure that passes which save memory try to lower.
#pragma once

#include <cstdint>

#include "memory/problem.h"

namespace rlx::memory {

struct LowerBound {
  int64_t bytes;
  int64_t step;  // the first step at which so many bytes are alive; 0 when nothing ever is
};

// The largest sum of bytes alive at one step. Every unit counts in whole blocks of the smallest
// alignment among the units with bytes, as heights do (see Placement), so sizes that are multiples
// of it count as they are. A byte that pieces of one unit share counts once. Pins do not count.
// Throws rlx::Error for a problem that check_problem rejects, and when the sum does not fit in 64
// bits. O(n log n).
LowerBound find_lower_bound(const Problem& problem);

// The smallest alignment among the units with bytes, which is the block that heights are counted
// in; 1 when there are none.
int64_t find_block_bytes(const Problem& problem);

}  // namespace rlx::memory
