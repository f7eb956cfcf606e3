// Elementwise ops: each output element depends on the input elements at the same place. Inputs
// broadcast as in numpy: aligned at the last axis, an extent of 1 stretches. The meaning is the
// `scalar` member, written once and used on double, int64 and as a Formula.
#pragma once

#include <cmath>
#include <limits>
#include <type_traits>

#include "ir/op.h"

namespace rlx {

// How the dtypes of an elementwise op go together.
enum class DTypeRule : uint8_t {
  kSame,     // inputs and output share one dtype
  kCompare,  // inputs share one dtype, the output is bool
  kLogic,    // inputs and output are bool
};

// Checks the inputs' dtypes against the domain and the rule and broadcasts their shapes.
std::vector<TensorType> infer_elementwise(const InferContext& context, Domain domain,
                                          DTypeRule rule);

// Samples of an elementwise op over its domain: equal shapes, scalars, broadcasting and symbolic
// extents; input values lie in [low, high).
std::vector<Sample> make_elementwise_samples(std::shared_ptr<const Op> op, int num_inputs,
                                             Domain domain, DTypeRule rule, double low,
                                             double high);
std::vector<BadSample> make_elementwise_bad_samples(std::shared_ptr<const Op> op, int num_inputs,
                                                    Domain domain, DTypeRule rule);

// What most elementwise ops share; T is the op itself. An op that is not defined around zero hides
// kSampleLow and kSampleHigh.
template <typename T, int num_inputs, Domain domain, DTypeRule rule = DTypeRule::kSame>
struct Elementwise {
  static constexpr Arity kArity{num_inputs, num_inputs};
  static constexpr Domain kDomain = domain;
  static constexpr double kSampleLow = -2;
  static constexpr double kSampleHigh = 2;

