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
};

struct Lowered {
  Program program;  // values and instructions, without offsets
  std::vector<Storage> storages;
  std::vector<int32_t> storage_of_value;  // per program value
};

// Throws kUnsupported naming the node and why every kernel declined.
Lowered lower(const Graph& graph, const Target& target);

}  // namespace rlx
