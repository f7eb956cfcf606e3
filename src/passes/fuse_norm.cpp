#include "passes/fuse_norm.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "ops/elementwise.h"
#include "ops/norm.h"
#include "ops/reduce.h"
#include "ops/view.h"
#include "passes/match.h"
#include "passes/remove_dead_code.h"

namespace rlx {
namespace {

// The eps of a model's file is a decimal such as 1e-5, held here in f32, which has digits of noise
// as a double: the shortest decimal of that float is what was meant.
double clean_eps(double eps, DType dtype) {
  if (dtype == DType::kF64) return eps;
  const std::string text = fmt::format("{}", static_cast<float>(eps));
  std::from_chars(text.data(), text.data() + text.size(), eps);
  return eps;
}

// Matches the parts of a norm, noting the nodes that it would replace.
struct NormMatch {
  const Matcher& matcher;
  std::set<int32_t> nodes{};

  template <typename T>
  const Node* take(ValueId value) {
    const Node* node = matcher.find<T>(value);
    if (node != nullptr) nodes.insert(matcher.node_index(value));
    return node;
  }

  // The operand of a T other than a splat that equals `number`.
  template <typename T>
  std::optional<ValueId> take_with_number(ValueId value, double number) {
    const Node* node = matcher.find<T>(value);
    if (node == nullptr || !matcher.is_splat(node->inputs[1], number)) return std::nullopt;
    nodes.insert(matcher.node_index(value));
    return node->inputs[0];
  }

  // x of x^2, as x * x or pow(x, 2).
  std::optional<ValueId> match_square(ValueId value) {
    if (const auto x = take_with_number<Pow>(value, 2)) return x;
    const Node* mul = matcher.find<Mul>(value);
    if (mul == nullptr || mul->inputs[0] != mul->inputs[1]) return std::nullopt;
    nodes.insert(matcher.node_index(value));
    return mul->inputs[0];
  }

  static bool is_last_axis(const std::vector<int64_t>& axes, int rank) {
    return axes.size() == 1 && normalize_axis(axes[0], rank) == rank - 1;
  }

  template <typename T>
  std::optional<ValueId> match_last_axis_reduction(ValueId value) {
    const Node* node = matcher.find<T>(value);
    if (node == nullptr) return std::nullopt;
    const T* reduce = node->op.template as<T>();
    const int rank = matcher.type(node->inputs[0]).rank();
    if (!reduce->keep_dims || !is_last_axis(reduce->axes, rank)) return std::nullopt;
    nodes.insert(matcher.node_index(value));
    return node->inputs[0];
  }

  // x of mean(x) over the last axis, that axis kept: reduce_mean, or the sum over the extent.
  std::optional<ValueId> match_mean(ValueId value) {
    if (const auto x = match_last_axis_reduction<ReduceMean>(value)) return x;
    const bool divides = matcher.find<Div>(value) != nullptr;
    const Node* scaled = divides ? take<Div>(value) : take<Mul>(value);
    if (scaled == nullptr) return std::nullopt;
    const auto x = match_last_axis_reduction<ReduceSum>(scaled->inputs[0]);
    if (!x) return std::nullopt;
    const Dim& extent = matcher.type(*x).shape.back();
    const auto number = matcher.find_splat(scaled->inputs[1]);
    if (!number || !extent.is_constant() || extent.is(0)) return std::nullopt;
    const double count = static_cast<double>(extent.constant());
    const double expected = divides ? count : round_float(matcher.type(value).dtype, 1 / count);
    return *number == expected ? x : std::nullopt;
  }

  // (v, eps) of v + eps.
  std::optional<std::pair<ValueId, double>> match_add_eps(ValueId value) {
    const Node* add = take<Add>(value);
    if (add == nullptr) return std::nullopt;
    for (int i = 0; i < 2; ++i) {
      if (const auto eps = matcher.find_splat(add->inputs[1 - i])) {
        return std::pair{add->inputs[i], clean_eps(*eps, matcher.type(value).dtype)};
      }
    }
    return std::nullopt;
  }

