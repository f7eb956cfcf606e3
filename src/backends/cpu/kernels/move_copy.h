// Copies between views with any strides, shared by the kernels that only move elements.
#pragma once

#include <cstdint>

#include "tensor/shape.h"

namespace rlx::cpu {

// Below this many bytes one thread does all the work.
inline constexpr int64_t kMinBytesToSplit = 32768;

// This thread's share of to[i...] = from[i...]. Same extents and dtype (unpacked); strides are
// arbitrary (a stride of 0 in `from` repeats), and the two do not overlap.
void copy_view(const TensorView& to, const TensorView& from, int thread, int num_threads);

// The same with a conversion between real, unpacked dtypes, as find_tile_store rounds. f64 and
// 64-bit integers pass through the type that holds `from` exactly.
void convert_view(const TensorView& to, const TensorView& from, int thread, int num_threads);

// Writes n copies of the element at `value` (element_bytes of 1, 2, 4, 8 or 16).
void fill_elements(std::byte* to, const std::byte* value, int64_t element_bytes, int64_t n);

}  // namespace rlx::cpu
