#include "passes/simplify_algebra.h"

#include <cmath>
#include <limits>
#include <optional>

#include "base/checked.h"
#include "ops/elementwise.h"
#include "ops/evaluate.h"
#include "ops/view.h"
#include "passes/match.h"
#include "passes/remove_dead_code.h"

namespace rlx {
namespace {

// Whether every value of `from` is a value of `to`, so that the cast loses nothing.
bool is_lossless(DType from, DType to) {
  if (from == to || from == DType::kBool) return true;
  if (is_packed(from) || is_packed(to) || is_complex(from) || is_complex(to)) return false;
  const auto significant_bits = [](DType dtype) {
    switch (dtype) {
      case DType::kF64:
        return 53;
      case DType::kF32:
        return 24;
      case DType::kF16:
        return 11;
      default:
        return 8;  // bf16
    }
  };
  const int from_bits = 8 * static_cast<int>(bytes_per_block(from));
  const int to_bits = 8 * static_cast<int>(bytes_per_block(to));
  if (is_float(from)) return is_float(to) && from_bits < to_bits;
  if (is_float(to)) return from_bits <= significant_bits(to);
  const bool from_unsigned = from >= DType::kU64;
  const bool to_unsigned = to >= DType::kU64;
  if (to == DType::kBool || (to_unsigned && !from_unsigned)) return false;
  return from_unsigned == to_unsigned ? from_bits <= to_bits : from_bits < to_bits;
}

// Ops that do nothing more to their own result: f(f(x)) = f(x).
bool is_idempotent(const Op& op) {
  return op.is<Abs>() || op.is<Relu>() || op.is<Floor>() || op.is<Ceil>() || op.is<Round>() ||
         op.is<Trunc>() || op.is<Sign>();
}

// The rules match in the old graph and write into the new one. Each returns the value that stands
// for the node's output, or nullopt.
struct Algebra {
  using Result = std::optional<ValueId>;

  Rewriter& rewriter;
  const Matcher& matcher;
  const PassContext& context;

  const TensorType& type(ValueId value) const { return matcher.type(value); }

  Result emit(Op op, std::vector<ValueId> old_inputs) const {
    return rewriter.builder().add(std::move(op), rewriter.map_all(old_inputs));
  }

  // The value `x` where it has the node's type; nullopt where the node also broadcasts it.
  Result use(const Node& node, ValueId x) const {
    if (type(x) != type(node.outputs[0])) return std::nullopt;
    return rewriter.map(x);
  }

  // The value `x` stretched to the node's shape.
  Result use_stretched(const Node& node, ValueId x) const {
    const TensorType& result = type(node.outputs[0]);
    if (type(x) == result) return rewriter.map(x);
    return emit(Broadcast{.shape = result.shape}, {x});
  }

  Result splat(const Node& node, double value) const {
    const TensorType& result = type(node.outputs[0]);
    const ValueId scalar = rewriter.builder().add_scalar(result.dtype, value);
    if (result.shape.empty()) return scalar;
    return rewriter.builder().add(Broadcast{.shape = result.shape}, {scalar});
  }

  struct ConstantOperand {
    ReferenceTensor tensor;
    TensorType type;
  };
  // The elements of a constant small enough to be rewritten.
  std::optional<ConstantOperand> find_constant(ValueId value) const {
    const Node* node = matcher.find<Constant>(value);
    if (node == nullptr || is_packed(type(value).dtype) || is_complex(type(value).dtype)) {
      return std::nullopt;
    }
    const std::vector<std::byte>& bytes = node->op.as<Constant>()->data->bytes;
    if (static_cast<int64_t>(bytes.size()) > context.max_folded_bytes) return std::nullopt;
    std::vector<int64_t> extents;
    for (const Dim& extent : type(value).shape) {
      if (!extent.is_constant()) return std::nullopt;
      extents.push_back(extent.constant());
    }
    return ConstantOperand{reference_from_bytes(type(value).dtype, std::move(extents), bytes),
                           type(value)};
  }
  ValueId emit_constant(const ConstantOperand& constant) const {
    return rewriter.builder().add_constant(constant.type, to_bytes(constant.tensor));
  }

  // Calls rule(x, y) for both orders of the operands until one gives a result.
  template <typename Rule>
  static Result try_both(const Node& node, Rule rule) {
    if (Result result = rule(node.inputs[0], node.inputs[1])) return result;
    return rule(node.inputs[1], node.inputs[0]);
  }

  // c0 op c1, both constants of one dtype, where the result is small enough.
  Result combine_constants(const Op& op, ValueId c0, ValueId c1) const {
    const auto a = find_constant(c0);
    const auto b = find_constant(c1);
    if (!a || !b) return std::nullopt;
    const std::vector<TensorType> types = {a->type, b->type};
    const auto result = try_infer(op, types, {});
    if (!result || upper_bound_bytes((*result)[0], {}) > context.max_folded_bytes) {
      return std::nullopt;
    }
    const ReferenceTensor* inputs[] = {&a->tensor, &b->tensor};
    return emit_constant({evaluate(op, inputs, types, {}, {})[0], (*result)[0]});
  }

