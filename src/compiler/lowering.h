// Lowering: a legal graph becomes instructions over storages. A storage is a run of bytes that one
// or more values share: a value and its views, or a value computed in place of another. After
// lowering, the memory planner gives each storage an offset.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "compiler/target.h"
#include "ir/graph.h"
#include "program/program.h"

namespace rlx {

struct Storage {
  Segment segment = Segment::kWork;
  int64_t size_bytes = 0;
  int64_t offset_bytes = -1;  // within the segment; set by placement (constants: by lowering)
  int32_t first_step = -1;    // work only
  int32_t last_step = -1;
  // >= 0: these bytes are the part of that storage which begins `part_offset_bytes` after its
  // start.
  int32_t part_of = -1;
  int64_t part_offset_bytes = 0;
};

struct Lowered {
  Program program;  // values and instructions, without offsets
  std::vector<Storage> storages;
  std::vector<int32_t> storage_of_value;  // per program value
  int32_t num_joined_parts = 0;           // of concatenations
};

struct LowerOptions {
  // Lets the parts of a concatenation be computed at their places in the whole, where these are
  // runs of aligned bytes. It saves the copy, but parts then stay as long as the whole.
  bool join_concatenations = false;
};

// Throws kUnsupported naming the node and why every kernel declined.
Lowered lower(const Graph& graph, const Target& target, const LowerOptions& options = {});

}  // namespace rlx
