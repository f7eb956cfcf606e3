#include "passes/fuse_attention.h"

#include <cmath>
#include <limits>
#include <optional>

#include "ops/attention.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/norm.h"
#include "ops/view.h"
#include "passes/match.h"
#include "passes/remove_dead_code.h"

namespace rlx {
namespace {

// A value of the old graph, and the views that bring it to [batch, tokens, heads, dim].
struct Operand {
  ValueId value;
  Shape shape;                       // after an optional reshape
  std::vector<int64_t> permutation;  // then this transpose

  Shape permuted() const {
    Shape result;
    for (int64_t axis : permutation) result.push_back(shape[axis]);
    return result;
  }
};

struct AttentionMatch {
  const Matcher& matcher;
  std::set<int32_t> nodes{};
  Attention op{.scale = 1, .causal = false};
  std::optional<Operand> q{}, k{}, v{};
  std::optional<ValueId> mask{};

  template <typename T>
  const Node* take(ValueId value) {
    const Node* node = matcher.find<T>(value);
    if (node != nullptr) nodes.insert(matcher.node_index(value));
    return node;
  }

  // Casts between floats do not change what is computed in f32.
  ValueId take_cast(ValueId value) {
    const Node* cast = matcher.find<Cast>(value);
    if (cast == nullptr || !is_float(matcher.type(cast->inputs[0]).dtype) ||
        !is_float(matcher.type(value).dtype)) {
      return value;
    }
    nodes.insert(matcher.node_index(value));
    return cast->inputs[0];
  }

  // [b, h, n, d], or [b, h, d, n] when `swapped`.
  std::optional<Operand> make_operand(ValueId value, bool swapped) const {
    const Shape& shape = matcher.type(value).shape;
    if (shape.size() != 4) return std::nullopt;
    if (swapped) return Operand{value, shape, {0, 3, 1, 2}};
    return find_repeated(Operand{value, shape, {0, 2, 1, 3}});
  }

  // [b, hk, 1, n, d] broadcast to [b, hk, g, n, d], reshaped to [b, hk * g, n, d]: the heads once.
  Operand find_repeated(const Operand& operand) const {
    const Node* reshape = matcher.find<Reshape>(operand.value);
    if (reshape == nullptr) return operand;
    const Node* broadcast = matcher.find<Broadcast>(reshape->inputs[0]);
    if (broadcast == nullptr) return operand;
    const Shape& wide = matcher.type(broadcast->outputs[0]).shape;
    const Shape& narrow = matcher.type(broadcast->inputs[0]).shape;
    if (wide.size() != 5 || narrow.size() != 5 || !narrow[2].is(1)) return operand;
    for (int axis : {0, 1, 3, 4}) {
      if (narrow[axis] != wide[axis]) return operand;
    }
    if (operand.shape != Shape{wide[0], wide[1] * wide[2], wide[3], wide[4]}) return operand;
    return {broadcast->inputs[0], {wide[0], wide[1], wide[3], wide[4]}, operand.permutation};
  }

  // scores = matmul(q, k^T), times or over a number.
  bool match_scores(ValueId value) {
    if (const Node* mul = matcher.find<Mul>(value)) {
      for (int i = 0; i < 2; ++i) {
        if (const auto number = matcher.find_splat(mul->inputs[1 - i])) {
          nodes.insert(matcher.node_index(value));
          op.scale = *number;
          value = mul->inputs[i];
          break;
        }
      }
    } else if (const Node* div = matcher.find<Div>(value)) {
      const auto number = matcher.find_splat(div->inputs[1]);
      if (!number) return false;
      nodes.insert(matcher.node_index(value));
      op.scale = 1 / *number;
      value = div->inputs[0];
    }
    if (!std::isfinite(op.scale) || op.scale == 0) return false;  // 0 stands for the default
    const Node* matmul = take<Matmul>(take_cast(value));
    if (matmul == nullptr || matmul->op.as<Matmul>()->transpose_a) return false;
    q = make_operand(matmul->inputs[0], false);
    k = make_operand(matmul->inputs[1], !matmul->op.as<Matmul>()->transpose_b);
    return q && k;
  }

