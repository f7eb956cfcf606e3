#include "ops/reference_loops.h"

#include <cmath>
#include <limits>

#include "base/error.h"

namespace rlx {

int64_t saturate_to_integer(DType dtype, double value) {
  if (std::isnan(value)) return 0;
  if (dtype == DType::kBool) return value != 0;
  value = std::trunc(value);
  if (dtype == DType::kU64) {
    if (value <= 0) return 0;
    if (value >= 0x1p64) return -1;  // all bits set
    return static_cast<int64_t>(static_cast<uint64_t>(value));
  }
  const int bits = static_cast<int>(bytes_per_block(dtype)) * 8;
  const bool is_unsigned = dtype >= DType::kU64 && dtype <= DType::kU8;
  const double end = std::ldexp(1.0, is_unsigned ? bits : bits - 1);
  if (value >= end) {
    if (bits == 64) return std::numeric_limits<int64_t>::max();
    return static_cast<int64_t>(end) - 1;
  }
  const double low = is_unsigned ? 0 : -end;
  return static_cast<int64_t>(value < low ? low : value);
}

void convert_element(const ReferenceTensor& from, int64_t from_index, ReferenceTensor& to,
                     int64_t to_index) {
  if (from.holds_floats()) {
    if (to.holds_floats()) {
      to.floats[to_index] = round_float(to.dtype, from.floats[from_index]);
    } else if (to.dtype == DType::kBool) {
      to.integers[to_index] = from.floats[from_index] != 0;
    } else {
      to.integers[to_index] = saturate_to_integer(to.dtype, from.floats[from_index]);
    }
  } else if (to.holds_floats()) {
    // Straight to float, since a way over double would round twice.
    const int64_t value = from.integers[from_index];
    if (to.dtype == DType::kF64) {
      to.floats[to_index] = from.at(from_index);
    } else {
      const float narrow = from.dtype == DType::kU64
                               ? static_cast<float>(static_cast<uint64_t>(value))
                               : static_cast<float>(value);
      to.floats[to_index] = round_float(to.dtype, narrow);
    }
  } else {
    to.set_integer(to_index, from.integers[from_index]);
  }
}

int64_t resolve_id(const char* op_name, int64_t id, int64_t extent) {
  if (id < -extent || id >= extent) {
    throw_error(ErrorCode::kOutOfRange,
                "{} meets the id {}, but the axis has {} elements: {} to {} are expected.", op_name,
                id, extent, -extent, extent - 1);
  }
  return id < 0 ? id + extent : id;
}

}  // namespace rlx
