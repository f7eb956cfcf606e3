// Plans by rules of placement: no search, a few orders, the best of them, and then orders that
// learn from what came out too high.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "memory/normal_form.h"
#include "memory/solve_part.h"

namespace rlx::memory {

// Orders to begin to learn from, each of all items.
std::vector<std::vector<int32_t>> make_learning_orders(const Part& part);

// Halves the rank in `order` of the items that `is_moved` names; the others keep their sequence.
// Returns whether there were any.
template <typename Predicate>
bool move_forward(std::vector<int32_t>& order, const Predicate& is_moved) {
  std::vector<std::pair<size_t, int32_t>> moved, others, all;  // rank, item
  for (size_t rank = 0; rank < order.size(); ++rank) {
    if (is_moved(order[rank])) {
      moved.emplace_back(rank / 2, order[rank]);
    } else {
      others.emplace_back(rank, order[rank]);
    }
  }
  std::merge(moved.begin(), moved.end(), others.begin(), others.end(), std::back_inserter(all),
             [](const auto& a, const auto& b) { return a.first < b.first; });
  for (size_t rank = 0; rank < order.size(); ++rank) order[rank] = all[rank].second;
  return !moved.empty();
}

// Skylines in several orders, and first fit where there are pins or pieces. Stops at the first plan
// of height `goal` or less. Throws rlx::Error when pins overlap.
PartPlan place_by_rules(const Part& part, int64_t goal);

// Fills the skyline again and again: after each run, the items that caused losses over `goal` (see
// skyline.h) move towards the front of the order. Keeps the lowest plan in `plan`, stops at `goal`,
// and takes at most half of what `effort` holds. Does nothing for parts with pins.
void improve_by_learning(const Part& part, int64_t goal, Effort& effort, PartPlan& plan);

}  // namespace rlx::memory
