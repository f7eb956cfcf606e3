#include "passes/eliminate_common_subexpressions.h"

#include <algorithm>
#include <functional>
#include <unordered_map>

#include "ir/rewrite.h"
#include "ops/elementwise.h"
#include "passes/memory_effects.h"

namespace rlx {
namespace {

bool is_commutative(const Op& op) {
  return op.is<Add>() || op.is<Mul>() || op.is<Min>() || op.is<Max>() || op.is<Equal>() ||
         op.is<NotEqual>() || op.is<LogicalAnd>() || op.is<LogicalOr>() || op.is<LogicalXor>();
}

struct CommonSubexpressions {
  const Graph& graph;
  MemoryEffects effects;
  std::unordered_multimap<size_t, int32_t> seen;  // hash -> node that is kept

  explicit CommonSubexpressions(const Graph& g) : graph(g), effects(g) {}

  bool can_merge(int32_t index) const {
    const Op& op = graph.node(index).op;
    if (op.kind().meaning == Meaning::kSource) return op.is<Constant>() || op.is<Weight>();
    return !effects.writes_in_place(index);
  }

  // The inputs as they are in the new graph, in a fixed order where order does not matter.
  std::vector<ValueId> list_inputs(const Rewriter& rewriter, const Node& node) const {
    std::vector<ValueId> inputs = rewriter.map_all(node.inputs);
    if (is_commutative(node.op)) std::ranges::sort(inputs);
    return inputs;
  }

  size_t hash(const Node& node, const std::vector<ValueId>& inputs) const {
    size_t result = std::hash<std::string_view>{}(node.op.name());
    const auto mix = [&](size_t value) { result = result * 1099511628211u + value; };
    for (ValueId input : inputs) mix(static_cast<size_t>(input.index));
    if (const Constant* constant = node.op.as<Constant>()) {
      const std::vector<std::byte>& bytes = constant->data->bytes;
      mix(std::hash<std::string_view>{}(
          {reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
    } else if (const Weight* weight = node.op.as<Weight>()) {
      mix(std::hash<std::string>{}(weight->name));
    } else {
      mix(std::hash<std::string>{}(print_attributes(node.op)));
    }
    return result;
  }

  bool is_same(const Rewriter& rewriter, int32_t earlier, int32_t later,
               const std::vector<ValueId>& inputs) const {
    const Node& a = graph.node(earlier);
    const Node& b = graph.node(later);
    if (!(a.op == b.op) || list_inputs(rewriter, a) != inputs) return false;
    const auto same_type = [&](ValueId x, ValueId y) { return graph.type(x) == graph.type(y); };
    if (!std::ranges::equal(a.outputs, b.outputs, same_type)) return false;
    return std::ranges::none_of(
        b.inputs, [&](ValueId input) { return effects.is_written_between(input, earlier, later); });
  }

  // The earlier node that computes the same as node `index`, which is noted when there is none.
  const Node* find_same(const Rewriter& rewriter, int32_t index) {
    if (!can_merge(index)) return nullptr;
    const Node& node = graph.node(index);
    const std::vector<ValueId> inputs = list_inputs(rewriter, node);
    const size_t key = hash(node, inputs);
    const auto [begin, end] = seen.equal_range(key);
    for (auto entry = begin; entry != end; ++entry) {
      if (is_same(rewriter, entry->second, index, inputs)) return &graph.node(entry->second);
    }
    seen.emplace(key, index);
    return nullptr;
  }
};

}  // namespace

Graph eliminate_common_subexpressions(const Graph& graph, const PassContext&) {
  CommonSubexpressions subexpressions(graph);
  Rewriter rewriter(graph);
  for (int32_t i = 0; i < static_cast<int32_t>(graph.nodes().size()); ++i) {
    const Node& node = graph.node(i);
    const Node* same = subexpressions.find_same(rewriter, i);
    if (same == nullptr) {
      rewriter.copy(node);
      continue;
    }
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      rewriter.replace(node.outputs[k], rewriter.map(same->outputs[k]));
    }
  }
  return rewriter.finish();
}

}  // namespace rlx