  // (x op c0) op c1 -> x op (c0 op c1), for an op that is associative and commutative bit for bit.
  template <typename T>
  Result reassociate(const Node& node) const {
    return try_both(node, [&](ValueId inner, ValueId c1) -> Result {
      const Node* first = matcher.find<T>(inner);
      if (first == nullptr || matcher.find<Constant>(c1) == nullptr) return std::nullopt;
      return try_both(*first, [&](ValueId x, ValueId c0) -> Result {
        if (matcher.find<Constant>(x) != nullptr) return std::nullopt;  // left to fold_constants
        if (!matcher.can_read_later(std::vector{x})) return std::nullopt;
        const Result combined = combine_constants(T{}, c0, c1);
        if (!combined) return std::nullopt;
        return rewriter.builder().add(T{}, {rewriter.map(x), *combined});
      });
    });
  }

  Result simplify_add(const Node& node) const {
    const bool integer = is_integer(type(node.outputs[0]).dtype);
    Result result = try_both(node, [&](ValueId x, ValueId y) -> Result {
      const std::optional<double> c = matcher.find_splat(y);
      // x + 0 -> x; of floats only x + -0, since -0 + 0 is 0
      if (c && *c == 0 && (integer || std::signbit(*c))) return use(node, x);
      // x + -y -> x - y
      if (const Node* neg = matcher.find<Neg>(y);
          neg != nullptr && matcher.can_read_later(neg->inputs)) {
        return emit(Sub{}, {x, neg->inputs[0]});
      }
      return std::nullopt;
    });
    // (x + c0) + c1 -> x + (c0 + c1), integers
    if (!result && integer) result = reassociate<Add>(node);
    return result;
  }

  Result simplify_sub(const Node& node) const {
    const ValueId x = node.inputs[0];
    const ValueId y = node.inputs[1];
    const bool integer = is_integer(type(x).dtype);
    const std::optional<double> c = matcher.find_splat(y);
    // x - 0 -> x; of floats not x - -0, since -0 - -0 is 0
    if (c && *c == 0 && (integer || !std::signbit(*c))) {
      if (Result result = use(node, x)) return result;
    }
    // x - -y -> x + y
    if (const Node* neg = matcher.find<Neg>(y);
        neg != nullptr && matcher.can_read_later(neg->inputs)) {
      return emit(Add{}, {x, neg->inputs[0]});
    }
    // x - c -> x + -c
    if (auto constant = find_constant(y)) {
      for (double& element : constant->tensor.floats) element = -element;
      for (int64_t& element : constant->tensor.integers) {
        element = wrap_integer(constant->type.dtype, fn::neg(element));
      }
      return rewriter.builder().add(Add{}, {rewriter.map(x), emit_constant(*constant)});
    }
    return std::nullopt;
  }

  Result simplify_mul(const Node& node) const {
    const bool integer = is_integer(type(node.outputs[0]).dtype);
    Result result = try_both(node, [&](ValueId x, ValueId y) -> Result {
      const std::optional<double> c = matcher.find_splat(y);
      // x * 1 -> x
      if (c && *c == 1) return use(node, x);
      // x * 0 -> 0, integers
      if (c && *c == 0 && integer) return splat(node, 0);
      return std::nullopt;
    });
    // (x * c0) * c1 -> x * (c0 * c1), integers
    if (!result && integer) result = reassociate<Mul>(node);
    return result;
  }

  Result simplify_div(const Node& node) const {
    const ValueId x = node.inputs[0];
    const ValueId y = node.inputs[1];
    const std::optional<double> c = matcher.find_splat(y);
    // x / 1 -> x
    if (c && *c == 1) {
      if (Result result = use(node, x)) return result;
    }
    if (!is_float(type(x).dtype)) return std::nullopt;
    // 1 / x -> reciprocal(x)
    if (matcher.is_splat(x, 1) && type(y) == type(node.outputs[0])) {
      return emit(Reciprocal{}, {y});
    }
    // x / c -> x * (1 / c) where each c is a power of two, whose reciprocal is exact
    auto constant = find_constant(y);
    if (!constant) return std::nullopt;
    for (double& element : constant->tensor.floats) {
      int exponent = 0;
      // Within 2^-14 .. 2^14 both are normal numbers of every float dtype.
      if (std::abs(std::frexp(element, &exponent)) != 0.5 || std::abs(exponent - 1) > 14) {
        return std::nullopt;
      }
      element = 1 / element;
    }
    return rewriter.builder().add(Mul{}, {rewriter.map(x), emit_constant(*constant)});
  }

