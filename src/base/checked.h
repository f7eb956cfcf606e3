// Arithmetic on sizes that may come from a file: every overflow is an error, never a wrap.
#pragma once

#include <cstdint>

#include "base/error.h"

namespace rlx {

inline int64_t checked_add(int64_t a, int64_t b) {
  int64_t result;
  if (__builtin_add_overflow(a, b, &result)) {
    throw_error(ErrorCode::kOutOfRange, "The sum {} + {} does not fit in 64 bits.", a, b);
  }
  return result;
}

inline int64_t checked_mul(int64_t a, int64_t b) {
  int64_t result;
  if (__builtin_mul_overflow(a, b, &result)) {
    throw_error(ErrorCode::kOutOfRange, "The product {} * {} does not fit in 64 bits.", a, b);
  }
  return result;
}

// The least multiple of `alignment` (a power of two) that is at least `value`.
inline int64_t align_up(int64_t value, int64_t alignment) {
  return checked_add(value, alignment - 1) & ~(alignment - 1);
}

}  // namespace rlx
