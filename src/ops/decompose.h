// Small steps that several decompositions take.
#pragma once

#include "ir/graph.h"
#include "ops/elementwise.h"
#include "ops/view.h"

namespace rlx {

// The value in the dtype, without a cast where it has it already.
inline ValueId cast_to(Builder& builder, ValueId value, DType dtype) {
  if (builder.type(value).dtype == dtype) return value;
  return builder.add(Cast{.dtype = dtype}, {value});
}

// The dtype in which a decomposition computes: f32 for 16-bit floats, whose sums of squares
// overflow and whose long sums stall, else the dtype itself.
inline DType compute_dtype(DType dtype) {
  return dtype == DType::kF16 || dtype == DType::kBF16 ? DType::kF32 : dtype;
}

inline ValueId reshape(Builder& builder, ValueId value, Shape shape) {
  if (builder.type(value).shape == shape) return value;
  return builder.add(Reshape{.shape = std::move(shape)}, {value});
}

// Elements [start, start + size) along one axis.
inline ValueId slice_axis(Builder& builder, ValueId value, int axis, Dim start, Dim size) {
  Slice slice{.starts = Shape(builder.type(value).rank(), Dim(0)),
              .sizes = builder.type(value).shape};
  slice.starts[axis] = std::move(start);
  slice.sizes[axis] = std::move(size);
  return builder.add(std::move(slice), {value});
}

}  // namespace rlx
