// What a backend can do, as far as the compiler needs to know. A backend's compile side implements
// it; compiling for a device needs no device.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ir/op.h"
#include "tensor/shape.h"

namespace rlx {

// A node as the compiler offers it: types, and where the inputs' elements lie. Outputs are
// contiguous.
struct NodeQuery {
  const Op& op;
  std::span<const TensorType> inputs;
  std::span<const Layout> layouts;
  std::span<const TensorType> outputs;
  const SymbolTable& symbols;
};

struct KernelChoice {
  std::string kernel;
  int64_t scratch_bytes = 0;
  // Bit i: output 0 may take over the bytes of input i when that input dies at this step.
  uint32_t may_alias_inputs = 0;
};

// Segments and blocks begin at page boundaries.
inline constexpr int64_t kPageBytes = 4096;
inline constexpr int64_t kUnlimitedBlockBytes = int64_t{1} << 62;

class Target {
 public:
  virtual ~Target() = default;

  virtual std::string_view name() const = 0;
  // Every value starts at a multiple of this many bytes.
  virtual int64_t alignment_bytes() const = 0;
  // The largest allocation; a segment that is larger is planned as several blocks. A multiple of
  // kPageBytes.
  virtual int64_t max_block_bytes() const { return kUnlimitedBlockBytes; }
  // The first kernel that accepts the node; when there is none, nullopt, and `reasons` (when given)
  // says why each candidate declined.
  virtual std::optional<KernelChoice> choose_kernel(const NodeQuery& query,
                                                    std::string* reasons) const = 0;
};

}  // namespace rlx
