// Matrix products that no model's hot path has: f64, and integers that wrap. Plain loops in the
// dtype itself.
#pragma once

#include <span>

#include "backends/cpu/kernel.h"

namespace rlx::cpu {

std::span<const Kernel> plain_matmul_kernels();

}  // namespace rlx::cpu
