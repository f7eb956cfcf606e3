// Matrix products with packed weights and activations quantised to int8 in blocks of 32; see
// packed_dot.h for the arithmetic. Few rows multiply the weight as it lies; many rows share strips
// of it that are unpacked into the cache.
#pragma once

#include <span>

#include "backends/cpu/kernel.h"

namespace rlx::cpu {

std::span<const Kernel> packed_matmul_kernels();

}  // namespace rlx::cpu