  // v of sqrt(v), as sqrt or pow(v, 0.5).
  std::optional<ValueId> match_sqrt(ValueId value) {
    if (const Node* sqrt = take<Sqrt>(value)) return sqrt->inputs[0];
    return take_with_number<Pow>(value, 0.5);
  }

  // v of 1 / sqrt(v): rsqrt(v), reciprocal(sqrt(v)), 1 / sqrt(v) or pow(v, -0.5).
  std::optional<ValueId> match_inverse_sqrt(ValueId value) {
    if (const Node* rsqrt = take<Rsqrt>(value)) return rsqrt->inputs[0];
    if (const auto v = take_with_number<Pow>(value, -0.5)) return v;
    if (const Node* reciprocal = take<Reciprocal>(value)) return match_sqrt(reciprocal->inputs[0]);
    if (const Node* div = matcher.find<Div>(value);
        div != nullptr && matcher.is_splat(div->inputs[0], 1)) {
      nodes.insert(matcher.node_index(value));
      return match_sqrt(div->inputs[1]);
    }
    return std::nullopt;
  }

  struct Scaled {
    ValueId x;
    double eps;
  };
  // x and eps of x * 1 / sqrt(mean(x^2) + eps), as a product or a division.
  std::optional<Scaled> match_rms_scaled(ValueId value) {
    const std::set<int32_t> before = nodes;
    const auto finish = [&](ValueId x, std::optional<ValueId> v) -> std::optional<Scaled> {
      if (!v) return std::nullopt;
      const auto sum = match_add_eps(*v);
      if (!sum) return std::nullopt;
      const auto square = match_mean(sum->first);
      if (!square || match_square(*square) != x) return std::nullopt;
      return Scaled{x, sum->second};
    };
    if (const Node* div = take<Div>(value))
      return finish(div->inputs[0], match_sqrt(div->inputs[1]));
    const Node* mul = matcher.find<Mul>(value);
    if (mul == nullptr) return std::nullopt;
    for (int i = 0; i < 2; ++i) {
      nodes = before;
      nodes.insert(matcher.node_index(value));
      if (auto scaled = finish(mul->inputs[i], match_inverse_sqrt(mul->inputs[1 - i]))) {
        return scaled;
      }
    }
    return std::nullopt;
  }

  // x of x - mean(x).
  std::optional<ValueId> match_centered(ValueId value) {
    const Node* sub = take<Sub>(value);
    if (sub == nullptr || match_mean(sub->inputs[1]) != sub->inputs[0]) return std::nullopt;
    return sub->inputs[0];
  }

  // The input of a cast, or the value itself.
  ValueId take_cast(ValueId value) {
    const Node* cast = take<Cast>(value);
    return cast != nullptr && is_float(matcher.type(cast->inputs[0]).dtype) ? cast->inputs[0]
                                                                            : value;
  }
};

struct Norms {
  using Result = std::optional<ValueId>;

  Rewriter& rewriter;
  const Matcher& matcher;
  const PassContext& context;

  // Whether `value` is a vector over the last axis of extent `extent`: [n], or [1, ..., n].
  bool is_vector(ValueId value, const Dim& extent) const {
    const Shape& shape = matcher.type(value).shape;
    return !shape.empty() && shape.back() == extent && is_float(matcher.type(value).dtype) &&
           std::all_of(shape.begin(), shape.end() - 1, [](const Dim& dim) { return dim.is(1); });
  }

