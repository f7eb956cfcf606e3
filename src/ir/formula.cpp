#include "ir/formula.h"

#include <cctype>
#include <charconv>

#include "base/error.h"

namespace rlx {
namespace {

struct FormulaOpInfo {
  std::string_view name;
  int num_arguments;
};

constexpr FormulaOpInfo kFormulaOps[] = {{"input", 0},
                                         {"constant", 0},
#define RLX_FORMULA_INFO(name, arity) {#name, arity},
                                         RLX_FORMULA_OPS(RLX_FORMULA_INFO)
#undef RLX_FORMULA_INFO
};

}  // namespace

std::string_view to_string(FormulaOp op) { return kFormulaOps[static_cast<size_t>(op)].name; }
int count_arguments(FormulaOp op) { return kFormulaOps[static_cast<size_t>(op)].num_arguments; }

int32_t Formula::add(const FormulaStep& step) {
  // Constants compare by value, so that equal ones are shared; NaN never is, which is harmless.
  for (size_t i = 0; i < steps_.size(); ++i) {
    if (steps_[i] == step && std::signbit(steps_[i].value) == std::signbit(step.value)) {
      return static_cast<int32_t>(i);
    }
  }
  const int arguments = count_arguments(step.op);
  const int32_t given[] = {step.a, step.b, step.c};
  for (int i = 0; i < arguments; ++i) {
    RLX_CHECK(given[i] >= 0 && given[i] < static_cast<int32_t>(steps_.size()));
  }
  steps_.push_back(step);
  return static_cast<int32_t>(steps_.size()) - 1;
}

int32_t Formula::splice(const Formula& other, std::span<const int32_t> inputs) {
  std::vector<int32_t> placed;
  placed.reserve(other.steps_.size());
  for (FormulaStep step : other.steps_) {
    if (step.op == FormulaOp::input) {
      placed.push_back(inputs[step.a]);
      continue;
    }
    if (step.a >= 0) step.a = placed[step.a];
    if (step.b >= 0) step.b = placed[step.b];
    if (step.c >= 0) step.c = placed[step.c];
    placed.push_back(add(step));
  }
  return placed[other.result_];
}

int Formula::num_inputs() const {
  int count = 0;
  for (const FormulaStep& step : steps_) {
    if (step.op == FormulaOp::input && step.a >= count) count = step.a + 1;
  }
  return count;
}

namespace {

std::string print_constant(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  return fmt::format("{}", value);
}

}  // namespace

std::string to_string(const Formula& formula) {
  // Only assignments are numbered, so the text does not depend on where inputs and constants stand
  // among the steps, which a parser places at their first use.
  std::vector<std::string> operands;
  std::string text;
  int next = 0;
  for (const FormulaStep& step : formula.steps()) {
    if (step.op == FormulaOp::input) {
      operands.push_back(fmt::format("i{}", step.a));
      continue;
    }
    if (step.op == FormulaOp::constant) {
      operands.push_back(print_constant(step.value));
      continue;
    }
    operands.push_back(fmt::format("t{}", next++));
    text += fmt::format("{} = {}(", operands.back(), to_string(step.op));
    const int32_t arguments[] = {step.a, step.b, step.c};
    for (int k = 0; k < count_arguments(step.op); ++k) {
      if (k > 0) text += ", ";
      text += operands[arguments[k]];
    }
    text += "); ";
  }
  return text + operands[formula.result()];
}

namespace {

class FormulaParser {
 public:
  explicit FormulaParser(std::string_view text) : text_(text) {}

  Formula parse() {
    while (true) {
      skip_spaces();
      const size_t start = position_;
      const std::string_view word = read_word();
      skip_spaces();
      if (peek() == '=') {
        ++position_;
        names_.emplace_back(std::string(word), parse_call());
        skip_spaces();
        if (peek() != ';') fail("';' is expected");
        ++position_;
        continue;
      }
      const bool is_call = peek() == '(';
      position_ = start;
      formula_.set_result(is_call ? parse_call() : parse_operand());
      skip_spaces();
      if (position_ != text_.size()) fail("the end is expected");
      return std::move(formula_);
    }
  }

 private:
  [[noreturn]] void fail(const char* what) {
    throw_error(ErrorCode::kInvalidArgument, "In the formula '{}', {} at character {}.", text_,
                what, position_);
  }
  char peek() const { return position_ < text_.size() ? text_[position_] : '\0'; }
  void skip_spaces() {
    while (peek() == ' ') ++position_;
  }
  std::string_view read_word() {
    const size_t start = position_;
    auto in_word = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '-' ||
             c == '+';
    };
    while (in_word(peek())) ++position_;
    return text_.substr(start, position_ - start);
  }

  int32_t parse_operand() {
    skip_spaces();
    const std::string_view word = read_word();
    if (word.empty()) fail("an operand is expected");
    if (word[0] == 'i' && word.size() > 1 && std::isdigit(static_cast<unsigned char>(word[1]))) {
      int32_t index = 0;
      const auto [end, error] = std::from_chars(word.data() + 1, word.data() + word.size(), index);
      if (error != std::errc() || end != word.data() + word.size() || index > 4096) {
        fail("an input such as 'i0' is expected");
      }
      return formula_.add({FormulaOp::input, index});
    }
    for (const auto& [name, step] : names_) {
      if (name == word) return step;
    }
    double value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size()) {
      fail("an input, an earlier step or a number is expected");
    }
    return formula_.add({FormulaOp::constant, -1, -1, -1, value});
  }

