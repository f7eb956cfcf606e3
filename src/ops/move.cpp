#include "ops/move.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/infer.h"
#include "ops/reference_loops.h"

namespace rlx {
namespace {

int rank_of(const ReferenceTensor& tensor) { return static_cast<int>(tensor.shape.size()); }

// The indices of one row in sorted order; a stable sort under which NaN is the largest of all.
std::vector<int64_t> sort_row(const ReferenceTensor& x, const AxisSplit& split, int64_t o,
                              int64_t i, bool descending) {
  const auto is_less = [&](int64_t a, int64_t b) {
    const int64_t pa = split.index(o, a, i), pb = split.index(o, b, i);
    if (x.holds_floats()) {
      const double va = x.floats[pa], vb = x.floats[pb];
      return va < vb || (!std::isnan(va) && std::isnan(vb));
    }
    if (x.dtype == DType::kU64) {
      return static_cast<uint64_t>(x.integers[pa]) < static_cast<uint64_t>(x.integers[pb]);
    }
    return x.integers[pa] < x.integers[pb];
  };
  std::vector<int64_t> order(split.extent);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return descending ? is_less(b, a) : is_less(a, b);
  });
  return order;
}

// Sorts along the axis and keeps the first elements, as many as the outputs have.
void write_sorted(const ReferenceContext& context, int64_t axis, bool descending) {
  const ReferenceTensor& x = context.input(0);
  const int wrapped = wrap_axis(axis, rank_of(x));
  const AxisSplit from = split_at_axis(x.shape, wrapped);
  const AxisSplit to = split_at_axis(context.outputs[0].shape, wrapped);
  for (int64_t o = 0; o < from.outer; ++o) {
    for (int64_t i = 0; i < from.inner; ++i) {
      const std::vector<int64_t> order = sort_row(x, from, o, i, descending);
      for (int64_t e = 0; e < to.extent; ++e) {
        const int64_t place = to.index(o, e, i);
        copy_element(x, from.index(o, order[e], i), context.outputs[0], place);
        context.outputs[1].integers[place] = order[e];
      }
    }
  }
}

}  // namespace

std::vector<TensorType> Concat::infer(const InferContext& context) const {
  TensorType output = context.input(0);
  check_plain(context, 0);
  const int joined = normalise_axis(context, axis, output.rank());
  for (int i = 1; i < static_cast<int>(context.inputs.size()); ++i) {
    check_same_dtype(context, 0, i);
    check_rank(context, i, output.rank());
    for (int d = 0; d < output.rank(); ++d) {
      if (d != joined) check_extent(context, i, d, output.shape[d], "the extent of input 0");
    }
    output.shape[joined] = output.shape[joined] + context.input(i).shape[joined];
  }
  return {output};
}

void Concat::reference(const ReferenceContext& context) const {
  ReferenceTensor& output = context.outputs[0];
  const int joined = wrap_axis(axis, rank_of(output));
  const AxisSplit to = split_at_axis(output.shape, joined);
  int64_t start = 0;
  for (const ReferenceTensor* input : context.inputs) {
    const AxisSplit from = split_at_axis(input->shape, joined);
    for (int64_t o = 0; o < from.outer; ++o) {
      for (int64_t e = 0; e < from.extent; ++e) {
        for (int64_t i = 0; i < from.inner; ++i) {
          copy_element(*input, from.index(o, e, i), output, to.index(o, start + e, i));
        }
      }
    }
    start += from.extent;
  }
}

std::vector<TensorType> Pad::infer(const InferContext& context) const {
  TensorType output = context.input(0);
  check_plain(context, 0);
  const size_t rank = output.shape.size();
  if (low.size() != rank || high.size() != rank) {
    context.fail("{} has {} dimensions, but `low` has {} entries and `high` has {}.",
                 to_string(output), rank, low.size(), high.size());
  }
  for (size_t d = 0; d < rank; ++d) {
    if (low[d] < 0 || high[d] < 0) {
      context.fail("The padding {} and {} is given at axis {}, but 0 or more is expected.", low[d],
                   high[d], d);
    }
    output.shape[d] = output.shape[d] + low[d] + high[d];
  }
  if (!is_float(output.dtype) &&
      static_cast<double>(saturate_to_integer(output.dtype, value)) != value) {
    context.fail("The attribute `value` is {}, which {} does not hold.", value,
                 to_string(output.dtype));
  }
  return {output};
}

void Pad::reference(const ReferenceContext& context) const {
  const ReferenceTensor& input = context.input(0);
  ReferenceTensor& output = context.outputs[0];
  std::fill(output.floats.begin(), output.floats.end(), value);
  if (!output.holds_floats()) {
    std::fill(output.integers.begin(), output.integers.end(),
              saturate_to_integer(output.dtype, value));
  }
  const std::vector<int64_t> strides = contiguous_strides(output.shape);
  for_each_index(input.shape, [&](int64_t n, std::span<const int64_t> index) {
    int64_t place = 0;
    for (size_t d = 0; d < index.size(); ++d) place += (index[d] + low[d]) * strides[d];
    copy_element(input, n, output, place);
  });
}

std::vector<TensorType> Gather::infer(const InferContext& context) const {
  const TensorType& table = context.input(0);
  const TensorType& ids = context.input(1);
  check_integer(context, 1);
  const int gathered = normalise_axis(context, axis, table.rank());
  TensorType output{table.dtype, {}};
  if (is_packed(table.dtype)) {
    check_rank(context, 0, 2);
    if (gathered != 0) {
      context.fail("Input 0 is {}, and a packed table is gathered along axis 0, not {}.",
                   to_string(table), axis);
    }
    output.dtype = DType::kF32;
  } else {
    check_plain(context, 0);
  }
  output.shape.assign(table.shape.begin(), table.shape.begin() + gathered);
  output.shape.insert(output.shape.end(), ids.shape.begin(), ids.shape.end());
  output.shape.insert(output.shape.end(), table.shape.begin() + gathered + 1, table.shape.end());
  return {output};
}

