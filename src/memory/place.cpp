#include "memory/place.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "base/checked.h"
#include "memory/lower_bound.h"
#include "memory/normal_form.h"
#include "memory/rules.h"
#include "memory/solve_part.h"

namespace rlx::memory {
namespace {

// Plans all parts towards `goal`, the highest first, and returns a height that no plan is below, 0
// if the search has proven nothing.
int64_t solve_parts(const std::vector<Part>& parts, int64_t goal, const PlaceOptions& options,
                    std::vector<PartPlan>& plans) {
  for (const Part& part : parts) plans.push_back(place_by_rules(part, goal));

  Effort effort;
  effort.num_nodes = options.effort_nodes;
  if (options.seconds > 0) {
    const auto end =
        std::chrono::steady_clock::now() + std::chrono::duration<double>(options.seconds);
    effort.may_continue = [end] { return std::chrono::steady_clock::now() < end; };
  }
  std::vector<uint8_t> is_done(parts.size(), 0);
  int64_t bound = 0;
  while (!effort.is_spent()) {
    size_t highest = parts.size();
    for (size_t i = 0; i < parts.size(); ++i) {
      if (is_done[i] || plans[i].height <= goal) continue;
      if (highest == parts.size() || plans[i].height > plans[highest].height) highest = i;
    }
    if (highest == parts.size()) break;
    is_done[highest] = 1;
    bound = std::max(bound, improve(parts[highest], goal, effort, plans[highest]));
    // What is above the goal anyway need not be beaten by other parts.
    goal = std::max(goal, plans[highest].height);
  }
  return bound;
}

}  // namespace

Placement place(const Problem& problem, const PlaceOptions& options) {
  check_problem(problem);
  const LowerBound bound = find_lower_bound(problem);
  const int64_t granule = find_block_bytes(problem);
  NormalForm form = make_normal_form(problem);

  Placement placement;
  placement.peak_step = bound.step;
  placement.lower_bound_bytes = bound.bytes;
  for (const Unit& unit : problem.units) {
    if (unit.size_bytes == 0) continue;
    const int64_t end =
        align_up(checked_add(std::max<int64_t>(unit.pinned_offset, 0), unit.size_bytes), granule);
    placement.lower_bound_bytes = std::max(placement.lower_bound_bytes, end);
  }
  const int64_t block = form.block_bytes;
  const int64_t bound_blocks =
      placement.lower_bound_bytes / block + (placement.lower_bound_bytes % block == 0 ? 0 : 1);
  const int64_t goal = std::max(bound_blocks, options.capacity_bytes / block);

  std::vector<PartPlan> plans;
  const int64_t proven = solve_parts(form.parts, goal, options, plans);
  // Every height is a multiple of the granule.
  placement.lower_bound_bytes =
      std::max(placement.lower_bound_bytes, align_up(checked_mul(proven, block), granule));
  const PartPlan* highest = nullptr;
  for (size_t p = 0; p < plans.size(); ++p) {
    const Part& part = form.parts[p];
    for (size_t i = 0; i < part.items.size(); ++i) {
      form.offsets[part.items[i].unit] = part.base + plans[p].offsets[i];
    }
    if (highest == nullptr || plans[p].height > highest->height) highest = &plans[p];
  }
  placement.method = highest == nullptr ? "stacked" : highest->method;
  for (size_t i = 0; i < problem.units.size(); ++i) {
    const Unit& unit = problem.units[i];
    int64_t offset = checked_mul(form.offsets[i], block);
    if (unit.pinned_offset >= 0) offset = unit.pinned_offset;
    placement.offsets.push_back(offset);
    if (unit.size_bytes == 0) continue;
    placement.height_bytes =
        std::max(placement.height_bytes, align_up(checked_add(offset, unit.size_bytes), granule));
  }
  placement.optimal = placement.height_bytes == placement.lower_bound_bytes;
  return placement;
}

}  // namespace rlx::memory