  // `op` on x and the vectors, when it gives the node's type and the target claims it.
  Result emit(const Op& op, const Node& node, ValueId x, std::span<const ValueId> vectors) const {
    const Dim& extent = matcher.type(x).shape.back();
    std::vector<TensorType> types = {matcher.type(x)};
    for (ValueId vector : vectors) types.push_back({matcher.type(vector).dtype, {extent}});
    const auto results = try_infer(op, types, matcher.graph().symbols());
    if (!results || (*results)[0] != matcher.type(node.outputs[0])) return std::nullopt;
    if (!context.claims || !context.claims(op, types, matcher.graph().symbols())) {
      return std::nullopt;
    }
    std::vector<ValueId> inputs = {rewriter.map(x)};
    for (ValueId vector : vectors) {
      ValueId mapped = rewriter.map(vector);
      if (matcher.type(vector).rank() != 1) {
        mapped = rewriter.builder().add(Reshape{.shape = {extent}}, {mapped});
      }
      inputs.push_back(mapped);
    }
    return rewriter.builder().add(op, inputs);
  }

  // The casts around a norm that is computed in f32: x is cast up, the result cast down, before the
  // weight is multiplied or after.
  struct Product {
    ValueId normalized, weight;
  };
  std::optional<Product> match_product(NormMatch& match, ValueId value, int operand) const {
    const Node* mul = match.take<Mul>(match.take_cast(value));
    if (mul == nullptr) return std::nullopt;
    return Product{match.take_cast(mul->inputs[operand]), mul->inputs[1 - operand]};
  }

  // The value before a cast of the weight, which the norms do themselves.
  ValueId skip_weight_cast(ValueId weight) const {
    const Node* cast = matcher.find<Cast>(weight);
    return cast != nullptr && is_float(matcher.type(cast->inputs[0]).dtype) ? cast->inputs[0]
                                                                            : weight;
  }

  bool can_replace(const NormMatch& match, const Node& node, std::vector<ValueId> leaves) const {
    return matcher.can_replace(match.nodes, matcher.node_index(node.outputs[0]), leaves);
  }

  // x / sqrt(mean(x^2) + eps) * w -> rms_norm(x, w)
  Result match_rms_norm(const Node& node) const {
    for (int operand = 0; operand < 2; ++operand) {
      NormMatch match{matcher};
      const auto product = match_product(match, node.outputs[0], operand);
      if (!product) continue;
      const auto scaled = match.match_rms_scaled(product->normalized);
      if (!scaled || matcher.type(scaled->x).shape.empty()) continue;
      // The value before the cast to f32, where the result goes back to its dtype.
      for (ValueId x : {scaled->x, match.take_cast(scaled->x)}) {
        if (!is_vector(product->weight, matcher.type(x).shape.back())) continue;
        for (ValueId weight : {skip_weight_cast(product->weight), product->weight}) {
          NormMatch whole = match;
          // A cast of x may have other users: it stays for them.
          whole.nodes.erase(matcher.node_index(scaled->x));
          if (!can_replace(whole, node, {x, weight})) continue;
          if (Result result = emit(RmsNorm{.eps = scaled->eps}, node, x, std::vector{weight})) {
            return result;
          }
        }
      }
    }
    return std::nullopt;
  }

  // (x - mean(x)) / sqrt(mean((x - mean(x))^2) + eps) * w + b -> layer_norm(x, w, b)
  Result match_layer_norm(const Node& node) const {
    for (int i = 0; i < 4; ++i) {
      NormMatch match{matcher};
      const Node* add = match.take<Add>(node.outputs[0]);
      if (add == nullptr) return std::nullopt;
      const ValueId bias = add->inputs[1 - i / 2];
      const auto product = match_product(match, add->inputs[i / 2], i % 2);
      if (!product) continue;
      const auto scaled = match.match_rms_scaled(product->normalized);
      if (!scaled) continue;
      const auto x = match.match_centered(scaled->x);
      if (!x || matcher.type(*x).shape.empty()) continue;
      const Dim& extent = matcher.type(*x).shape.back();
      if (!is_vector(product->weight, extent) || !is_vector(bias, extent)) continue;
      if (!can_replace(match, node, {*x, product->weight, bias})) continue;
      if (Result result =
              emit(LayerNorm{.eps = scaled->eps}, node, *x, std::vector{product->weight, bias})) {
        return result;
      }
    }
    return std::nullopt;
  }

