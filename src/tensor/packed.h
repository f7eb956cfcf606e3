// Packed block formats to f32 and back. Decoding is exact: every value is the f32 that the format
// defines, down to the order of the multiplications, so that results can be compared bit by bit.
// These are the plain loops that everything else is checked against; kernels have their own.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rlx/dtype.h"

namespace rlx {

// Writes the `elements` values of one packed row to `out`. Takes every packed format, and f32, f16
// and bf16. `packed` needs no alignment and holds storage_bytes(dtype, elements) bytes.
// Throws kInvalidArgument when `elements` does not fill whole blocks, kUnsupported for other
// dtypes.
void decode_row(DType dtype, const std::byte* packed, int64_t elements, float* out);

// The reverse, for q8_0, q4_0, f32, f16 and bf16; other dtypes throw kUnsupported. q8_0 and q4_0
// round as ggml's reference does, so the bytes are the same. They have no infinities: a value that
// is not finite, or too large for the f16 scale of its block, throws kOutOfRange with its index.
void encode_row(DType dtype, const float* values, int64_t elements, std::byte* packed);

}  // namespace rlx
