#include "ops/infer.h"

#include <algorithm>

namespace rlx {

int normalise_axis(const InferContext& context, int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) {
    context.fail("The axis {} is given, but a tensor of {} dimensions has axes {} to {}.", axis,
                 rank, -rank, rank - 1);
  }
  return wrap_axis(axis, rank);
}

std::vector<int> normalise_axes(const InferContext& context, std::span<const int64_t> axes,
                                int rank) {
  for (int64_t axis : axes) normalise_axis(context, axis, rank);
  std::vector<int> result = wrap_axes(axes, rank);
  const auto twice = std::adjacent_find(result.begin(), result.end());
  if (twice != result.end()) context.fail("The axis {} is listed twice in `axes`.", *twice);
  return result;
}

std::vector<int> wrap_axes(std::span<const int64_t> axes, int rank) {
  std::vector<int> result;
  if (axes.empty()) {
    for (int axis = 0; axis < rank; ++axis) result.push_back(axis);
  }
  for (int64_t axis : axes) result.push_back(wrap_axis(axis, rank));
  std::sort(result.begin(), result.end());
  return result;
}

Shape broadcast_shapes(const InferContext& context, const Shape& a, const Shape& b) {
  const Shape& longer = a.size() >= b.size() ? a : b;
  const Shape& shorter = a.size() >= b.size() ? b : a;
  Shape result = longer;
  const size_t shift = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i) {
    Dim& extent = result[shift + i];
    if (extent == shorter[i] || shorter[i].is(1)) continue;
    if (!extent.is(1)) {
      context.fail(
          "The shapes {} and {} do not broadcast: the extents {} and {} differ and neither is 1.",
          to_string(a), to_string(b), to_string(extent), to_string(shorter[i]));
    }
    extent = shorter[i];
  }
  return result;
}

void check_broadcasts_to(const InferContext& context, std::string_view what, const Shape& from,
                         const Shape& to) {
  bool fits = from.size() <= to.size();
  for (size_t i = 0; fits && i < from.size(); ++i) {
    fits = from[i].is(1) || from[i] == to[to.size() - from.size() + i];
  }
  if (!fits) {
    context.fail("{} has the shape {}, which does not broadcast to {}.", what, to_string(from),
                 to_string(to));
  }
}

bool is_at_least(const InferContext& context, const Dim& a, const Dim& b) {
  return (a - b).lower_bound(context.symbols) >= 0;
}

void check_float(const InferContext& context, int i) {
  if (!is_float(context.input(i).dtype)) {
    context.fail("Input {} is {}, but a float dtype is expected.", i, to_string(context.input(i)));
  }
}

void check_number(const InferContext& context, int i) {
  if (!is_float(context.input(i).dtype) && !is_integer(context.input(i).dtype)) {
    context.fail("Input {} is {}, but a float or integer dtype is expected.", i,
                 to_string(context.input(i)));
  }
}

void check_integer(const InferContext& context, int i) {
  if (!is_integer(context.input(i).dtype)) {
    context.fail("Input {} is {}, but an integer dtype is expected.", i,
                 to_string(context.input(i)));
  }
}

void check_plain(const InferContext& context, int i) {
  if (is_packed(context.input(i).dtype) || is_complex(context.input(i).dtype)) {
    context.fail("Input {} is {}, but a float, integer or bool dtype is expected.", i,
                 to_string(context.input(i)));
  }
}

void check_rank(const InferContext& context, int i, int rank) {
  if (context.input(i).rank() != rank) {
    context.fail("Input {} is {}, but {} dimensions are expected.", i, to_string(context.input(i)),
                 rank);
  }
}

void check_rank_at_least(const InferContext& context, int i, int rank) {
  if (context.input(i).rank() < rank) {
    context.fail("Input {} is {}, but at least {} dimensions are expected.", i,
                 to_string(context.input(i)), rank);
  }
}

void check_same_dtype(const InferContext& context, int i, int j) {
  if (context.input(i).dtype != context.input(j).dtype) {
    context.fail("Input {} is {} and input {} is {}, but one dtype is expected.", i,
                 to_string(context.input(i)), j, to_string(context.input(j)));
  }
}

void check_extent(const InferContext& context, int i, int axis, const Dim& extent,
                  std::string_view what) {
  const TensorType& type = context.input(i);
  if (type.shape[axis] != extent) {
    context.fail("Input {} is {}, but the extent {} is expected at axis {}: {}.", i,
                 to_string(type), to_string(extent), axis, what);
  }
}

void check_vector(const InferContext& context, int i, const Dim& extent, std::string_view what) {
  check_rank(context, i, 1);
  check_extent(context, i, 0, extent, what);
}

}  // namespace rlx
