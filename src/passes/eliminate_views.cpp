#include "passes/eliminate_views.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "base/checked.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/view.h"
#include "passes/match.h"
#include "passes/remove_dead_code.h"

namespace rlx {
namespace {

using Permutation = std::vector<int64_t>;

// The permutation with every axis listed and counted from the front.
Permutation spell_permutation(const Transpose& transpose, int rank) {
  Permutation permutation = transpose.permutation;
  if (permutation.empty()) {
    for (int64_t axis = rank - 1; axis >= 0; --axis) permutation.push_back(axis);
  }
  for (int64_t& axis : permutation) axis = normalize_axis(axis, rank);
  return permutation;
}

bool is_identity(const Permutation& permutation) {
  for (size_t i = 0; i < permutation.size(); ++i) {
    if (permutation[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

// True when only axes of extent 1 move, so that the elements keep their order.
bool keeps_order(const Permutation& permutation, const Shape& input) {
  int64_t last = -1;
  for (int64_t axis : permutation) {
    if (input[axis].is(1)) continue;
    if (axis < last) return false;
    last = axis;
  }
  return true;
}

std::vector<int64_t> spell_steps(const Slice& slice) {
  return slice.steps.empty() ? std::vector<int64_t>(slice.sizes.size(), 1) : slice.steps;
}

struct Views {
  using Result = std::optional<ValueId>;

  Rewriter& rewriter;
  const Matcher& matcher;
  const PassContext& context;

  Result emit(Op op, ValueId x) const {
    return rewriter.builder().add(std::move(op), {rewriter.map(x)});
  }
  // The input of the T that makes `value`, where it may be read later; nullopt when there is none.
  template <typename T>
  Result look_through(ValueId value) const {
    const Node* node = matcher.find<T>(value);
    if (node == nullptr || !matcher.can_read_later(node->inputs)) return std::nullopt;
    return node->inputs[0];
  }

  Result join_reshape(const Node& node) const {
    const Shape& shape = matcher.type(node.outputs[0]).shape;
    ValueId x = node.inputs[0];
    bool found = false;
    while (true) {
      // reshape(reshape(x)) -> reshape(x)
      Result inner = look_through<Reshape>(x);
      // reshape(transpose(x)) -> reshape(x) where only axes of extent 1 move
      if (!inner) {
        inner = look_through<Transpose>(x);
        if (inner && !keeps_order(find_permutation(x), matcher.type(*inner).shape)) inner.reset();
      }
      if (!inner) break;
      x = *inner;
      found = true;
    }
    // reshape(x) -> x where the shape stays
    if (matcher.type(x).shape == shape) return rewriter.map(x);
    return found ? emit(Reshape{.shape = shape}, x) : std::nullopt;
  }

  Permutation find_permutation(ValueId value) const {
    const Node& node = matcher.graph().producer(value);
    return spell_permutation(*node.op.as<Transpose>(), matcher.type(value).rank());
  }

  Result join_transpose(const Node& node) const {
    Permutation permutation = find_permutation(node.outputs[0]);
    ValueId x = node.inputs[0];
    bool found = false;
    // transpose_p(transpose_q(x)) -> transpose_qp(x), with qp[i] = q[p[i]]
    while (const Result inner = look_through<Transpose>(x)) {
      const Permutation first = find_permutation(x);
      for (int64_t& axis : permutation) axis = first[axis];
      x = *inner;
      found = true;
    }
    // transpose(x) -> x where no axis moves
    if (is_identity(permutation)) return rewriter.map(x);
    // transpose(reshape(x)) -> reshape(x) where only axes of extent 1 move
    if (const Result inner = look_through<Reshape>(x);
        inner && keeps_order(permutation, matcher.type(x).shape)) {
      return emit(Reshape{.shape = matcher.type(node.outputs[0]).shape}, *inner);
    }
    return found ? emit(Transpose{.permutation = permutation}, x) : std::nullopt;
  }

  Result join_broadcast(const Node& node) const {
    const Shape& shape = matcher.type(node.outputs[0]).shape;
    // broadcast(x) -> x where the shape stays
    if (matcher.type(node.inputs[0]).shape == shape) return rewriter.map(node.inputs[0]);
    // broadcast(broadcast(x)) -> broadcast(x)
    if (const Result inner = look_through<Broadcast>(node.inputs[0])) {
      return emit(Broadcast{.shape = shape}, *inner);
    }
    return std::nullopt;
  }

  Result join_slice(const Node& node) const {
    const Slice& outer = *node.op.as<Slice>();
    const ValueId x = node.inputs[0];
    // slice(x) -> x where all of it is taken
    if (matcher.type(x).shape == matcher.type(node.outputs[0]).shape) return rewriter.map(x);
    const Result inner_input = look_through<Slice>(x);
    if (!inner_input) return std::nullopt;
    // slice(slice(x)): element i is (s1 + i * t1) * t0 + s0 -> start s0 + s1 * t0, step t0 * t1
    const Slice& inner = *matcher.graph().producer(x).op.as<Slice>();
    const std::vector<int64_t> first_steps = spell_steps(inner);
    const std::vector<int64_t> second_steps = spell_steps(outer);
    Slice joined;
    joined.sizes = outer.sizes;
    try {
      for (size_t i = 0; i < outer.sizes.size(); ++i) {
        joined.starts.push_back(inner.starts[i] + outer.starts[i] * first_steps[i]);
        joined.steps.push_back(checked_mul(first_steps[i], second_steps[i]));
      }
    } catch (const Error&) {  // a product does not fit in 64 bits
      return std::nullopt;
    }
    if (std::ranges::all_of(joined.steps, [](int64_t step) { return step == 1; })) {
      joined.steps.clear();
    }
    // The joined bounds may be harder to prove where the extents are symbolic.
    const std::vector<TensorType> types = {matcher.type(*inner_input)};
    if (!try_infer(joined, types, matcher.graph().symbols())) return std::nullopt;
    return emit(std::move(joined), *inner_input);
  }

  // op(broadcast(x), y) -> op(x, y) where the op stretches x to the same shape.
  Result drop_broadcasts(const Node& node) const {
    std::vector<ValueId> inputs = node.inputs;
    std::vector<TensorType> types = list_types(matcher.graph(), inputs);
    bool found = false;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Result inner = look_through<Broadcast>(inputs[i]);
      if (!inner) continue;
      const TensorType stretched = std::exchange(types[i], matcher.type(*inner));
      const auto result = try_infer(node.op, types, matcher.graph().symbols());
      if (result && (*result)[0] == matcher.type(node.outputs[0])) {
        inputs[i] = *inner;
        found = true;
      } else {
        types[i] = stretched;
      }
    }
    if (!found) return std::nullopt;
    if (context.claims && !context.claims(node.op, types, matcher.graph().symbols())) {
      return std::nullopt;
    }
    return rewriter.builder().add(node.op, rewriter.map_all(inputs));
  }

  // The input of a transpose that swaps the last two axes and makes `value`.
  Result look_through_swap(ValueId value) const {
    const Result inner = look_through<Transpose>(value);
    if (!inner) return std::nullopt;
    Permutation permutation = find_permutation(value);
    std::swap(permutation[permutation.size() - 1], permutation[permutation.size() - 2]);
    return is_identity(permutation) ? inner : std::nullopt;
  }

  // matmul(a, transpose(b)) -> matmul(a, b) with transpose_b turned, and a likewise.
  Result turn_matmul(const Node& node) const {
    Matmul matmul = *node.op.as<Matmul>();
    std::vector<ValueId> inputs = node.inputs;
    if (const Result inner = look_through_swap(inputs[0])) {
      inputs[0] = *inner;
      matmul.transpose_a = !matmul.transpose_a;
    }
    if (const Result inner = look_through_swap(inputs[1])) {
      inputs[1] = *inner;
      matmul.transpose_b = !matmul.transpose_b;
    }
    if (inputs == node.inputs) return std::nullopt;
    if (context.claims && !is_claimed(context, matmul, matcher.graph(), inputs)) {
      return std::nullopt;
    }
    return rewriter.builder().add(matmul, rewriter.map_all(inputs));
  }

  Result rewrite(const Node& node) const {
    // What stands for the node may be read where the node's own result was read: later.
    if (!matcher.can_read_later(node.inputs)) return std::nullopt;
    if (node.op.is<Reshape>()) return join_reshape(node);
    if (node.op.is<Transpose>()) return join_transpose(node);
    if (node.op.is<Broadcast>()) return join_broadcast(node);
    if (node.op.is<Slice>()) return join_slice(node);
    if (node.op.is<Matmul>()) return turn_matmul(node);
    // copy(x) -> x
    if (node.op.is<Copy>()) return rewriter.map(node.inputs[0]);
    // cast(x) -> x where the dtype stays
    if (node.op.is<Cast>() && matcher.type(node.inputs[0]) == matcher.type(node.outputs[0])) {
      return rewriter.map(node.inputs[0]);
    }
    if (node.op.kind().meaning == Meaning::kScalar) return drop_broadcasts(node);
    return std::nullopt;
  }
};

// Each round shortens every chain of views; longer ones than this stay for the next run.
constexpr int kMaxRounds = 8;

}  // namespace

Graph eliminate_views(const Graph& graph, const PassContext& context) {
  Graph result = graph;
  bool changed = true;
  for (int round = 0; changed && round < kMaxRounds; ++round) {
    changed = false;
    const Matcher matcher(result);
    Graph next = rewrite_graph(result, [&](Rewriter& rewriter, const Node& node) {
      const Views::Result value = Views{rewriter, matcher, context}.rewrite(node);
      if (!value) return false;
      rewriter.replace(node.outputs[0], *value);
      changed = true;
      return true;
    });
    result = remove_dead_code(next, context);
  }
  return result;
}

}  // namespace rlx
