// The planner: gives every unit of a problem an offset so that no two that are alive together
// overlap, with the highest end as low as possible. Exact where the search can afford it, and it
// says when it has a proof.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "memory/problem.h"

namespace rlx::memory {

struct PlaceOptions {
  // The limit of the search, in nodes and never in seconds, so that a plan repeats bit for bit on
  // any machine. 0: no search, only the rules of placement.
  int64_t effort_nodes = 200000;
  // >= 0: a plan of at most this height is good enough, and the planner stops at the first. A plan
  // that is higher is still returned. -1: as low as possible.
  int64_t capacity_bytes = -1;
  // > 0: the search goes on past `effort_nodes` until this much time has passed. For a command
  // line; such plans need not repeat.
  double seconds = 0;
};

struct Placement {
  std::vector<int64_t>
      offsets;  // bytes, one per unit; a unit of zero bytes that is not pinned has 0
  // The highest offset + size_bytes among units with bytes, rounded up to a multiple of the
  // smallest alignment among them.
  int64_t height_bytes = 0;
  // No plan is lower than this: the largest sum of bytes alive at one step (see lower_bound.h), the
  // end of a pinned unit, or what the search has proven beyond these.
  int64_t lower_bound_bytes = 0;
  bool optimal = false;   // height_bytes == lower_bound_bytes
  int64_t peak_step = 0;  // the first step with the largest sum of bytes alive
  std::string method;     // what found the plan, for reports
};

// Plans `problem`. The same problem and options give the same plan on every machine, compiler and
// number of threads, except under `seconds`. Throws rlx::Error for a problem that check_problem
// rejects, pinned units that overlap each other while both are alive, and sizes whose sum does not
// fit in 64 bits.
Placement place(const Problem& problem, const PlaceOptions& options = {});

}  // namespace rlx::memory
