#include "backends/cpu/target.h"

#include <unordered_map>

#include "backends/cpu/kernels/kernels.h"

namespace rlx::cpu {

std::optional<KernelChoice> CpuTarget::choose_kernel(const NodeQuery& query,
                                                     std::string* reasons) const {
  static const auto by_op = [] {
    std::unordered_map<std::string_view, std::vector<const Kernel*>> map;
    for (const Kernel* kernel : all_kernels()) map[kernel->op].push_back(kernel);
    return map;
  }();
  const auto found = by_op.find(query.op.name());
  if (found == by_op.end()) return std::nullopt;
  const KernelQuery kernel_query{query.op,
                                 query.inputs,
                                 query.layouts,
                                 query.outputs,
                                 query.symbols,
                                 options_.max_threads,
                                 options_.quantize_activations};
  for (const Kernel* kernel : found->second) {
    const std::string reason = kernel->reject != nullptr ? kernel->reject(kernel_query) : "";
    if (reason.empty()) {
      const int64_t scratch =
          kernel->scratch_bytes != nullptr ? kernel->scratch_bytes(kernel_query) : 0;
      return KernelChoice{std::string(kernel->name), scratch, kernel->may_alias_inputs};
    }
    if (reasons != nullptr) {
      *reasons += fmt::format("{}{}: {}", reasons->empty() ? "" : "; ", kernel->name, reason);
    }
  }
  return std::nullopt;
}

const Kernel* find_kernel(std::string_view name) {
  static const auto by_name = [] {
    std::unordered_map<std::string_view, const Kernel*> map;
    for (const Kernel* kernel : all_kernels()) {
      RLX_CHECK(map.emplace(kernel->name, kernel).second, "two kernels are named '{}'",
                kernel->name);
    }
    return map;
  }();
  const auto found = by_name.find(name);
  return found == by_name.end() ? nullptr : found->second;
}

}  // namespace rlx::cpu
