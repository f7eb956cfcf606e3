#include "passes/memory_effects.h"

#include <algorithm>

namespace rlx {

MemoryEffects::MemoryEffects(const Graph& graph)
    : graph_(graph), roots_(graph.values().size()), writers_(graph.values().size()) {
  for (int32_t i = 0; i < static_cast<int32_t>(graph.nodes().size()); ++i) {
    const Node& node = graph.node(i);
    for (ValueId output : node.outputs) roots_[output.index] = output;
    if (node.op.kind().meaning == Meaning::kLayout) {
      roots_[node.outputs[0].index] = root(node.inputs[0]);
    }
    if (writes_in_place(i)) {
      const ValueId written = root(node.inputs[node.op.kind().in_place_input]);
      roots_[node.outputs[0].index] = written;
      writers_[written.index].push_back(i);
    }
  }
}

bool MemoryEffects::writes_in_place(int32_t node) const {
  return graph_.node(node).op.kind().in_place_input >= 0;
}

bool MemoryEffects::writes_state(int32_t node) const {
  return writes_in_place(node) &&
         graph_.producer(root(graph_.node(node).outputs[0])).op.is<State>();
}

bool MemoryEffects::is_written_between(ValueId value, int32_t after, int32_t before) const {
  const std::vector<int32_t>& writers = writers_[root(value).index];
  const auto next = std::upper_bound(writers.begin(), writers.end(), after);
  return next != writers.end() && *next < before;
}

}  // namespace rlx
