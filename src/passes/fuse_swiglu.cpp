#include "passes/fuse_swiglu.h"

#include <optional>

#include "ops/elementwise.h"
#include "passes/match.h"
#include "passes/remove_dead_code.h"

namespace rlx {
namespace {

struct Gating {
  Rewriter& rewriter;
  const Matcher& matcher;
  const PassContext& context;

  // An activation: the op that gates with it, its input, and the nodes it is made of.
  struct Gate {
    Op op;
    ValueId input;
    std::set<int32_t> nodes;
  };

  std::optional<Gate> match_gate(ValueId value) const {
    const int32_t index = matcher.node_index(value);
    if (const Node* silu = matcher.find<Silu>(value))
      return Gate{Swiglu{}, silu->inputs[0], {index}};
    if (const Node* relu = matcher.find<Relu>(value))
      return Gate{Reglu{}, relu->inputs[0], {index}};
    if (const Node* gelu = matcher.find<Gelu>(value)) {
      Geglu geglu;
      geglu.approximate = gelu->op.as<Gelu>()->approximate;
      return Gate{geglu, gelu->inputs[0], {index}};
    }
    const Node* mul = matcher.find<Mul>(value);
    if (mul == nullptr) return std::nullopt;
    // x * sigmoid(x) = silu(x)
    for (int i = 0; i < 2; ++i) {
      const Node* sigmoid = matcher.find<Sigmoid>(mul->inputs[i]);
      if (sigmoid != nullptr && sigmoid->inputs[0] == mul->inputs[1 - i]) {
        return Gate{Swiglu{}, sigmoid->inputs[0], {index, matcher.node_index(mul->inputs[i])}};
      }
    }
    return std::nullopt;
  }

  bool rewrite(const Node& node) const {
    if (!node.op.is<Mul>()) return false;
    const int32_t root = matcher.node_index(node.outputs[0]);
    for (int i = 0; i < 2; ++i) {
      std::optional<Gate> gate = match_gate(node.inputs[i]);
      if (!gate) continue;
      gate->nodes.insert(root);
      const std::vector<ValueId> inputs = {gate->input, node.inputs[1 - i]};
      if (!matcher.can_replace(gate->nodes, root, inputs)) continue;
      // An activation of fewer elements than the product is cheaper before it is stretched.
      if (matcher.type(gate->input) != matcher.type(node.outputs[0])) continue;
      if (!is_claimed(context, gate->op, matcher.graph(), inputs)) continue;
      rewriter.replace(node.outputs[0], rewriter.builder().add(gate->op, rewriter.map_all(inputs)));
      return true;
    }
    return false;
  }
};

}  // namespace

Graph fuse_swiglu(const Graph& graph, const PassContext& context) {
  const Matcher matcher(graph);
  const Graph fused = rewrite_graph(graph, [&](Rewriter& rewriter, const Node& node) {
    return Gating{rewriter, matcher, context}.rewrite(node);
  });
  return remove_dead_code(fused, context);
}

}  // namespace rlx