  std::vector<TensorType> infer(const InferContext& context) const {
    return infer_elementwise(context, domain, rule);
  }
  static std::vector<Sample> samples() {
    return make_elementwise_samples(make_op(T{}), num_inputs, domain, rule, T::kSampleLow,
                                    T::kSampleHigh);
  }
  static std::vector<BadSample> bad_samples() {
    return make_elementwise_bad_samples(make_op(T{}), num_inputs, domain, rule);
  }
};

template <typename T>
using UnaryNumber = Elementwise<T, 1, Domain::kNumber>;
template <typename T>
using UnaryFloat = Elementwise<T, 1, Domain::kFloat>;
template <typename T>
using BinaryNumber = Elementwise<T, 2, Domain::kNumber>;
template <typename T>
using BinaryFloat = Elementwise<T, 2, Domain::kFloat>;
template <typename T>
using Compare = Elementwise<T, 2, Domain::kAny, DTypeRule::kCompare>;

// ---- One number to one number.

struct Neg : UnaryNumber<Neg> {
  static constexpr std::string_view kName = "neg";
  template <typename S>
  S scalar(const S* x) const {
    return fn::neg(x[0]);
  }
};

struct Abs : UnaryNumber<Abs> {
  static constexpr std::string_view kName = "abs";
  template <typename S>
  S scalar(const S* x) const {
    return fn::abs(x[0]);
  }
};

// -1, 0 or 1; NaN stays NaN.
struct Sign : UnaryNumber<Sign> {
  static constexpr std::string_view kName = "sign";
  template <typename S>
  S scalar(const S* x) const {
    return fn::sign(x[0]);
  }
};

struct Floor : UnaryNumber<Floor> {
  static constexpr std::string_view kName = "floor";
  template <typename S>
  S scalar(const S* x) const {
    return fn::floor(x[0]);
  }
};

struct Ceil : UnaryNumber<Ceil> {
  static constexpr std::string_view kName = "ceil";
  template <typename S>
  S scalar(const S* x) const {
    return fn::ceil(x[0]);
  }
};

// To the nearest integer, halves to the even one.
struct Round : UnaryNumber<Round> {
  static constexpr std::string_view kName = "round";
  template <typename S>
  S scalar(const S* x) const {
    return fn::round(x[0]);
  }
};

// Toward zero.
struct Trunc : UnaryNumber<Trunc> {
  static constexpr std::string_view kName = "trunc";
  template <typename S>
  S scalar(const S* x) const {
    return fn::trunc(x[0]);
  }
};

struct Relu : UnaryNumber<Relu> {
  static constexpr std::string_view kName = "relu";
  template <typename S>
  S scalar(const S* x) const {
    return fn::max(x[0], S(0));
  }
};

// ---- One float to one float.

struct Sqrt : UnaryFloat<Sqrt> {
  static constexpr std::string_view kName = "sqrt";
  static constexpr double kSampleLow = 0.01;
  template <typename S>
  S scalar(const S* x) const {
    return fn::sqrt(x[0]);
  }
};

struct Rsqrt : UnaryFloat<Rsqrt> {
  static constexpr std::string_view kName = "rsqrt";
  static constexpr double kSampleLow = 0.25;
  template <typename S>
  S scalar(const S* x) const {
    return fn::div(S(1), fn::sqrt(x[0]));
  }
};

struct Reciprocal : UnaryFloat<Reciprocal> {
  static constexpr std::string_view kName = "reciprocal";
  static constexpr double kSampleLow = 0.25;
  template <typename S>
  S scalar(const S* x) const {
    return fn::div(S(1), x[0]);
  }
};

struct Exp : UnaryFloat<Exp> {
  static constexpr std::string_view kName = "exp";
  template <typename S>
  S scalar(const S* x) const {
    return fn::exp(x[0]);
  }
};

struct Log : UnaryFloat<Log> {
  static constexpr std::string_view kName = "log";
  static constexpr double kSampleLow = 0.1;
  template <typename S>
  S scalar(const S* x) const {
    return fn::log(x[0]);
  }
};

struct Sin : UnaryFloat<Sin> {
  static constexpr std::string_view kName = "sin";
  template <typename S>
  S scalar(const S* x) const {
    return fn::sin(x[0]);
  }
};

struct Cos : UnaryFloat<Cos> {
  static constexpr std::string_view kName = "cos";
  template <typename S>
  S scalar(const S* x) const {
    return fn::cos(x[0]);
  }
};

struct Tan : UnaryFloat<Tan> {
  static constexpr std::string_view kName = "tan";
  static constexpr double kSampleLow = -1;
  static constexpr double kSampleHigh = 1;
  template <typename S>
  S scalar(const S* x) const {
    return fn::tan(x[0]);
  }
};

struct Tanh : UnaryFloat<Tanh> {
  static constexpr std::string_view kName = "tanh";
  template <typename S>
  S scalar(const S* x) const {
    return fn::tanh(x[0]);
  }
};

struct Erf : UnaryFloat<Erf> {
  static constexpr std::string_view kName = "erf";
  template <typename S>
  S scalar(const S* x) const {
    return fn::erf(x[0]);
  }
};

// The formulas of the activations, shared by the plain and the gated ops.
namespace fn {

// 1 / (1 + exp(-x)); exact at both ends: exp(-x) becomes infinity or 0.
template <typename S>
S sigmoid(S x) {
  return div(S(1), add(S(1), exp(neg(x))));
}
// x * sigmoid(x)
template <typename S>
S silu(S x) {
  return div(x, add(S(1), exp(neg(x))));
}
// x / 2 * (1 + erf(x / sqrt(2)))
template <typename S>
S gelu_erf(S x) {
  return mul(mul(S(0.5), x), add(S(1), erf(mul(x, S(0.70710678118654752440)))));
}
// x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))
template <typename S>
S gelu_tanh(S x) {
  const S cubic = mul(mul(S(0.044715), x), mul(x, x));
  return mul(mul(S(0.5), x), add(S(1), tanh(mul(S(0.79788456080286535588), add(x, cubic)))));
}

}  // namespace fn

struct Sigmoid : UnaryFloat<Sigmoid> {
  static constexpr std::string_view kName = "sigmoid";
  template <typename S>
  S scalar(const S* x) const {
    return fn::sigmoid(x[0]);
  }
};

struct Silu : UnaryFloat<Silu> {
  static constexpr std::string_view kName = "silu";
  template <typename S>
  S scalar(const S* x) const {
    return fn::silu(x[0]);
  }
};

// Which of the two usual formulas of gelu: the exact one, or the one with tanh.
enum class GeluKind : uint8_t { kErf, kTanh };
inline std::span<const std::string_view> enum_names(GeluKind) {
  static constexpr std::string_view kNames[] = {"erf", "tanh"};
  return kNames;
}

struct Gelu : UnaryFloat<Gelu> {
  static constexpr std::string_view kName = "gelu";
  GeluKind approximate = GeluKind::kErf;
  template <typename F>
  void fields(F&& field) {
    field("approximate", approximate);
  }
  template <typename S>
  S scalar(const S* x) const {
    return approximate == GeluKind::kTanh ? fn::gelu_tanh(x[0]) : fn::gelu_erf(x[0]);
  }
  static std::vector<Sample> samples();
};

// ---- Two numbers to one number, all of one dtype. Integers wrap.

struct Add : BinaryNumber<Add> {
  static constexpr std::string_view kName = "add";
  template <typename S>
  S scalar(const S* x) const {
    return fn::add(x[0], x[1]);
  }
};

struct Sub : BinaryNumber<Sub> {
  static constexpr std::string_view kName = "sub";
  template <typename S>
  S scalar(const S* x) const {
    return fn::sub(x[0], x[1]);
  }
};

struct Mul : BinaryNumber<Mul> {
  static constexpr std::string_view kName = "mul";
  template <typename S>
  S scalar(const S* x) const {
    return fn::mul(x[0], x[1]);
  }
};

// Integers truncate toward zero; an integer divided by zero is 0.
struct Div : BinaryNumber<Div> {
  static constexpr std::string_view kName = "div";
  static constexpr double kSampleLow = 0.5;
  static constexpr double kSampleHigh = 3;
  template <typename S>
  S scalar(const S* x) const {
    return fn::div(x[0], x[1]);
  }
};

// The remainder with the sign of the dividend, as C's % and fmod.
struct Rem : BinaryNumber<Rem> {
  static constexpr std::string_view kName = "rem";
  static constexpr double kSampleLow = 0.5;
  static constexpr double kSampleHigh = 9;
  template <typename S>
  S scalar(const S* x) const {
    return fn::rem(x[0], x[1]);
  }
};

struct Pow : BinaryNumber<Pow> {
  static constexpr std::string_view kName = "pow";
  static constexpr double kSampleLow = 0.5;
  static constexpr double kSampleHigh = 3;
  template <typename S>
  S scalar(const S* x) const {
    return fn::pow(x[0], x[1]);
  }
};

// NaN when either is NaN.
struct Min : BinaryNumber<Min> {
  static constexpr std::string_view kName = "min";
  template <typename S>
  S scalar(const S* x) const {
    return fn::min(x[0], x[1]);
  }
};

// NaN when either is NaN.
struct Max : BinaryNumber<Max> {
  static constexpr std::string_view kName = "max";
  template <typename S>
  S scalar(const S* x) const {
    return fn::max(x[0], x[1]);
  }
};

// ---- Comparisons of two values of one dtype: a bool. With NaN all but not_equal are false.

struct Equal : Compare<Equal> {
  static constexpr std::string_view kName = "equal";
  template <typename S>
  S scalar(const S* x) const {
    return fn::equal(x[0], x[1]);
  }
};

struct NotEqual : Compare<NotEqual> {
  static constexpr std::string_view kName = "not_equal";
  template <typename S>
  S scalar(const S* x) const {
    return fn::logical_not(fn::equal(x[0], x[1]));
  }
};

struct Less : Compare<Less> {
  static constexpr std::string_view kName = "less";
  template <typename S>
  S scalar(const S* x) const {
    return fn::less(x[0], x[1]);
  }
};

struct LessEqual : Compare<LessEqual> {
  static constexpr std::string_view kName = "less_equal";
  template <typename S>
  S scalar(const S* x) const {
    return fn::less_equal(x[0], x[1]);
  }
};

struct Greater : Compare<Greater> {
  static constexpr std::string_view kName = "greater";
  template <typename S>
  S scalar(const S* x) const {
    return fn::less(x[1], x[0]);
  }
};

struct GreaterEqual : Compare<GreaterEqual> {
  static constexpr std::string_view kName = "greater_equal";
  template <typename S>
  S scalar(const S* x) const {
    return fn::less_equal(x[1], x[0]);
  }
};

// ---- Logic on bool.

struct LogicalAnd : Elementwise<LogicalAnd, 2, Domain::kAny, DTypeRule::kLogic> {
  static constexpr std::string_view kName = "logical_and";
  template <typename S>
  S scalar(const S* x) const {
    return fn::logical_and(x[0], x[1]);
  }
};

struct LogicalOr : Elementwise<LogicalOr, 2, Domain::kAny, DTypeRule::kLogic> {
  static constexpr std::string_view kName = "logical_or";
  template <typename S>
  S scalar(const S* x) const {
    return fn::logical_or(x[0], x[1]);
  }
};

struct LogicalXor : Elementwise<LogicalXor, 2, Domain::kAny, DTypeRule::kLogic> {
  static constexpr std::string_view kName = "logical_xor";
  template <typename S>
  S scalar(const S* x) const {
    return fn::logical_xor(x[0], x[1]);
  }
};

struct LogicalNot : Elementwise<LogicalNot, 1, Domain::kAny, DTypeRule::kLogic> {
  static constexpr std::string_view kName = "logical_not";
  template <typename S>
  S scalar(const S* x) const {
    return fn::logical_not(x[0]);
  }
};

// ---- Choice and bounds.

// select(condition, a, b): a where the condition, a bool, is true, else b.
struct Select {
  static constexpr std::string_view kName = "select";
  static constexpr Arity kArity{3, 3};
  static constexpr Domain kDomain = Domain::kAny;
  template <typename S>
  S scalar(const S* x) const {
    return fn::select(x[0], x[1], x[2]);
  }
  std::vector<TensorType> infer(const InferContext& context) const;
  static std::vector<Sample> samples();
  static std::vector<BadSample> bad_samples();
};

// x held within [low, high]; NaN stays NaN. On integer inputs a bound is infinite or an integer of
// at most 53 bits.
struct Clamp {
  static constexpr std::string_view kName = "clamp";
  static constexpr Arity kArity{1, 1};
  static constexpr Domain kDomain = Domain::kNumber;
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  template <typename F>
  void fields(F&& field) {
    field("low", low);
    field("high", high);
  }
  template <typename S>
  S scalar(const S* x) const {
    S result = x[0];
    if (!std::isinf(low)) result = fn::max(result, static_cast<S>(low));
    if (!std::isinf(high)) result = fn::min(result, static_cast<S>(high));
    return result;
  }
  std::vector<TensorType> infer(const InferContext& context) const;
  static std::vector<Sample> samples();
  static std::vector<BadSample> bad_samples();
};

// ---- Gated activations: act(gate) * up.

struct Swiglu : BinaryFloat<Swiglu> {
  static constexpr std::string_view kName = "swiglu";
  template <typename S>
  S scalar(const S* x) const {
    return fn::mul(fn::silu(x[0]), x[1]);
  }
};

struct Geglu : BinaryFloat<Geglu> {
  static constexpr std::string_view kName = "geglu";
  GeluKind approximate = GeluKind::kErf;
  template <typename F>
  void fields(F&& field) {
    field("approximate", approximate);
  }
  template <typename S>
  S scalar(const S* x) const {
    const S gate = approximate == GeluKind::kTanh ? fn::gelu_tanh(x[0]) : fn::gelu_erf(x[0]);
    return fn::mul(gate, x[1]);
  }
  static std::vector<Sample> samples();
};

struct Reglu : BinaryFloat<Reglu> {
  static constexpr std::string_view kName = "reglu";
  template <typename S>
  S scalar(const S* x) const {
    return fn::mul(fn::max(x[0], S(0)), x[1]);
  }
};

// ---- Made by passes.

// Any number of inputs that broadcast together, through one formula. When an input is a float the
// formula runs on floats, else on integers; `dtype` is the output's.
struct Fused {
  static constexpr std::string_view kName = "fused";
  static constexpr Arity kArity{1, -1};
  static constexpr Domain kDomain = Domain::kAny;
  Formula formula;
  DType dtype = DType::kF32;
  template <typename F>
  void fields(F&& field) {
    field("formula", formula);
    field("dtype", dtype);
  }
  template <typename S>
  S scalar(const S* x) const {
    if constexpr (std::is_same_v<S, FormulaExpr>) {
      std::vector<int32_t> inputs;
      for (int i = 0; i < formula.num_inputs(); ++i) inputs.push_back(x[i].step);
      return FormulaExpr(x[0].formula, x[0].formula->splice(formula, inputs));
    } else {
      return evaluate(formula, x);
    }
  }
  std::vector<TensorType> infer(const InferContext& context) const;
  static std::vector<Sample> samples();
  static std::vector<BadSample> bad_samples();
};

// ---- Changes of representation: not formulas, since they are about dtypes and bytes.

// Converts to another dtype. A float to a narrower one rounds to the nearest even; a float to an
// integer goes toward zero, stops at the integer's ends and NaN gives 0; integers wrap; to bool:
// nonzero is true. A packed input gives its decoded values.
struct Cast {
  static constexpr std::string_view kName = "cast";
  static constexpr Arity kArity{1, 1};
  DType dtype = DType::kF32;
  template <typename F>
  void fields(F&& field) {
    field("dtype", dtype);
  }
  std::vector<TensorType> infer(const InferContext& context) const;
  void reference(const ReferenceContext& context) const;
  static std::vector<Sample> samples();
  static std::vector<BadSample> bad_samples();
};

// The same elements in fresh contiguous memory: materialises a strided view.
struct Copy {
  static constexpr std::string_view kName = "copy";
  static constexpr Arity kArity{1, 1};
  std::vector<TensorType> infer(const InferContext& context) const;
  void reference(const ReferenceContext& context) const;
  static std::vector<Sample> samples();
  static std::vector<BadSample> bad_samples();
};

}  // namespace rlx
