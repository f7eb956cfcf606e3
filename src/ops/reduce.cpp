#include "ops/reduce.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/infer.h"
#include "ops/reference_loops.h"

namespace rlx {
namespace {

std::vector<TensorType> infer_reduce(const InferContext& context, std::span<const int64_t> axes,
                                     bool keep_dims) {
  check_number(context, 0);
  const TensorType& input = context.input(0);
  const std::vector<int> reduced = normalise_axes(context, axes, input.rank());
  TensorType output{input.dtype, {}};
  for (int axis = 0; axis < input.rank(); ++axis) {
    const bool is_reduced = std::binary_search(reduced.begin(), reduced.end(), axis);
    if (!is_reduced) output.shape.push_back(input.shape[axis]);
    if (is_reduced && keep_dims) output.shape.push_back(1);
  }
  return {output};
}

// Folds the elements of each output into it: `fold_float(total, x)`, `fold_integer(total, x)`.
template <typename FoldFloat, typename FoldInteger>
void reduce(const ReferenceContext& context, std::span<const int64_t> axes, double start_float,
            int64_t start_integer, FoldFloat fold_float, FoldInteger fold_integer) {
  const ReferenceTensor& input = context.input(0);
  ReferenceTensor& output = context.outputs[0];
  std::vector<int64_t> kept = input.shape;
  for (int axis : wrap_axes(axes, static_cast<int>(kept.size()))) kept[axis] = 1;
  const std::vector<int64_t> strides = broadcast_strides(kept, input.shape);
  std::fill(output.floats.begin(), output.floats.end(), start_float);
  std::fill(output.integers.begin(), output.integers.end(), start_integer);
  for_each_index(input.shape, [&](int64_t n, std::span<const int64_t> index) {
    int64_t place = 0;
    for (size_t d = 0; d < index.size(); ++d) place += index[d] * strides[d];
    if (input.holds_floats()) {
      output.floats[place] = fold_float(output.floats[place], input.floats[n]);
    } else {
      const int64_t folded = fold_integer(output.integers[place], input.integers[n]);
      output.integers[place] = wrap_integer(output.dtype, folded);
    }
  });
}

// u64 is held by its bits, so its order is not that of int64.
bool is_less(DType dtype, int64_t a, int64_t b) {
  if (dtype == DType::kU64) return static_cast<uint64_t>(a) < static_cast<uint64_t>(b);
  return a < b;
}

// The lowest and the highest value of an integer dtype, as held.
int64_t lowest_integer(DType dtype) {
  return saturate_to_integer(dtype, -std::numeric_limits<double>::infinity());
}
int64_t highest_integer(DType dtype) {
  return saturate_to_integer(dtype, std::numeric_limits<double>::infinity());
}

std::vector<TensorType> infer_arg(const InferContext& context, int64_t axis, bool keep_dims) {
  check_number(context, 0);
  const TensorType& input = context.input(0);
  const int reduced = normalise_axis(context, axis, input.rank());
  if (!is_at_least(context, input.shape[reduced], 1)) {
    context.fail("Input 0 is {}, but at least one element is expected along axis {}.",
                 to_string(input), reduced);
  }
  TensorType output{DType::kI64, input.shape};
  if (keep_dims) {
    output.shape[reduced] = 1;
  } else {
    output.shape.erase(output.shape.begin() + reduced);
  }
  return {output};
}

// The place of the extreme along the axis. `is_better(a, b)` on places of the input is strict.
template <typename IsBetter>
void find_extreme(const ReferenceContext& context, int64_t axis, bool select_last,
                  IsBetter is_better) {
  const ReferenceTensor& input = context.input(0);
  const AxisSplit split =
      split_at_axis(input.shape, wrap_axis(axis, static_cast<int>(input.shape.size())));
  for (int64_t o = 0; o < split.outer; ++o) {
    for (int64_t i = 0; i < split.inner; ++i) {
      int64_t best = 0;
      for (int64_t e = 1; e < split.extent; ++e) {
        const int64_t here = split.index(o, e, i), there = split.index(o, best, i);
        if (is_better(here, there) || (select_last && !is_better(there, here))) best = e;
      }
      context.outputs[0].integers[o * split.inner + i] = best;
    }
  }
}

}  // namespace

std::vector<TensorType> ReduceSum::infer(const InferContext& context) const {
  return infer_reduce(context, axes, keep_dims);
}
void ReduceSum::reference(const ReferenceContext& context) const {
  reduce(context, axes, 0, 0, fn::add<double>, fn::add<int64_t>);
}

std::vector<TensorType> ReduceMean::infer(const InferContext& context) const {
  check_float(context, 0);
  return infer_reduce(context, axes, keep_dims);
}
void ReduceMean::reference(const ReferenceContext& context) const {
  reduce(context, axes, 0, 0, fn::add<double>, fn::add<int64_t>);
  int64_t count = 1;
  for (int axis : wrap_axes(axes, static_cast<int>(context.input(0).shape.size()))) {
    count *= context.input(0).shape[axis];
  }
  for (double& total : context.outputs[0].floats) total /= static_cast<double>(count);
}

std::vector<TensorType> ReduceMax::infer(const InferContext& context) const {
  return infer_reduce(context, axes, keep_dims);
}
void ReduceMax::reference(const ReferenceContext& context) const {
  const DType dtype = context.input(0).dtype;
  reduce(context, axes, -std::numeric_limits<double>::infinity(), lowest_integer(dtype),
         fn::max<double>, [&](int64_t a, int64_t b) { return is_less(dtype, a, b) ? b : a; });
}

std::vector<TensorType> ReduceMin::infer(const InferContext& context) const {
  return infer_reduce(context, axes, keep_dims);
}
void ReduceMin::reference(const ReferenceContext& context) const {
  const DType dtype = context.input(0).dtype;
  reduce(context, axes, std::numeric_limits<double>::infinity(), highest_integer(dtype),
         fn::min<double>, [&](int64_t a, int64_t b) { return is_less(dtype, b, a) ? b : a; });
}

std::vector<TensorType> ReduceProd::infer(const InferContext& context) const {
  return infer_reduce(context, axes, keep_dims);
}
void ReduceProd::reference(const ReferenceContext& context) const {
  reduce(context, axes, 1, 1, fn::mul<double>, fn::mul<int64_t>);
}

std::vector<TensorType> Argmax::infer(const InferContext& context) const {
  return infer_arg(context, axis, keep_dims);
}
void Argmax::reference(const ReferenceContext& context) const {
  const ReferenceTensor& x = context.input(0);
  find_extreme(context, axis, select_last, [&](int64_t a, int64_t b) {
    if (!x.holds_floats()) return is_less(x.dtype, x.integers[b], x.integers[a]);
    return x.floats[a] > x.floats[b] || (std::isnan(x.floats[a]) && !std::isnan(x.floats[b]));
  });
}

std::vector<TensorType> Argmin::infer(const InferContext& context) const {
  return infer_arg(context, axis, keep_dims);
}
void Argmin::reference(const ReferenceContext& context) const {
  const ReferenceTensor& x = context.input(0);
  find_extreme(context, axis, select_last, [&](int64_t a, int64_t b) {
    if (!x.holds_floats()) return is_less(x.dtype, x.integers[a], x.integers[b]);
    return x.floats[a] < x.floats[b] || (std::isnan(x.floats[a]) && !std::isnan(x.floats[b]));
  });
}

std::vector<TensorType> CumulativeSum::infer(const InferContext& context) const {
  check_number(context, 0);
  normalise_axis(context, axis, context.input(0).rank());
  return {context.input(0)};
}

void CumulativeSum::reference(const ReferenceContext& context) const {
  const ReferenceTensor& input = context.input(0);
  ReferenceTensor& output = context.outputs[0];
  const AxisSplit split =
      split_at_axis(input.shape, wrap_axis(axis, static_cast<int>(input.shape.size())));
  for (int64_t o = 0; o < split.outer; ++o) {
    for (int64_t i = 0; i < split.inner; ++i) {
      double total = 0;
      int64_t total_integer = 0;
      for (int64_t step = 0; step < split.extent; ++step) {
        const int64_t place = split.index(o, reverse ? split.extent - 1 - step : step, i);
        const double before = total;
        const int64_t before_integer = total_integer;
        if (input.holds_floats()) {
          total += input.floats[place];
          output.floats[place] = exclusive ? before : total;
        } else {
          total_integer = fn::add(total_integer, input.integers[place]);
          output.set_integer(place, exclusive ? before_integer : total_integer);
        }
      }
    }
  }
}

}  // namespace rlx