  int32_t parse_call() {
    skip_spaces();
    const std::string_view word = read_word();
    for (size_t i = 2; i < std::size(kFormulaOps); ++i) {
      if (kFormulaOps[i].name != word) continue;
      FormulaStep step{static_cast<FormulaOp>(i)};
      int32_t* arguments[] = {&step.a, &step.b, &step.c};
      for (int k = 0; k < kFormulaOps[i].num_arguments; ++k) {
        skip_spaces();
        if (peek() != (k == 0 ? '(' : ',')) fail(k == 0 ? "'(' is expected" : "',' is expected");
        ++position_;
        *arguments[k] = parse_operand();
      }
      skip_spaces();
      if (peek() != ')') fail("')' is expected");
      ++position_;
      return formula_.add(step);
    }
    fail("a known function is expected");
  }

  std::string_view text_;
  size_t position_ = 0;
  Formula formula_;
  std::vector<std::pair<std::string, int32_t>> names_;
};

}  // namespace

Formula parse_formula(std::string_view text) { return FormulaParser(text).parse(); }

namespace fn {
namespace {

int32_t place(Formula& formula, const FormulaExpr& expr) {
  if (expr.formula == nullptr) {
    return formula.add({FormulaOp::constant, -1, -1, -1, expr.value});
  }
  return expr.step;
}

}  // namespace

FormulaExpr record(FormulaOp op, FormulaExpr a) {
  RLX_CHECK(a.formula != nullptr);
  return {a.formula, a.formula->add({op, a.step})};
}

FormulaExpr record(FormulaOp op, FormulaExpr a, FormulaExpr b) {
  Formula* formula = a.formula != nullptr ? a.formula : b.formula;
  RLX_CHECK(formula != nullptr);
  const int32_t x = place(*formula, a);
  const int32_t y = place(*formula, b);
  return {formula, formula->add({op, x, y})};
}

FormulaExpr record(FormulaOp op, FormulaExpr a, FormulaExpr b, FormulaExpr c) {
  Formula* formula = a.formula != nullptr   ? a.formula
                     : b.formula != nullptr ? b.formula
                                            : c.formula;
  RLX_CHECK(formula != nullptr);
  const int32_t x = place(*formula, a);
  const int32_t y = place(*formula, b);
  const int32_t z = place(*formula, c);
  return {formula, formula->add({op, x, y, z})};
}

}  // namespace fn

namespace {

template <typename T>
T apply(FormulaOp op, T a, T b, T c) {
  switch (op) {
    case FormulaOp::neg:
      return fn::neg(a);
    case FormulaOp::abs:
      return fn::abs(a);
    case FormulaOp::sign:
      return fn::sign(a);
    case FormulaOp::floor:
      return fn::floor(a);
    case FormulaOp::ceil:
      return fn::ceil(a);
    case FormulaOp::round:
      return fn::round(a);
    case FormulaOp::trunc:
      return fn::trunc(a);
    case FormulaOp::logical_not:
      return fn::logical_not(a);
    case FormulaOp::add:
      return fn::add(a, b);
    case FormulaOp::sub:
      return fn::sub(a, b);
    case FormulaOp::mul:
      return fn::mul(a, b);
    case FormulaOp::div:
      return fn::div(a, b);
    case FormulaOp::rem:
      return fn::rem(a, b);
    case FormulaOp::pow:
      return fn::pow(a, b);
    case FormulaOp::min:
      return fn::min(a, b);
    case FormulaOp::max:
      return fn::max(a, b);
    case FormulaOp::equal:
      return fn::equal(a, b);
    case FormulaOp::less:
      return fn::less(a, b);
    case FormulaOp::less_equal:
      return fn::less_equal(a, b);
    case FormulaOp::logical_and:
      return fn::logical_and(a, b);
    case FormulaOp::logical_or:
      return fn::logical_or(a, b);
    case FormulaOp::logical_xor:
      return fn::logical_xor(a, b);
    case FormulaOp::select:
      return fn::select(a, b, c);
    default:
      break;
  }
  if constexpr (std::is_floating_point_v<T>) {
    switch (op) {
      case FormulaOp::sqrt:
        return fn::sqrt(a);
      case FormulaOp::exp:
        return fn::exp(a);
      case FormulaOp::log:
        return fn::log(a);
      case FormulaOp::sin:
        return fn::sin(a);
      case FormulaOp::cos:
        return fn::cos(a);
      case FormulaOp::tan:
        return fn::tan(a);
      case FormulaOp::tanh:
        return fn::tanh(a);
      case FormulaOp::erf:
        return fn::erf(a);
      default:
        break;
    }
  }
  RLX_CHECK(false, "formula step '{}' has no meaning on this type", to_string(op));
  return T(0);
}

}  // namespace

template <typename T>
T evaluate(const Formula& formula, const T* inputs) {
  std::vector<T> values;
  values.reserve(formula.steps().size());
  for (const FormulaStep& step : formula.steps()) {
    auto argument = [&](int32_t index) { return index >= 0 ? values[index] : T(0); };
    if (step.op == FormulaOp::input) {
      values.push_back(inputs[step.a]);
    } else if (step.op == FormulaOp::constant) {
      values.push_back(static_cast<T>(step.value));
    } else {
      values.push_back(apply(step.op, argument(step.a), argument(step.b), argument(step.c)));
    }
  }
  return values[formula.result()];
}

template double evaluate<double>(const Formula&, const double*);
template float evaluate<float>(const Formula&, const float*);
template int64_t evaluate<int64_t>(const Formula&, const int64_t*);
template uint64_t evaluate<uint64_t>(const Formula&, const uint64_t*);

}  // namespace rlx
