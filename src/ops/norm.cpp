#include "ops/norm.h"

#include "ops/decompose.h"
#include "ops/infer.h"
#include "ops/reduce.h"

namespace rlx {
namespace {

std::vector<TensorType> infer_softmax(const InferContext& context, int64_t axis) {
  check_float(context, 0);
  normalise_axis(context, axis, context.input(0).rank());
  return {context.input(0)};
}

// Checks that x has a last axis and that input i is one float per element of it.
void check_scale(const InferContext& context, int i, std::string_view what) {
  check_rank_at_least(context, 0, 1);
  check_float(context, i);
  check_vector(context, i, context.input(0).shape.back(), what);
}

void check_eps(const InferContext& context, double eps) {
  if (!(eps >= 0)) context.fail("The attribute `eps` is {}, but 0 or more is expected.", eps);
}

// x * 1 / sqrt(mean(x^2) + eps) over the last axis
ValueId divide_by_rms(Builder& builder, ValueId x, double eps) {
  const ValueId square = builder.add(Mul{}, {x, x});
  const ValueId mean = builder.add(ReduceMean{.axes = {-1}, .keep_dims = true}, {square});
  const ValueId bias = builder.add_scalar(builder.type(x).dtype, eps);
  const ValueId scale = builder.add(Rsqrt{}, {builder.add(Add{}, {mean, bias})});
  return builder.add(Mul{}, {x, scale});
}

// x - max over the axis
ValueId subtract_max(Builder& builder, ValueId x, int64_t axis) {
  const ValueId max = builder.add(ReduceMax{.axes = {axis}, .keep_dims = true}, {x});
  return builder.add(Sub{}, {x, max});
}

}  // namespace

std::vector<TensorType> Softmax::infer(const InferContext& context) const {
  return infer_softmax(context, axis);
}

std::vector<ValueId> Softmax::decompose(Builder& builder, std::span<const ValueId> inputs) const {
  const DType dtype = builder.type(inputs[0]).dtype;
  const ValueId x = cast_to(builder, inputs[0], compute_dtype(dtype));
  const ValueId power = builder.add(Exp{}, {subtract_max(builder, x, axis)});
  const ValueId sum = builder.add(ReduceSum{.axes = {axis}, .keep_dims = true}, {power});
  return {cast_to(builder, builder.add(Div{}, {power, sum}), dtype)};
}

std::vector<TensorType> LogSoftmax::infer(const InferContext& context) const {
  return infer_softmax(context, axis);
}

std::vector<ValueId> LogSoftmax::decompose(Builder& builder,
                                           std::span<const ValueId> inputs) const {
  const DType dtype = builder.type(inputs[0]).dtype;
  const ValueId x = cast_to(builder, inputs[0], compute_dtype(dtype));
  const ValueId shifted = subtract_max(builder, x, axis);
  const ValueId power = builder.add(Exp{}, {shifted});
  const ValueId sum = builder.add(ReduceSum{.axes = {axis}, .keep_dims = true}, {power});
  const ValueId result = builder.add(Sub{}, {shifted, builder.add(Log{}, {sum})});
  return {cast_to(builder, result, dtype)};
}

std::vector<TensorType> RmsNorm::infer(const InferContext& context) const {
  check_float(context, 0);
  check_scale(context, 1, "one weight per element of the last axis of x");
  check_eps(context, eps);
  return {context.input(0)};
}

std::vector<ValueId> RmsNorm::decompose(Builder& builder, std::span<const ValueId> inputs) const {
  const DType dtype = builder.type(inputs[0]).dtype;
  const ValueId x = cast_to(builder, inputs[0], compute_dtype(dtype));
  const ValueId weight = cast_to(builder, inputs[1], compute_dtype(dtype));
  const ValueId result = builder.add(Mul{}, {divide_by_rms(builder, x, eps), weight});
  return {cast_to(builder, result, dtype)};
}

std::vector<TensorType> LayerNorm::infer(const InferContext& context) const {
  check_float(context, 0);
  check_scale(context, 1, "one weight per element of the last axis of x");
  check_scale(context, 2, "one bias per element of the last axis of x");
  check_eps(context, eps);
  return {context.input(0)};
}

std::vector<ValueId> LayerNorm::decompose(Builder& builder, std::span<const ValueId> inputs) const {
  const DType dtype = builder.type(inputs[0]).dtype;
  const ValueId x = cast_to(builder, inputs[0], compute_dtype(dtype));
  const ValueId weight = cast_to(builder, inputs[1], compute_dtype(dtype));
  const ValueId bias = cast_to(builder, inputs[2], compute_dtype(dtype));
  const ValueId mean = builder.add(ReduceMean{.axes = {-1}, .keep_dims = true}, {x});
  const ValueId centred = builder.add(Sub{}, {x, mean});
  const ValueId scaled = builder.add(Mul{}, {divide_by_rms(builder, centred, eps), weight});
  return {cast_to(builder, builder.add(Add{}, {scaled, bias}), dtype)};
}

std::vector<TensorType> AddRmsNorm::infer(const InferContext& context) const {
  check_float(context, 0);
  if (context.input(0) != context.input(1)) {
    context.fail("Input 0 is {} and input 1 is {}, but one type is expected.",
                 to_string(context.input(0)), to_string(context.input(1)));
  }
  check_scale(context, 2, "one weight per element of the last axis of x");
  check_eps(context, eps);
  return {context.input(0), context.input(0)};
}

std::vector<ValueId> AddRmsNorm::decompose(Builder& builder,
                                           std::span<const ValueId> inputs) const {
  const ValueId sum = builder.add(Add{}, {inputs[0], inputs[1]});
  return {sum, builder.add(RmsNorm{.eps = eps}, {sum, inputs[2]})};
}

}  // namespace rlx
