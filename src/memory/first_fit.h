// Placing items one after another in a given order, each at the lowest offset that is free of those
// before it. The rule that every planner knows; here it serves problems with pins and holes, which
// the faster rules do not see, and as a member of the portfolio.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "memory/normal_form.h"

namespace rlx::memory {

// Returns the offset of every item of `part`, in blocks from the base of the part. Pinned items are
// placed first; `order` names every item once. Throws rlx::Error, naming the units, when two pinned
// items overlap. O(n^2) comparisons of placed slabs in rising order, stopping at the first gap.
std::vector<int64_t> place_first_fit(const Part& part, std::span<const int32_t> order);

}  // namespace rlx::memory
