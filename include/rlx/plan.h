// What a program's memory looks like before anything is loaded: bytes by segment, the lower bound
// of what is reused, and what lies at the peak.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rlx {

struct PlanSegment {
  std::string name;  // "weights", "state", "io", "work"
  int64_t size_bytes = 0;
  int64_t lower_bound_bytes = 0;  // no plan of this program can be smaller
  bool optimal = false;           // size_bytes is proven least
};

// An allocation for bytes [begin_bytes, begin_bytes + size_bytes) of a segment. There is one for
// each segment, or several where a largest allocation was given; no value lies in two.
struct PlanBlock {
  std::string segment;
  int64_t begin_bytes = 0;
  int64_t size_bytes = 0;
};

struct PlanPeakValue {
  std::string name;
  std::string source;  // the model's own word for the place
  int64_t size_bytes = 0;
};

struct PlanReport {
  std::vector<PlanSegment> segments;  // weights, state, io, work
  int64_t arena_bytes = 0;            // one allocation: state, io and work
  std::vector<PlanBlock> blocks;      // of state, io and work, in this order
  int64_t mapped_weight_bytes = 0;    // of the weights: used where the file lies
  // Of the weights: put together in memory, because the file holds them in parts (experts one by
  // one, MXFP4 blocks apart from their scales).
  int64_t assembled_weight_bytes = 0;
  std::vector<std::string> weight_files;
  std::string state_description;  // such as "key/value cache, f16, 6 layers x 1,024 rows"
  // The least work that the model's own order of nodes needs, every concatenation copied; the
  // compiler's order and places need no more.
  int64_t unordered_bound_bytes = 0;
  int64_t num_steps = 0;
  int64_t peak_step = 0;
  std::string peak_source;
  std::vector<PlanPeakValue> peak_values;  // largest first

  const PlanSegment& segment(const std::string& name) const;  // throws kNotFound
};

// A table for people: a line per segment, the bound and gap of work, the peak.
std::string to_string(const PlanReport& report);

}  // namespace rlx