  Result simplify_pow(const Node& node) const {
    const ValueId x = node.inputs[0];
    const std::optional<double> c = matcher.find_splat(node.inputs[1]);
    if (!c) return std::nullopt;
    // pow(x, 0) -> 1, also of NaN
    if (*c == 0) return splat(node, 1);
    if (type(x) != type(node.outputs[0])) return std::nullopt;
    // pow(x, 1) -> x
    if (*c == 1) return rewriter.map(x);
    // pow(x, 2) -> x * x
    if (*c == 2) return emit(Mul{}, {x, x});
    // pow(x, -1) -> reciprocal(x), floats
    if (*c == -1 && is_float(type(x).dtype)) return emit(Reciprocal{}, {x});
    return std::nullopt;
  }

  Result simplify_select(const Node& node) const {
    const ValueId a = node.inputs[1];
    const ValueId b = node.inputs[2];
    // select(true, a, b) -> a; select(false, a, b) -> b
    if (const std::optional<double> c = matcher.find_splat(node.inputs[0])) {
      return use_stretched(node, *c != 0 ? a : b);
    }
    // select(c, a, a) -> a
    return a == b ? use_stretched(node, a) : std::nullopt;
  }

  Result simplify_logic(const Node& node) const {
    const bool is_and = node.op.is<LogicalAnd>();
    // b and b -> b; b or b -> b
    if (node.inputs[0] == node.inputs[1]) return use(node, node.inputs[0]);
    return try_both(node, [&](ValueId b, ValueId y) -> Result {
      const std::optional<double> c = matcher.find_splat(y);
      if (!c) return std::nullopt;
      // b and true -> b; b or false -> b
      if ((*c != 0) == is_and) return use(node, b);
      // b and false -> false; b or true -> true
      return splat(node, *c);
    });
  }

  Result simplify_cast(const Node& node) const {
    const Node* inner = matcher.find<Cast>(node.inputs[0]);
    if (inner == nullptr || !matcher.can_read_later(inner->inputs)) return std::nullopt;
    const ValueId x = inner->inputs[0];
    const DType from = type(x).dtype;
    const DType middle = type(node.inputs[0]).dtype;
    const DType to = type(node.outputs[0]).dtype;
    // cast_b(cast_a(x)) -> cast_b(x) where cast_a loses nothing. An integer that went through a
    // float stops at the ends of an integer b, but would wrap without: not done.
    if (!is_lossless(from, middle)) return std::nullopt;
    if (is_integer(from) && is_float(middle) && !is_float(to)) return std::nullopt;
    if (from == to) return rewriter.map(x);
    return emit(Cast{.dtype = to}, {x});
  }

  Result simplify_unary(const Node& node) const {
    const Node& inner = matcher.graph().producer(node.inputs[0]);
    if (inner.inputs.size() != 1 || !matcher.can_read_later(inner.inputs)) return std::nullopt;
    const bool is_negation = node.op.is<Neg>() || node.op.is<LogicalNot>();
    // neg(neg(x)) -> x; not(not(b)) -> b
    if (is_negation && inner.op == node.op) return rewriter.map(inner.inputs[0]);
    // abs(neg(x)) -> abs(x)
    if (node.op.is<Abs>() && inner.op.is<Neg>()) return emit(Abs{}, {inner.inputs[0]});
    // f(f(x)) -> f(x)
    if (is_idempotent(node.op) && inner.op == node.op) return rewriter.map(node.inputs[0]);
    return std::nullopt;
  }

  Result simplify(const Node& node) const {
    // What stands for the node may be read where the node's own result was read: later.
    if (!matcher.can_read_later(node.inputs)) return std::nullopt;
    if (node.op.is<Add>()) return simplify_add(node);
    if (node.op.is<Sub>()) return simplify_sub(node);
    if (node.op.is<Mul>()) return simplify_mul(node);
    if (node.op.is<Div>()) return simplify_div(node);
    if (node.op.is<Pow>()) return simplify_pow(node);
    if (node.op.is<Select>()) return simplify_select(node);
    if (node.op.is<Cast>()) return simplify_cast(node);
    if (node.op.is<LogicalAnd>() || node.op.is<LogicalOr>()) return simplify_logic(node);
    // min(x, x) -> x; max(x, x) -> x
    if ((node.op.is<Min>() || node.op.is<Max>()) && node.inputs[0] == node.inputs[1]) {
      return rewriter.map(node.inputs[0]);
    }
    // clamp(x) without bounds -> x
    if (const Clamp* clamp = node.op.as<Clamp>()) {
      const double infinity = std::numeric_limits<double>::infinity();
      return clamp->low == -infinity && clamp->high == infinity ? use(node, node.inputs[0])
                                                                : std::nullopt;
    }
    if (node.inputs.size() == 1) return simplify_unary(node);
    return std::nullopt;
  }
};

// A rule can make way for another one; chains longer than this stay for the next run of the pass.
constexpr int kMaxRounds = 8;

}  // namespace

Graph simplify_algebra(const Graph& graph, const PassContext& context) {
  Graph result = graph;
  bool changed = true;
  for (int round = 0; changed && round < kMaxRounds; ++round) {
    changed = false;
    const Matcher matcher(result);
    Graph next = rewrite_graph(result, [&](Rewriter& rewriter, const Node& node) {
      const Algebra::Result value = Algebra{rewriter, matcher, context}.simplify(node);
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
