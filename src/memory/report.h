// Figures of a plan as text, for people.
#pragma once

#include <cstdint>
#include <string>

#include "memory/place.h"

namespace rlx::memory {

// How far a height is over its bound, in percent: 0 for a bound of zero bytes.
double find_gap_percent(int64_t height_bytes, int64_t lower_bound_bytes);

// Lines of a name and a value, each ending in a line break: height, lower bound, gap, optimal, peak
// step, method, seconds. `optimal` is "yes" or "not proven". Negative `seconds` leave out their
// line.
std::string format_summary(const Placement& placement, double seconds);

}  // namespace rlx::memory
