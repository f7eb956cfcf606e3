// Index arithmetic that the reference meanings share: rows along one axis, and walks over all
// indices of a shape. Slow and plain.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/reference_tensor.h"

namespace rlx {

// A row-major shape seen as [outer, extent, inner] around one axis.
struct AxisSplit {
  int64_t outer = 1, extent = 1, inner = 1;

  int64_t index(int64_t o, int64_t e, int64_t i) const { return (o * extent + e) * inner + i; }
};

inline AxisSplit split_at_axis(std::span<const int64_t> shape, int axis) {
  AxisSplit split;
  for (int d = 0; d < axis; ++d) split.outer *= shape[d];
  split.extent = shape[axis];
  for (size_t d = axis + 1; d < shape.size(); ++d) split.inner *= shape[d];
  return split;
}

// Strides in elements of a contiguous tensor.
inline std::vector<int64_t> contiguous_strides(std::span<const int64_t> shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= shape[d];
  }
  return strides;
}

// Strides with which a tensor of shape `from` is read when it is stretched to `to` (numpy rules,
// checked before): 0 along stretched and added axes.
inline std::vector<int64_t> broadcast_strides(std::span<const int64_t> from,
                                              std::span<const int64_t> to) {
  std::vector<int64_t> strides(to.size(), 0);
  const std::vector<int64_t> own = contiguous_strides(from);
  const size_t shift = to.size() - from.size();
  for (size_t d = 0; d < from.size(); ++d) {
    if (from[d] != 1) strides[shift + d] = own[d];
  }
  return strides;
}

// Calls visit(n, index) for every index of the shape in row-major order, n counting from 0.
template <typename Visit>
void for_each_index(std::span<const int64_t> shape, Visit visit) {
  for (int64_t extent : shape) {
    if (extent == 0) return;
  }
  std::vector<int64_t> index(shape.size(), 0);
  for (int64_t n = 0;; ++n) {
    visit(n, std::span<const int64_t>(index));
    size_t d = shape.size();
    while (d > 0 && ++index[d - 1] == shape[d - 1]) index[--d] = 0;
    if (d == 0) return;
  }
}

// Copies element `from_index` of one tensor to `to_index` of another of the same dtype, exactly.
inline void copy_element(const ReferenceTensor& from, int64_t from_index, ReferenceTensor& to,
                         int64_t to_index) {
  if (to.holds_floats()) {
    to.floats[to_index] = from.holds_floats() ? from.floats[from_index] : from.at(from_index);
  } else {
    to.integers[to_index] = from.integers[from_index];
  }
}

// A float as an integer dtype holds it: toward zero, stopping at the dtype's ends; NaN is 0.
int64_t saturate_to_integer(DType dtype, double value);

// The element converted to the dtype as the op cast does.
void convert_element(const ReferenceTensor& from, int64_t from_index, ReferenceTensor& to,
                     int64_t to_index);

// An id that may count from the end, as an index below `extent`. Throws kOutOfRange naming the op.
int64_t resolve_id(const char* op_name, int64_t id, int64_t extent);

}  // namespace rlx
