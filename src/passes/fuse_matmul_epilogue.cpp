#include "passes/fuse_matmul_epilogue.h"

#include <algorithm>
#include <map>
#include <optional>

#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/view.h"
#include "passes/match.h"
#include "passes/remove_dead_code.h"

namespace rlx {
namespace {

std::optional<Activation> find_activation(const Op& op) {
  if (op.is<Relu>()) return Activation::kRelu;
  if (op.is<Silu>()) return Activation::kSilu;
  if (op.is<Sigmoid>()) return Activation::kSigmoid;
  if (op.is<Tanh>()) return Activation::kTanh;
  if (const Gelu* gelu = op.as<Gelu>()) {
    return gelu->approximate == GeluKind::kTanh ? Activation::kGeluTanh : Activation::kGelu;
  }
  return std::nullopt;
}

// What is joined: the attributes and operands, the last node, and the nodes before it.
struct Chain {
  Linear op{};
  ValueId x, w, bias{}, residual{};
  ValueId result;
  std::set<int32_t> nodes{};
};

struct Epilogues {
  const Matcher& matcher;
  const PassContext& context;
  std::map<int32_t, Chain> by_root{};  // by the number of the last node
  std::set<int32_t> taken{};           // nodes that belong to a chain

  Epilogues(const Matcher& m, const PassContext& c) : matcher(m), context(c) {
    for (const Node& node : matcher.graph().nodes()) find_chain(node);
  }

  // The only user of a value, when it is a node that no chain has taken; else null.
  const Node* find_only_user(ValueId value) const {
    if (matcher.count_uses(value) != 1 || matcher.is_output(value)) return nullptr;
    const int32_t user = matcher.users(value)[0];
    return taken.contains(user) ? nullptr : &matcher.graph().node(user);
  }

  bool is_bias(ValueId value, const Dim& extent) const {
    const Shape& shape = matcher.type(value).shape;
    return !shape.empty() && shape.back() == extent &&
           std::all_of(shape.begin(), shape.end() - 1, [](const Dim& dim) { return dim.is(1); });
  }

  // The chain with one more step, or nullopt when no step follows.
  std::optional<Chain> extend(const Chain& chain) const {
    const Node* user = find_only_user(chain.result);
    if (user == nullptr) return std::nullopt;
    Chain longer = chain;
    longer.nodes.insert(matcher.node_index(chain.result));
    longer.result = user->outputs[0];
    const TensorType& type = matcher.type(chain.result);
    if (matcher.type(longer.result) != type || chain.op.residual) return std::nullopt;
    const std::optional<Activation> activation = find_activation(user->op);
    const bool has_activation = chain.op.activation != Activation::kNone;
    if (activation && !has_activation) {
      longer.op.activation = *activation;
      return longer;
    }
    if (!user->op.is<Add>()) return std::nullopt;
    const ValueId other = user->inputs[user->inputs[0] == chain.result ? 1 : 0];
    if (!chain.op.bias && !has_activation && is_bias(other, type.shape.back()) &&
        matcher.type(other) != type) {
      longer.op.bias = true;
      longer.bias = other;
      return longer;
    }
    if (matcher.type(other) != type) return std::nullopt;
    longer.op.residual = true;
    longer.residual = other;
    return longer;
  }

  std::vector<ValueId> list_inputs(const Chain& chain) const {
    std::vector<ValueId> inputs = {chain.x, chain.w};
    if (chain.op.bias) inputs.push_back(chain.bias);
    if (chain.op.residual) inputs.push_back(chain.residual);
    return inputs;
  }

  bool can_replace(const Chain& chain) const {
    const std::vector<ValueId> inputs = list_inputs(chain);
    if (!matcher.can_read_later(inputs)) return false;
    std::vector<TensorType> types = list_types(matcher.graph(), inputs);
    if (chain.op.bias) types[2].shape = {types[2].shape.back()};
    const SymbolTable& symbols = matcher.graph().symbols();
    const auto results = try_infer(chain.op, types, symbols);
    return results && (*results)[0] == matcher.type(chain.result) && context.claims &&
           context.claims(chain.op, types, symbols);
  }

  void find_chain(const Node& node) {
    const Matmul* matmul = node.op.as<Matmul>();
    if (matmul == nullptr || matmul->transpose_a || !matmul->transpose_b) return;
    if (matcher.type(node.inputs[1]).rank() != 2) return;
    std::vector<Chain> prefixes;
    std::optional<Chain> chain =
        Chain{.x = node.inputs[0], .w = node.inputs[1], .result = node.outputs[0]};
    while ((chain = extend(*chain))) prefixes.push_back(*chain);
    const auto longest = std::find_if(prefixes.rbegin(), prefixes.rend(),
                                      [&](const Chain& prefix) { return can_replace(prefix); });
    if (longest == prefixes.rend()) return;
    const int32_t root = matcher.node_index(longest->result);
    taken.insert(longest->nodes.begin(), longest->nodes.end());
    taken.insert(root);
    by_root.emplace(root, *longest);
  }

  bool rewrite(Rewriter& rewriter, const Node& node) const {
    const auto found = by_root.find(matcher.node_index(node.outputs[0]));
    if (found == by_root.end()) return false;
    const Chain& chain = found->second;
    std::vector<ValueId> inputs = rewriter.map_all(list_inputs(chain));
    if (chain.op.bias && matcher.type(chain.bias).rank() != 1) {
      const Shape shape = {matcher.type(chain.bias).shape.back()};
      inputs[2] = rewriter.builder().add(Reshape{.shape = shape}, {inputs[2]});
    }
    rewriter.replace(chain.result, rewriter.builder().add(chain.op, inputs));
    return true;
  }
};

}  // namespace

Graph fuse_matmul_epilogue(const Graph& graph, const PassContext& context) {
  const Matcher matcher(graph);
  const Epilogues epilogues(matcher, context);
  const Graph fused = rewrite_graph(graph, [&](Rewriter& rewriter, const Node& node) {
    return epilogues.rewrite(rewriter, node);
  });
  return remove_dead_code(fused, context);
}

}  // namespace rlx
