// The rungs of the ladder above the rules: learning orders, dives and the complete search, for one
// part of a problem that the rules have not brought down to the goal.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "memory/normal_form.h"

namespace rlx::memory {

// A plan of a part. Heights are in blocks and count from 0, so they include the base of the part.
struct PartPlan {
  std::vector<int64_t> offsets;  // blocks from the base, per item
  int64_t height = 0;
  const char* method = "";
};

// What the search may still spend.
struct Effort {
  int64_t num_nodes = 0;
  std::function<bool()> may_continue;  // empty, or says whether time is left once nodes are spent

  bool is_spent() const { return num_nodes <= 0 && (!may_continue || !may_continue()); }
};

int64_t find_height(const Part& part, const std::vector<int64_t>& offsets);

// Searches for a plan of height `goal`, then for lower plans than `plan`. Returns a height over
// `goal` that it has proven no plan of this part to be below, or 0.
int64_t improve(const Part& part, int64_t goal, Effort& effort, PartPlan& plan);

}  // namespace rlx::memory
