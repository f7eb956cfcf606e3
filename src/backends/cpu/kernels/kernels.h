// Every CPU kernel: one list per file of this folder. The compiler searches all_kernels() in order,
// so that within an op the fastest comes first.
#pragma once

#include <span>
#include <vector>

#include "backends/cpu/kernel.h"

namespace rlx::cpu {

std::span<const Kernel> attention_kernels();
std::span<const Kernel> cache_kernels();
std::span<const Kernel> elementwise_kernels();
std::span<const Kernel> matmul_kernels();
std::span<const Kernel> move_kernels();
std::span<const Kernel> norm_kernels();
std::span<const Kernel> reduce_kernels();
std::span<const Kernel> sort_kernels();

// All of the above, in search order.
const std::vector<const Kernel*>& all_kernels();

}  // namespace rlx::cpu
