// Weights that a program uses as one tensor, but a safetensors folder holds in several: they are
// put together in memory, once per model file, before the first run. A plan counts their bytes as
// memory, because they are not in the mapped files. Two kinds exist:
//
//   bank    "a.experts.0.b", "a.experts.1.b", ... of one shape and dtype are also
//           "a.experts.*.b" [experts, ...]: what grouped_matmul chooses from.
//   mxfp4   "a_blocks" u8[..., n, blocks, 16] and "a_scales" u8[..., n, blocks] are also "a"
//           mxfp4[..., n, blocks * 32]: each scale joins its block, and the 4-bit elements, which
//           the folder keeps in pairs (0, 1), (2, 3), ..., go to pairs (0, 16), (1, 17), ...
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "program/weight_store.h"

namespace rlx {

class AssembledWeights {
 public:
  // A tensor of the folder. Info and bytes must outlive this object.
  struct Part {
    std::string name;
    const WeightInfo* info;
    std::span<const std::byte> bytes;
  };

  // Finds what can be assembled; reads no bytes. A group with a gap, or whose tensors differ in
  // shape or dtype, makes no bank.
  explicit AssembledWeights(std::vector<Part> parts);
  ~AssembledWeights();

  // Null when there is none.
  const WeightInfo* find(std::string_view name) const;
  // Assembles at the first call. The name must exist. Any thread may call.
  std::span<const std::byte> bytes(std::string_view name) const;

 private:
  struct Weight;

  void add_banks();
  void add_mxfp4_pairs();

  std::vector<Part> parts_;
  std::map<std::string, std::unique_ptr<Weight>, std::less<>> weights_;
  mutable std::mutex mutex_;
};

}  // namespace rlx
