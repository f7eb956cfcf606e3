#include "ops/elementwise.h"

#include "ops/infer.h"
#include "ops/reference_loops.h"

namespace rlx {

namespace {

void check_domain(const InferContext& context, int i, Domain domain) {
  if (domain == Domain::kFloat) check_float(context, i);
  if (domain == Domain::kNumber) check_number(context, i);
  if (domain == Domain::kAny) check_plain(context, i);
}

void check_bool(const InferContext& context, int i) {
  if (context.input(i).dtype != DType::kBool) {
    context.fail("Input {} is {}, but bool is expected.", i, to_string(context.input(i)));
  }
}

Shape broadcast_all(const InferContext& context) {
  Shape shape = context.input(0).shape;
  for (size_t i = 1; i < context.inputs.size(); ++i) {
    shape = broadcast_shapes(context, shape, context.input(static_cast<int>(i)).shape);
  }
  return shape;
}

}  // namespace

std::vector<TensorType> infer_elementwise(const InferContext& context, Domain domain,
                                          DTypeRule rule) {
  const int count = static_cast<int>(context.inputs.size());
  for (int i = 0; i < count; ++i) {
    if (rule == DTypeRule::kLogic) {
      check_bool(context, i);
    } else {
      check_domain(context, i, domain);
    }
    check_same_dtype(context, 0, i);
  }
  const DType dtype = rule == DTypeRule::kSame ? context.input(0).dtype : DType::kBool;
  return {{dtype, broadcast_all(context)}};
}

std::vector<TensorType> Select::infer(const InferContext& context) const {
  check_bool(context, 0);
  check_plain(context, 1);
  check_same_dtype(context, 1, 2);
  return {{context.input(1).dtype, broadcast_all(context)}};
}

std::vector<TensorType> Clamp::infer(const InferContext& context) const {
  check_number(context, 0);
  if (std::isnan(low) || std::isnan(high) || low > high) {
    context.fail("The bounds [{}, {}] are given, but low <= high is expected.", low, high);
  }
  if (is_integer(context.input(0).dtype)) {
    for (double bound : {low, high}) {
      if (std::isinf(bound)) continue;
      if (bound != std::trunc(bound) || std::abs(bound) > 0x1p53) {
        context.fail("The bound {} is given for {}, but an integer of at most 53 bits is expected.",
                     bound, to_string(context.input(0)));
      }
      if (wrap_integer(context.input(0).dtype, static_cast<int64_t>(bound)) != bound) {
        context.fail("The bound {} is given, which {} does not hold.", bound,
                     to_string(context.input(0).dtype));
      }
    }
  }
  return {context.input(0)};
}

namespace {

bool needs_floats(FormulaOp op) {
  switch (op) {
    case FormulaOp::sqrt:
    case FormulaOp::exp:
    case FormulaOp::log:
    case FormulaOp::sin:
    case FormulaOp::cos:
    case FormulaOp::tan:
    case FormulaOp::tanh:
    case FormulaOp::erf:
      return true;
    default:
      return false;
  }
}

// A formula runs on integers when its functions do and its constants are integers of their range.
void check_integer_formula(const InferContext& context, const Formula& formula, DType dtype) {
  const double lowest = dtype == DType::kU64 ? 0 : -0x1p63;
  const double end = dtype == DType::kU64 ? 0x1p64 : 0x1p63;
  for (const FormulaStep& step : formula.steps()) {
    if (needs_floats(step.op)) {
      context.fail("The formula uses '{}', but the inputs are {}.", to_string(step.op),
                   to_string(dtype));
    }
    if (step.op != FormulaOp::constant) continue;
    const double value = step.value;
    if (value != std::trunc(value) || !(value >= lowest && value < end)) {
      context.fail("The formula has the constant {}, but the inputs are {}.", value,
                   to_string(dtype));
    }
  }
}

}  // namespace

std::vector<TensorType> Fused::infer(const InferContext& context) const {
  const int count = static_cast<int>(context.inputs.size());
  if (formula.steps().empty() || formula.result() < 0) {
    context.fail("The attribute `formula` is empty.");
  }
  if (formula.num_inputs() > count) {
    context.fail("The formula uses {} inputs, but {} are given.", formula.num_inputs(), count);
  }
  bool any_float = false;
  DType integer = DType::kBool;
  for (int i = 0; i < count; ++i) {
    check_plain(context, i);
    const DType given = context.input(i).dtype;
    any_float |= is_float(given);
    if (!is_integer(given)) continue;
    if (integer != DType::kBool && integer != given) {
      context.fail("The inputs are {} and {}, but one integer dtype is expected.",
                   to_string(integer), to_string(given));
    }
    integer = given;
  }
  if (any_float && integer != DType::kBool) {
    context.fail("Floats and {} are given together: a fused formula runs on one of them.",
                 to_string(integer));
  }
  const bool fits = dtype == DType::kBool || (any_float ? is_float(dtype) : is_integer(dtype));
  if (!fits) {
    context.fail("The output's dtype is {}, but {} or bool is expected from these inputs.",
                 to_string(dtype), any_float ? "a float" : "an integer");
  }
  if (!any_float) check_integer_formula(context, formula, integer);
  return {{dtype, broadcast_all(context)}};
}

std::vector<TensorType> Cast::infer(const InferContext& context) const {
  const TensorType& input = context.input(0);
  if (is_complex(input.dtype)) check_plain(context, 0);
  if (is_packed(dtype) || is_complex(dtype)) {
    context.fail("The attribute `dtype` is {}, but a float, integer or bool is expected.",
                 to_string(dtype));
  }
  return {{dtype, input.shape}};
}

void Cast::reference(const ReferenceContext& context) const {
  const int64_t count = context.outputs[0].num_elements();
  for (int64_t i = 0; i < count; ++i) convert_element(context.input(0), i, context.outputs[0], i);
}

std::vector<TensorType> Copy::infer(const InferContext& context) const {
  check_plain(context, 0);
  return {context.input(0)};
}

void Copy::reference(const ReferenceContext& context) const {
  const int64_t count = context.outputs[0].num_elements();
  for (int64_t i = 0; i < count; ++i) copy_element(context.input(0), i, context.outputs[0], i);
}

}  // namespace rlx
