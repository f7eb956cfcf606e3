#include "backends/cpu/kernels/kernels.h"

namespace rlx::cpu {

const std::vector<const Kernel*>& all_kernels() {
  static const std::vector<const Kernel*> kernels = [] {
    std::vector<const Kernel*> list;
    for (std::span<const Kernel> part :
         {attention_kernels(), cache_kernels(), elementwise_kernels(), matmul_kernels(),
          move_kernels(), norm_kernels(), reduce_kernels(), sort_kernels()}) {
      for (const Kernel& kernel : part) list.push_back(&kernel);
    }
    return list;
  }();
  return kernels;
}

}  // namespace rlx::cpu
