#include "passes/legalize.h"

#include <map>

#include "ir/rewrite.h"

namespace rlx {
namespace {

bool is_legal(const Graph& graph, const PassContext& context, const Op& op,
              std::span<const ValueId> inputs) {
  const Meaning meaning = op.kind().meaning;
  return meaning == Meaning::kSource || meaning == Meaning::kLayout ||
         is_claimed(context, op, graph, inputs);
}

// Decompositions nest a few levels (attention -> softmax -> reductions); more is a cycle.
constexpr int kMaxRounds = 16;

// One level of decomposition over the whole graph; false in `changed` when nothing was left to do.
Graph decompose_once(const Graph& graph, const PassContext& context, bool& changed) {
  changed = false;
  return rewrite_graph(graph, [&](Rewriter& rewriter, const Node& node) {
    if (node.op.kind().meaning != Meaning::kDecompose) return false;
    if (is_legal(graph, context, node.op, node.inputs)) return false;
    const std::vector<ValueId> parts = node.op.kind().decompose(
        node.op.attributes(), rewriter.builder(), rewriter.map_all(node.inputs));
    RLX_CHECK(parts.size() == node.outputs.size(), "op '{}' decomposes to {} values, not {}",
              node.op.name(), parts.size(), node.outputs.size());
    for (size_t i = 0; i < parts.size(); ++i) rewriter.replace(node.outputs[i], parts[i]);
    changed = true;
    return true;
  });
}

std::string describe(const Graph& graph, const Node& node) {
  std::string types;
  for (ValueId input : node.inputs) {
    types += (types.empty() ? "" : ", ") + to_string(graph.type(input));
  }
  return fmt::format("{}({})", node.op.name(), types);
}

}  // namespace

Graph legalize(const Graph& graph, const PassContext& context) {
  bool changed = false;
  Graph result = decompose_once(graph, context, changed);
  for (int round = 1; changed; ++round) {
    RLX_CHECK(round < kMaxRounds, "decomposition does not end after {} rounds", kMaxRounds);
    result = decompose_once(result, context, changed);
  }
  return result;
}

void check_legal(const Graph& graph, const PassContext& context) {
  struct Missing {
    std::string first_source;
    int count = 0;
  };
  std::vector<std::string> order;
  std::map<std::string, Missing> missing;
  for (const Node& node : graph.nodes()) {
    if (is_legal(graph, context, node.op, node.inputs)) continue;
    const std::string what = describe(graph, node);
    Missing& entry = missing[what];
    if (entry.count++ == 0) {
      order.push_back(what);
      entry.first_source = node.source;
    }
  }
  if (order.empty()) return;
  std::string list;
  for (const std::string& what : order) {
    const Missing& entry = missing[what];
    list += fmt::format("\n  {}", what);
    if (!entry.first_source.empty()) list += fmt::format(" of '{}'", entry.first_source);
    if (entry.count > 1) list += fmt::format(" and {} more", entry.count - 1);
  }
  throw_error(ErrorCode::kUnsupported,
              "The target has no kernel for {} of the ops of graph '{}', and they are not built "
              "from others:{}",
              order.size(), graph.name(), list);
}

}  // namespace rlx
