#include "passes/fuse_elementwise.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <queue>

#include "ops/elementwise.h"
#include "passes/match.h"
#include "passes/remove_dead_code.h"

namespace rlx {
namespace {

// What a region computes in. A bool fits both, so a region of bools alone is either.
enum class Precision : uint8_t { kEither, kFloat, kInteger };

std::optional<Precision> find_precision(DType dtype) {
  if (dtype == DType::kBool) return Precision::kEither;
  if (dtype == DType::kF32) return Precision::kFloat;
  if (dtype == DType::kI64) return Precision::kInteger;
  return std::nullopt;
}

std::optional<Precision> combine(Precision a, Precision b) {
  if (a == Precision::kEither) return b;
  if (b == Precision::kEither || a == b) return a;
  return std::nullopt;
}

// Nodes of the old graph that become one.
struct Region {
  std::set<int32_t> nodes{};
  Precision precision = Precision::kEither;
  std::vector<ValueId> inputs{};
  Formula formula{};
};

struct ElementwiseFusion {
  const Matcher& matcher;
  const PassContext& context;
  std::vector<bool> is_taken;           // by node
  std::map<int32_t, Region> by_root{};  // regions of two nodes and more

  ElementwiseFusion(const Matcher& m, const PassContext& c)
      : matcher(m), context(c), is_taken(m.graph().nodes().size(), false) {
    // From the end, so that a region starts at the last node that can be in it.
    for (int32_t i = static_cast<int32_t>(is_taken.size()) - 1; i >= 0; --i) grow_from(i);
  }

  const Node& node(int32_t index) const { return matcher.graph().node(index); }
  const TensorType& result_type(int32_t index) const {
    return matcher.type(node(index).outputs[0]);
  }

  // A cast that only names the precision in which the formula computes anyway.
  bool is_free_cast(const Node& node) const {
    if (!node.op.is<Cast>()) return false;
    const DType from = matcher.type(node.inputs[0]).dtype;
    const DType to = matcher.type(node.outputs[0]).dtype;
    if (to == DType::kF32) {
      return from == DType::kF16 || from == DType::kBF16 || from == DType::kBool;
    }
    return to == DType::kI64 && from == DType::kBool;
  }

  // The precision that the node needs; nullopt when it cannot be in a region.
  std::optional<Precision> find_node_precision(int32_t index) const {
    const Node& n = node(index);
    const bool is_cast = is_free_cast(n);
    if (!is_cast && n.op.kind().meaning != Meaning::kScalar) return std::nullopt;
    std::optional<Precision> precision = find_precision(result_type(index).dtype);
    for (ValueId input : n.inputs) {
      if (!precision || is_cast) break;
      const auto needed = find_precision(matcher.type(input).dtype);
      precision = needed ? combine(*precision, *needed) : std::nullopt;
    }
    return precision;
  }

  // The number of a constant of one element that a formula can hold exactly.
  std::optional<double> find_number(ValueId value) const {
    if (matcher.find<Constant>(value) == nullptr) return std::nullopt;
    for (const Dim& extent : matcher.type(value).shape) {
      if (!extent.is(1)) return std::nullopt;
    }
    const std::optional<double> number = matcher.find_splat(value);
    if (number && is_integer(matcher.type(value).dtype) && std::abs(*number) > 0x1p53) {
      return std::nullopt;
    }
    return number;
  }

  // Fills in the inputs and the formula from the nodes; false when a limit is passed.
  bool build(Region& region) const {
    region.inputs.clear();
    region.formula = {};
    std::map<int32_t, int32_t> step_of;  // by value
    const auto find_step = [&](ValueId value) {
      const auto found = step_of.find(value.index);
      if (found != step_of.end()) return found->second;
      FormulaStep step;
      if (const std::optional<double> number = find_number(value)) {
        step = {FormulaOp::constant, -1, -1, -1, *number};
      } else {
        step = {FormulaOp::input, static_cast<int32_t>(region.inputs.size())};
        region.inputs.push_back(value);
      }
      return step_of[value.index] = region.formula.add(step);
    };
    for (int32_t index : region.nodes) {  // ascending: producers first
      const Node& n = node(index);
      std::vector<int32_t> arguments;
      for (ValueId input : n.inputs) arguments.push_back(find_step(input));
      step_of[n.outputs[0].index] =
          n.op.is<Cast>()
              ? arguments[0]
              : region.formula.splice(n.op.formula(static_cast<int>(n.inputs.size())), arguments);
      if (region.formula.steps().size() > static_cast<size_t>(kMaxFusedSteps)) return false;
    }
    region.formula.set_result(step_of.at(node(*region.nodes.rbegin()).outputs[0].index));
    return region.inputs.size() <= static_cast<size_t>(kMaxFusedInputs);
  }

