// An elementwise formula as data: a short list of scalar steps, each using inputs or earlier steps.
// An op's `scalar` member, written once as a generic function, becomes a Formula when it is called
// on FormulaExpr; the CPU backend runs it over tiles, GPU backends print it as code, and the
// elementwise fusion pass splices several into one.
//
// Comparisons and logic give 1 or 0. `min` and `max` give NaN when either side is NaN. `round` goes
// to the nearest even. Integer division truncates toward zero, and anything divided by integer zero
// is 0.
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace rlx {

// clang-format off
#define RLX_FORMULA_OPS(X)                                                                     \
  X(neg, 1)                                                                                    \
  X(abs, 1)                                                                                    \
  X(sign, 1)                                                                                   \
  X(floor, 1) X(ceil, 1) X(round, 1) X(trunc, 1) X(sqrt, 1) X(exp, 1) X(log, 1) X(sin, 1)      \
      X(cos, 1) X(tan, 1) X(tanh, 1) X(erf, 1) X(logical_not, 1) X(add, 2) X(sub, 2) X(mul, 2) \
          X(div, 2) X(rem, 2) X(pow, 2) X(min, 2) X(max, 2) X(equal, 2) X(less, 2)             \
              X(less_equal, 2) X(logical_and, 2) X(logical_or, 2) X(logical_xor, 2) X(select, 3)
// clang-format on
enum class FormulaOp : uint8_t {
  input,     // the formula's input number `a`
  constant,  // `value`
#define RLX_FORMULA_ENUM(name, arity) name,
  RLX_FORMULA_OPS(RLX_FORMULA_ENUM)
#undef RLX_FORMULA_ENUM
};

std::string_view to_string(FormulaOp op);
int count_arguments(FormulaOp op);

struct FormulaStep {
  FormulaOp op = FormulaOp::constant;
  int32_t a = -1, b = -1, c = -1;  // earlier steps; for `input`, a is the input's number
  double value = 0;                // for `constant`

  bool operator==(const FormulaStep&) const = default;
};

class Formula {
 public:
  // Appends a step, or finds an equal one; returns its index. Arguments must be earlier steps.
  int32_t add(const FormulaStep& step);
  // Copies `other` in, its input i replaced by step inputs[i]; returns the index of its result.
  int32_t splice(const Formula& other, std::span<const int32_t> inputs);
  void set_result(int32_t step) { result_ = step; }

  std::span<const FormulaStep> steps() const { return steps_; }
  int32_t result() const { return result_; }
  int num_inputs() const;  // one more than the highest input used

  bool operator==(const Formula&) const = default;

 private:
  std::vector<FormulaStep> steps_;
  int32_t result_ = -1;
};

// "t0 = neg(i0); t1 = exp(t0); t2 = add(t1, 1); t2": one assignment per step that is not an input
// or a constant, then the result. The formula must have a result.
std::string to_string(const Formula& formula);
// Reads what to_string writes; throws kInvalidArgument naming the place.
Formula parse_formula(std::string_view text);

// The symbol type on which a generic scalar function records itself.
struct FormulaExpr {
  Formula* formula = nullptr;  // null: a plain constant, added when first combined
  int32_t step = -1;
  double value = 0;

  FormulaExpr(double constant) : value(constant) {}
  FormulaExpr(Formula* owner, int32_t index) : formula(owner), step(index) {}
};

// The functions that scalar formulas are written with: the same names on double, float, int64 and
// FormulaExpr.
namespace fn {

template <typename T>
concept Number = std::is_arithmetic_v<T>;

template <Number T>
T neg(T x) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(x));
  } else {
    return -x;
  }
}
template <Number T>
T abs(T x) {
  return x < 0 ? neg(x) : (x == 0 ? T(0) : x);
}
template <Number T>
T sign(T x) {
  return x > 0 ? T(1) : (x < 0 ? T(-1) : x);
}
template <std::floating_point T>
T floor(T x) {
  return std::floor(x);
}
template <std::floating_point T>
T ceil(T x) {
  return std::ceil(x);
}
template <std::floating_point T>
T round(T x) {
  return std::nearbyint(x);
}
template <std::floating_point T>
T trunc(T x) {
  return std::trunc(x);
}
template <std::integral T>
T floor(T x) {
  return x;
}
template <std::integral T>
T ceil(T x) {
  return x;
}
template <std::integral T>
T round(T x) {
  return x;
}
template <std::integral T>
T trunc(T x) {
  return x;
}
template <std::floating_point T>
T sqrt(T x) {
  return std::sqrt(x);
}
template <std::floating_point T>
T exp(T x) {
  return std::exp(x);
}
template <std::floating_point T>
T log(T x) {
  return std::log(x);
}
template <std::floating_point T>
T sin(T x) {
  return std::sin(x);
}
template <std::floating_point T>
T cos(T x) {
  return std::cos(x);
}
template <std::floating_point T>
T tan(T x) {
  return std::tan(x);
}
template <std::floating_point T>
T tanh(T x) {
  return std::tanh(x);
}
template <std::floating_point T>
T erf(T x) {
  return std::erf(x);
}
template <Number T>
T logical_not(T x) {
  return x == 0 ? T(1) : T(0);
}

