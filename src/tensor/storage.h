// How many bytes the elements of a dtype take when they lie side by side. Every size in the project
// comes from here, because a packed dtype stores whole blocks and has no bytes per element.
#pragma once

#include <cstdint>

#include "rlx/dtype.h"

namespace rlx {

// The bytes that `elements` contiguous elements take. Throws kInvalidArgument when `elements` is
// negative or does not fill whole blocks, and kOutOfRange when the size does not fit in 64 bits.
// The blocks of a packed tensor run along its innermost dimension: pass one row, then multiply.
int64_t storage_bytes(DType dtype, int64_t elements);

}  // namespace rlx