  // scores + mask, or select(mask, scores, -inf), or scores alone.
  bool match_masked(ValueId value) {
    if (const Node* select = matcher.find<Select>(value)) {
      if (!matcher.is_splat(select->inputs[2], -std::numeric_limits<double>::infinity())) {
        return false;
      }
      nodes.insert(matcher.node_index(value));
      mask = select->inputs[0];
      return match_scores(select->inputs[1]);
    }
    const Node* add = matcher.find<Add>(value);
    if (add == nullptr) return match_scores(value);
    const AttentionMatch before = *this;
    for (int i = 0; i < 2; ++i) {
      nodes.insert(matcher.node_index(value));
      mask = add->inputs[1 - i];
      if (match_scores(add->inputs[i])) return true;
      restore(before);
    }
    return false;
  }
  void restore(const AttentionMatch& other) {
    nodes = other.nodes;
    op = other.op;
    q = other.q;
    k = other.k;
    mask = other.mask;
  }

  bool match(const Node& node) {
    if (!node.op.is<Matmul>() || node.op.as<Matmul>()->transpose_a) return false;
    const int32_t root = matcher.node_index(node.outputs[0]);
    nodes.insert(root);
    const Node* softmax = take<Softmax>(take_cast(node.inputs[0]));
    if (softmax == nullptr) return false;
    const int rank = matcher.type(softmax->outputs[0]).rank();
    if (rank != 4 || normalize_axis(softmax->op.as<Softmax>()->axis, rank) != 3) return false;
    v = make_operand(node.inputs[1], node.op.as<Matmul>()->transpose_b);
    if (!v || !match_masked(take_cast(softmax->inputs[0]))) return false;
    op.mask = mask.has_value();
    return matcher.can_replace(nodes, root, list_leaves());
  }

  std::vector<ValueId> list_leaves() const {
    std::vector<ValueId> leaves = {q->value, k->value, v->value};
    if (mask) leaves.push_back(*mask);
    return leaves;
  }
  std::vector<TensorType> list_operand_types() const {
    std::vector<TensorType> types;
    for (const Operand* operand : {&*q, &*k, &*v}) {
      types.push_back({matcher.type(operand->value).dtype, operand->permuted()});
    }
    if (mask) types.push_back(matcher.type(*mask));
    return types;
  }
};

struct Attentions {
  Rewriter& rewriter;
  const Matcher& matcher;
  const PassContext& context;

  ValueId emit(const Operand& operand) const {
    ValueId value = rewriter.map(operand.value);
    if (matcher.type(operand.value).shape != operand.shape) {
      value = rewriter.builder().add(Reshape{.shape = operand.shape}, {value});
    }
    return rewriter.builder().add(Transpose{.permutation = operand.permutation}, {value});
  }

  bool rewrite(const Node& node) const {
    AttentionMatch match{matcher};
    if (!match.match(node)) return false;
    // Batches and, unless they are repeated, heads must agree: attention does not broadcast them.
    const std::vector<TensorType> types = match.list_operand_types();
    const auto results = try_infer(match.op, types, matcher.graph().symbols());
    const TensorType& type = matcher.type(node.outputs[0]);
    const Shape& shape = type.shape;
    if (!results ||
        (*results)[0] != TensorType{type.dtype, {shape[0], shape[2], shape[1], shape[3]}}) {
      return false;
    }
    if (!context.claims || !context.claims(match.op, types, matcher.graph().symbols()))
      return false;
    std::vector<ValueId> inputs = {emit(*match.q), emit(*match.k), emit(*match.v)};
    if (match.mask) inputs.push_back(rewriter.map(*match.mask));
    const ValueId result = rewriter.builder().add(match.op, inputs);
    rewriter.replace(node.outputs[0],
                     rewriter.builder().add(Transpose{.permutation = {0, 2, 1, 3}}, {result}));
    return true;
  }
};

}  // namespace

Graph fuse_attention(const Graph& graph, const PassContext& context) {
  const Matcher matcher(graph);
  const Graph fused = rewrite_graph(graph, [&](Rewriter& rewriter, const Node& node) {
    return Attentions{rewriter, matcher, context}.rewrite(node);
  });
  return remove_dead_code(fused, context);
}

}  // namespace rlx
