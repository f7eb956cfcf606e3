// A tensor on which the reference meaning of ops is defined: floats held as double, integers and
// booleans as int64, row-major. Slow and plain on purpose: it is the oracle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "rlx/dtype.h"

namespace rlx {

struct ReferenceTensor {
  DType dtype = DType::kF32;  // packed dtypes hold their decoded values in `floats`
  std::vector<int64_t> shape;
  std::vector<double> floats;     // when the dtype is a float or packed
  std::vector<int64_t> integers;  // when the dtype is an integer or bool (u64 by its bits)

  bool holds_floats() const { return is_float(dtype) || is_packed(dtype); }
  int64_t num_elements() const;
  // The element as a double, whichever it is held as.
  double at(int64_t index) const;
  // Stores a value held as the dtype asks: integers wrap to their width, bool is nonzero.
  void set(int64_t index, double value);
  void set_integer(int64_t index, int64_t value);
};

// Zero-filled. Throws kUnsupported for complex dtypes.
ReferenceTensor make_reference_tensor(DType dtype, std::vector<int64_t> shape);

// From and to the dtype's own bytes, row-major. `to_bytes` rounds floats to the dtype (nearest
// even); it refuses packed dtypes, which have no encoder here.
ReferenceTensor reference_from_bytes(DType dtype, std::vector<int64_t> shape,
                                     std::span<const std::byte> bytes);
std::vector<std::byte> to_bytes(const ReferenceTensor& tensor);

// The value after a round trip through an integer dtype of fewer bits (wraps) or bool (nonzero is
// 1).
int64_t wrap_integer(DType dtype, int64_t value);
// The value rounded to what a float dtype can hold.
double round_float(DType dtype, double value);

}  // namespace rlx