  bool rewrite(const Node& node) const {
    Result result;
    if (node.op.is<Mul>() || node.op.is<Cast>()) result = match_rms_norm(node);
    if (node.op.is<Add>()) result = match_layer_norm(node);
    if (!result) return false;
    rewriter.replace(node.outputs[0], *result);
    return true;
  }
};

// s = x + y; n = rms_norm(s, w) -> s, n = add_rms_norm(x, y, w)
struct AddNorms {
  Rewriter& rewriter;
  const Matcher& matcher;
  const PassContext& context;
  std::set<int32_t> done{};  // nodes of the old graph whose outputs are mapped already

  // The rms_norm of the sum that is taken along; null when there is none, or more than one.
  const Node* find_norm(ValueId sum) const {
    const Node* found = nullptr;
    for (int32_t user : matcher.users(sum)) {
      const Node& node = matcher.graph().node(user);
      if (!node.op.is<RmsNorm>() || node.inputs[0] != sum) continue;
      if (found != nullptr) return nullptr;
      found = &node;
    }
    return found;
  }

  bool rewrite(const Node& node) {
    if (done.contains(matcher.node_index(node.outputs[0]))) return true;
    if (!node.op.is<Add>()) return false;
    const ValueId sum = node.outputs[0];
    const Node* norm = find_norm(sum);
    if (norm == nullptr || matcher.count_uses(sum) < 2) return false;
    for (ValueId input : node.inputs) {
      if (matcher.type(input) != matcher.type(sum)) return false;
    }
    const ValueId weight = norm->inputs[1];
    const int32_t weight_node = matcher.node_index(weight);
    const bool is_later = weight_node > matcher.node_index(sum);
    if (matcher.effects().is_written_between(weight, matcher.node_index(sum),
                                             matcher.node_index(norm->outputs[0]))) {
      return false;
    }
    // The weight is read at the sum's place: a source that stands later is brought forward.
    const Node& producer = matcher.graph().node(weight_node);
    if (is_later && !producer.op.is<Weight>() && !producer.op.is<Constant>()) return false;
    const std::vector<ValueId> inputs = {node.inputs[0], node.inputs[1], weight};
    const AddRmsNorm op{.eps = norm->op.as<RmsNorm>()->eps};
    const auto types =
        try_infer(op, list_types(matcher.graph(), inputs), matcher.graph().symbols());
    if (!types || (*types)[0] != matcher.type(sum) ||
        (*types)[1] != matcher.type(norm->outputs[0]) ||
        !is_claimed(context, op, matcher.graph(), inputs)) {
      return false;
    }
    if (is_later && done.insert(weight_node).second) rewriter.copy(producer);
    rewriter.builder().set_source(norm->source);
    const auto results = rewriter.builder().add_many(op, rewriter.map_all(inputs));
    rewriter.replace(sum, results[0]);
    rewriter.replace(norm->outputs[0], results[1]);
    done.insert(matcher.node_index(norm->outputs[0]));
    return true;
  }
};

Graph fuse_sums(const Graph& graph, const PassContext& context) {
  const Matcher matcher(graph);
  Rewriter rewriter(graph);
  AddNorms add_norms{rewriter, matcher, context};
  for (const Node& node : graph.nodes()) {
    if (!add_norms.rewrite(node)) rewriter.copy(node);
  }
  return rewriter.finish();
}

}  // namespace

Graph fuse_norm(const Graph& graph, const PassContext& context) {
  const Matcher matcher(graph);
  const Graph norms =
      remove_dead_code(rewrite_graph(graph,
                                     [&](Rewriter& rewriter, const Node& node) {
                                       return Norms{rewriter, matcher, context}.rewrite(node);
                                     }),
                       context);
  return fuse_sums(norms, context);
}

}  // namespace rlx