void Gather::reference(const ReferenceContext& context) const {
  const ReferenceTensor& table = context.input(0);
  const ReferenceTensor& ids = context.input(1);
  ReferenceTensor& output = context.outputs[0];
  const AxisSplit from = split_at_axis(table.shape, wrap_axis(axis, rank_of(table)));
  const int64_t count = ids.num_elements();
  for (int64_t o = 0; o < from.outer; ++o) {
    for (int64_t e = 0; e < count; ++e) {
      const int64_t id = resolve_id("gather", ids.integers[e], from.extent);
      for (int64_t i = 0; i < from.inner; ++i) {
        copy_element(table, from.index(o, id, i), output, (o * count + e) * from.inner + i);
      }
    }
  }
}

std::vector<TensorType> Scatter::infer(const InferContext& context) const {
  const TensorType& data = context.input(0);
  const TensorType& ids = context.input(1);
  const TensorType& updates = context.input(2);
  if (reduction == ScatterReduction::kNone) {
    check_plain(context, 0);
  } else {
    check_number(context, 0);
  }
  check_integer(context, 1);
  check_same_dtype(context, 0, 2);
  const int scattered = normalise_axis(context, axis, data.rank());
  check_rank(context, 1, data.rank());
  if (ids.shape != updates.shape) {
    context.fail("The ids are {} and the updates {}, but one shape is expected.", to_string(ids),
                 to_string(updates));
  }
  for (int d = 0; d < data.rank(); ++d) {
    if (d != scattered && !is_at_least(context, data.shape[d], ids.shape[d])) {
      context.fail("The ids are {}, which at axis {} may reach past the data {}.", to_string(ids),
                   d, to_string(data));
    }
  }
  return {data};
}

void Scatter::reference(const ReferenceContext& context) const {
  const ReferenceTensor& ids = context.input(1);
  const ReferenceTensor& updates = context.input(2);
  ReferenceTensor& output = context.outputs[0];
  output.floats = context.input(0).floats;
  output.integers = context.input(0).integers;
  const int scattered = wrap_axis(axis, rank_of(output));
  const std::vector<int64_t> strides = contiguous_strides(output.shape);
  const auto combine = [&](auto old, auto update) {
    switch (reduction) {
      case ScatterReduction::kAdd:
        return fn::add(old, update);
      case ScatterReduction::kMul:
        return fn::mul(old, update);
      case ScatterReduction::kMin:
        return fn::min(old, update);
      case ScatterReduction::kMax:
        return fn::max(old, update);
      case ScatterReduction::kNone:
        break;
    }
    return update;
  };
  for_each_index(ids.shape, [&](int64_t n, std::span<const int64_t> index) {
    const int64_t id = resolve_id("scatter", ids.integers[n], output.shape[scattered]);
    int64_t place = 0;
    for (int d = 0; d < rank_of(output); ++d) {
      place += (d == scattered ? id : index[d]) * strides[d];
    }
    if (output.holds_floats()) {
      output.floats[place] = combine(output.floats[place], updates.floats[n]);
    } else if (output.dtype == DType::kU64) {
      output.integers[place] =
          static_cast<int64_t>(combine(static_cast<uint64_t>(output.integers[place]),
                                       static_cast<uint64_t>(updates.integers[n])));
    } else {
      output.set_integer(place, combine(output.integers[place], updates.integers[n]));
    }
  });
}

std::vector<TensorType> Iota::infer(const InferContext& context) const {
  if (!is_float(dtype) && !is_integer(dtype)) {
    context.fail("The attribute `dtype` is {}, but a float or an integer is expected.",
                 to_string(dtype));
  }
  normalise_axis(context, axis, static_cast<int>(shape.size()));
  for (const Dim& extent : shape) {
    if (extent.lower_bound(context.symbols) < 0) {
      context.fail("The attribute `shape` is {}, whose extent {} may be negative.",
                   to_string(shape), to_string(extent));
    }
  }
  return {{dtype, shape}};
}

void Iota::reference(const ReferenceContext& context) const {
  ReferenceTensor& output = context.outputs[0];
  const int counted = wrap_axis(axis, rank_of(output));
  const int64_t first = context.evaluate(start);
  for_each_index(output.shape, [&](int64_t n, std::span<const int64_t> index) {
    output.set_integer(n, fn::add(first, fn::mul(step, index[counted])));
  });
}

std::vector<TensorType> TopK::infer(const InferContext& context) const {
  check_number(context, 0);
  TensorType values = context.input(0);
  const int sorted = normalise_axis(context, axis, values.rank());
  if (k < 0 || !is_at_least(context, values.shape[sorted], k)) {
    context.fail("The attribute `k` is {}, but 0 up to the extent {} at axis {} is expected.", k,
                 to_string(values.shape[sorted]), sorted);
  }
  values.shape[sorted] = k;
  return {values, {DType::kI64, values.shape}};
}

void TopK::reference(const ReferenceContext& context) const {
  write_sorted(context, axis, largest);
}

std::vector<TensorType> Sort::infer(const InferContext& context) const {
  check_number(context, 0);
  const TensorType& input = context.input(0);
  normalise_axis(context, axis, input.rank());
  return {input, {DType::kI64, input.shape}};
}

void Sort::reference(const ReferenceContext& context) const {
  write_sorted(context, axis, descending);
}

}  // namespace rlx