  // Whether all uses of what the node makes lie in the region.
  bool is_inside(const Region& region, int32_t index) const {
    const ValueId result = node(index).outputs[0];
    return !matcher.is_output(result) &&
           std::ranges::all_of(matcher.users(result),
                               [&](int32_t user) { return region.nodes.contains(user); });
  }

  // What the node reads is read at the root's place from then on.
  bool can_move(int32_t index, int32_t root) const {
    return std::ranges::none_of(node(index).inputs, [&](ValueId input) {
      return matcher.effects().is_written_between(input, index, root);
    });
  }

  bool try_add(Region& region, int32_t index, int32_t root) const {
    if (is_taken[index] || region.nodes.contains(index)) return false;
    const auto needed = find_node_precision(index);
    const auto precision = needed ? combine(region.precision, *needed) : std::nullopt;
    if (!precision || result_type(index).shape != result_type(root).shape) return false;
    if (!is_inside(region, index) || !can_move(index, root)) return false;
    Region larger = region;
    larger.nodes.insert(index);
    larger.precision = *precision;
    if (!build(larger)) return false;
    region = std::move(larger);
    return true;
  }

  // Adds producers, the latest first, so that a node comes after all that use it.
  bool grow_once(Region& region, int32_t root) const {
    std::priority_queue<int32_t> producers;
    std::set<int32_t> seen;
    const auto push_producers = [&](int32_t index) {
      for (ValueId input : node(index).inputs) {
        const int32_t producer = matcher.node_index(input);
        if (seen.insert(producer).second) producers.push(producer);
      }
    };
    for (int32_t index : region.nodes) push_producers(index);
    bool grew = false;
    while (!producers.empty()) {
      const int32_t index = producers.top();
      producers.pop();
      if (!try_add(region, index, root)) continue;
      grew = true;
      push_producers(index);
    }
    return grew;
  }

  Op make_op(const Region& region, int32_t root) const {
    Fused fused;
    fused.formula = region.formula;
    fused.dtype = result_type(root).dtype;
    return fused;
  }

  // Whether the fused op gives the root's type, and the target claims it.
  bool is_valid(const Region& region, int32_t root) const {
    if (region.inputs.empty()) return false;  // left to fold_constants
    const Op op = make_op(region, root);
    const auto types = list_types(matcher.graph(), region.inputs);
    const auto results = try_infer(op, types, matcher.graph().symbols());
    return results && (*results)[0] == result_type(root) &&
           is_claimed(context, op, matcher.graph(), region.inputs);
  }

  void grow_from(int32_t root) {
    const auto precision = find_node_precision(root);
    if (is_taken[root] || !precision) return;
    Region region{{root}, *precision};
    if (!build(region)) return;
    // A producer that passed a limit may fit once its own producers' inputs are shared.
    while (grow_once(region, root)) {
    }
    if (region.nodes.size() < 2 || !is_valid(region, root)) return;
    for (int32_t index : region.nodes) is_taken[index] = true;
    by_root.emplace(root, std::move(region));
  }

  bool rewrite(Rewriter& rewriter, const Node& n) const {
    const int32_t index = matcher.node_index(n.outputs[0]);
    const auto found = by_root.find(index);
    if (found == by_root.end()) return false;
    const Region& region = found->second;
    rewriter.replace(n.outputs[0], rewriter.builder().add(make_op(region, index),
                                                          rewriter.map_all(region.inputs)));
    return true;
  }
};

}  // namespace

Graph fuse_elementwise(const Graph& graph, const PassContext& context) {
  const Matcher matcher(graph);
  const ElementwiseFusion fusion(matcher, context);
  const Graph fused = rewrite_graph(
      graph, [&](Rewriter& rewriter, const Node& node) { return fusion.rewrite(rewriter, node); });
  return remove_dead_code(fused, context);
}

}  // namespace rlx
