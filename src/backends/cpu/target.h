// The CPU as the compiler sees it: the list of kernels, and what they accept.
#pragma once

#include "backends/cpu/kernel.h"
#include "compiler/target.h"

namespace rlx::cpu {

struct TargetOptions {
  // The most threads that a session will run with; scratch is planned for them.
  int max_threads = 1;
  // Multiply packed weights by activations quantised to int8; false: by float activations.
  bool quantize_activations = true;
  // Plans as for a device whose largest allocation this is; a multiple of kPageBytes.
  int64_t max_block_bytes = kUnlimitedBlockBytes;
};

class CpuTarget final : public Target {
 public:
  explicit CpuTarget(const TargetOptions& options) : options_(options) {}

  std::string_view name() const override { return "cpu"; }
  // A cache line, and the widest vector.
  int64_t alignment_bytes() const override { return 64; }
  int64_t max_block_bytes() const override { return options_.max_block_bytes; }
  std::optional<KernelChoice> choose_kernel(const NodeQuery& query,
                                            std::string* reasons) const override;

  const TargetOptions& options() const { return options_; }

 private:
  TargetOptions options_;
};

// The kernel of that name; null when there is none.
const Kernel* find_kernel(std::string_view name);

}  // namespace rlx::cpu
