#include "passes/remove_dead_code.h"

#include "ir/rewrite.h"
#include "passes/memory_effects.h"

namespace rlx {
namespace {

struct DeadCode {
  const Graph& graph;
  std::vector<bool> is_live;  // by node

  explicit DeadCode(const Graph& g) : graph(g), is_live(g.nodes().size(), false) {
    for (const GraphOutput& output : graph.outputs()) mark(output.value);
    const MemoryEffects effects(graph);
    // A node's inputs stand before it, so one walk from the end reaches everything.
    for (int32_t i = static_cast<int32_t>(graph.nodes().size()) - 1; i >= 0; --i) {
      const Node& node = graph.node(i);
      if (node.op.is<Input>() || effects.writes_state(i)) is_live[i] = true;
      if (!is_live[i]) continue;
      for (ValueId input : node.inputs) mark(input);
    }
  }

  void mark(ValueId value) { is_live[graph.value(value).node] = true; }
};

}  // namespace

Graph remove_dead_code(const Graph& graph, const PassContext&) {
  const DeadCode dead_code(graph);
  Rewriter rewriter(graph);
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    if (dead_code.is_live[i]) rewriter.copy(graph.nodes()[i]);
  }
  return rewriter.finish();
}

}  // namespace rlx