// Integer sums and products wrap, as the storage does.
#define RLX_FN_WRAPPING(name, op)                                    \
  template <Number T>                                                \
  T name(T a, T b) {                                                 \
    if constexpr (std::is_integral_v<T>) {                           \
      using U = std::make_unsigned_t<T>;                             \
      return static_cast<T>(static_cast<U>(a) op static_cast<U>(b)); \
    } else {                                                         \
      return a op b;                                                 \
    }                                                                \
  }
RLX_FN_WRAPPING(add, +)
RLX_FN_WRAPPING(sub, -)
RLX_FN_WRAPPING(mul, *)
#undef RLX_FN_WRAPPING

template <Number T>
T div(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (b == 0) return 0;
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return neg(a);
    return a / b;
  } else {
    return a / b;
  }
}
// The remainder with the sign of the dividend (C's % and fmod).
template <Number T>
T rem(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (b == 0 || (std::is_signed_v<T> && b == static_cast<T>(-1))) return 0;
    return a % b;
  } else {
    return std::fmod(a, b);
  }
}
template <Number T>
T pow(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (b < 0) return a == 1 ? T(1) : (a == T(-1) ? (b % 2 == 0 ? T(1) : T(-1)) : T(0));
    T result = 1;
    for (T base = a; b > 0; b /= 2, base = mul(base, base)) {
      if (b % 2 != 0) result = mul(result, base);
    }
    return result;
  } else {
    return std::pow(a, b);
  }
}
template <Number T>
T min(T a, T b) {
  return a != a ? a : (b != b ? b : (b < a ? b : a));
}
template <Number T>
T max(T a, T b) {
  return a != a ? a : (b != b ? b : (a < b ? b : a));
}
template <Number T>
T equal(T a, T b) {
  return a == b ? T(1) : T(0);
}
template <Number T>
T less(T a, T b) {
  return a < b ? T(1) : T(0);
}
template <Number T>
T less_equal(T a, T b) {
  return a <= b ? T(1) : T(0);
}
template <Number T>
T logical_and(T a, T b) {
  return (a != 0 && b != 0) ? T(1) : T(0);
}
template <Number T>
T logical_or(T a, T b) {
  return (a != 0 || b != 0) ? T(1) : T(0);
}
template <Number T>
T logical_xor(T a, T b) {
  return ((a != 0) != (b != 0)) ? T(1) : T(0);
}
template <Number T>
T select(T condition, T a, T b) {
  return condition != 0 ? a : b;
}

FormulaExpr record(FormulaOp op, FormulaExpr a);
FormulaExpr record(FormulaOp op, FormulaExpr a, FormulaExpr b);
FormulaExpr record(FormulaOp op, FormulaExpr a, FormulaExpr b, FormulaExpr c);

#define RLX_FN_RECORD_1(name) \
  inline FormulaExpr name(FormulaExpr a) { return record(FormulaOp::name, a); }
#define RLX_FN_RECORD_2(name) \
  inline FormulaExpr name(FormulaExpr a, FormulaExpr b) { return record(FormulaOp::name, a, b); }
#define RLX_FN_RECORD_3(name)                                            \
  inline FormulaExpr name(FormulaExpr a, FormulaExpr b, FormulaExpr c) { \
    return record(FormulaOp::name, a, b, c);                             \
  }
#define RLX_FN_RECORD(name, arity) RLX_FN_RECORD_##arity(name)
RLX_FORMULA_OPS(RLX_FN_RECORD)
#undef RLX_FN_RECORD
#undef RLX_FN_RECORD_1
#undef RLX_FN_RECORD_2
#undef RLX_FN_RECORD_3

}  // namespace fn

// The formula's value on numbers. A step with no meaning on integers (exp, say) must not be reached
// with an integer T; formulas of ops with an integer domain hold none.
template <typename T>
T evaluate(const Formula& formula, const T* inputs);

}  // namespace rlx
