// Which values of a graph lie in the bytes of a source, and which nodes write those bytes in place.
// An in-place op (OpKind::in_place_input) changes a state under everybody who still looks at it, so
// a pass that moves a read past such a write, or merges two reads around one, changes the result.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/graph.h"

namespace rlx {

class MemoryEffects {
 public:
  explicit MemoryEffects(const Graph& graph);

  // The value whose bytes `value` lies in: itself, or what it is a view of or was written into.
  ValueId root(ValueId value) const { return roots_[value.index]; }

  // True when node number `node` writes in place, whatever it writes into.
  bool writes_in_place(int32_t node) const;
  // True when node number `node` writes a state in place: its effect outlives the run.
  bool writes_state(int32_t node) const;

  // True when a node numbered in (after, before) writes the bytes that `value` lies in.
  bool is_written_between(ValueId value, int32_t after, int32_t before) const;

 private:
  const Graph& graph_;
  std::vector<ValueId> roots_;                 // by value
  std::vector<std::vector<int32_t>> writers_;  // by root value: nodes, ascending
};

}  // namespace rlx
