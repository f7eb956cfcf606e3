// Matrix products in f32: any layout of the left side, and a right side of any float dtype, or of
// any packed format, which is decoded a small tile at a time. See matmul_dense.h for the order of
// additions.
#pragma once

#include <span>

#include "backends/cpu/kernel.h"

namespace rlx::cpu {

std::span<const Kernel> float_matmul_kernels();

}  // namespace rlx::cpu
