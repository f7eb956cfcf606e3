// The products in search order: packed weights by quantised activations, floats, the rest.
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/matmul_float.h"
#include "backends/cpu/kernels/matmul_packed.h"
#include "backends/cpu/kernels/matmul_plain.h"

namespace rlx::cpu {

std::span<const Kernel> matmul_kernels() {
  static const std::vector<Kernel> kernels = [] {
    std::vector<Kernel> list;
    for (const std::span<const Kernel> part :
         {packed_matmul_kernels(), float_matmul_kernels(), plain_matmul_kernels()}) {
      list.insert(list.end(), part.begin(), part.end());
    }
    return list;
  }();
  return kernels;
}

}  // namespace rlx::cpu
