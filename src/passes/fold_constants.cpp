#include "passes/fold_constants.h"

#include <algorithm>

#include "base/checked.h"
#include "ops/evaluate.h"
#include "ops/move.h"
#include "passes/match.h"
#include "passes/remove_dead_code.h"

namespace rlx {
namespace {

bool is_constant_shape(const Shape& shape) {
  return std::ranges::all_of(shape, [](const Dim& extent) { return extent.is_constant(); });
}

// A type whose values the reference can read from bytes and write back.
bool is_plain(const TensorType& type) {
  return !is_packed(type.dtype) && !is_complex(type.dtype) && is_constant_shape(type.shape);
}

struct ConstantFolding {
  Rewriter& rewriter;
  const Matcher& matcher;
  const PassContext& context;

  const Constant* find_constant(ValueId old_value) const {
    return rewriter.graph().producer(rewriter.map(old_value)).op.as<Constant>();
  }

  int64_t count_bytes(std::span<const ValueId> values) const {
    int64_t bytes = 0;
    for (ValueId value : values) {
      bytes = checked_add(bytes, upper_bound_bytes(matcher.type(value), {}));
    }
    return bytes;
  }

  bool can_fold(const Node& node) const {
    const OpKind& kind = node.op.kind();
    if (kind.meaning == Meaning::kSource || kind.in_place_input >= 0) return false;
    if (node.inputs.empty() && !node.op.is<Iota>()) return false;
    if (!std::ranges::all_of(node.op.list_dims(), &Dim::is_constant)) return false;
    for (ValueId input : node.inputs) {
      if (find_constant(input) == nullptr || !is_plain(matcher.type(input))) return false;
    }
    for (ValueId output : node.outputs) {
      if (!is_plain(matcher.type(output))) return false;
    }
    const int64_t bytes = count_bytes(node.outputs);
    if (bytes > context.max_folded_bytes) return false;
    // A view costs nothing; folding it pays only when it takes the place of its constant.
    if (kind.meaning == Meaning::kLayout) {
      return matcher.count_uses(node.inputs[0]) == 1 && bytes <= count_bytes(node.inputs);
    }
    return true;
  }

  std::vector<ReferenceTensor> evaluate_node(const Node& node) const {
    std::vector<ReferenceTensor> inputs;
    for (ValueId input : node.inputs) {
      const TensorType& type = matcher.type(input);
      std::vector<int64_t> extents;
      for (const Dim& extent : type.shape) extents.push_back(extent.constant());
      inputs.push_back(
          reference_from_bytes(type.dtype, std::move(extents), find_constant(input)->data->bytes));
    }
    std::vector<const ReferenceTensor*> pointers;
    for (const ReferenceTensor& input : inputs) pointers.push_back(&input);
    // No extent of the node depends on a symbol, so any values in the bounds serve.
    std::vector<int64_t> symbol_values;
    for (const Symbol& symbol : matcher.graph().symbols().symbols()) {
      symbol_values.push_back(symbol.upper);
    }
    return evaluate(node.op, pointers, list_types(matcher.graph(), node.inputs),
                    matcher.graph().symbols(), symbol_values);
  }

  bool fold(const Node& node) const {
    if (!can_fold(node)) return false;
    std::vector<ReferenceTensor> results;
    try {
      results = evaluate_node(node);
    } catch (const Error&) {
      return false;
    }
    for (size_t i = 0; i < results.size(); ++i) {
      rewriter.replace(node.outputs[i], rewriter.builder().add_constant(
                                            matcher.type(node.outputs[i]), to_bytes(results[i])));
    }
    return true;
  }
};

}  // namespace

Graph fold_constants(const Graph& graph, const PassContext& context) {
  const Matcher matcher(graph);
  const Graph folded = rewrite_graph(graph, [&](Rewriter& rewriter, const Node& node) {
    return ConstantFolding{rewriter, matcher, context}.fold(node);
  });
  return remove_dead_code(folded, context);
}

}  // namespace rlx
