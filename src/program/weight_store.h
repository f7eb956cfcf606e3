// Where a program's weights come from: tensors by name, with their place in a file. Describing
// reads headers only; `bytes` hands out the mapped file itself, so nothing is copied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/dtype.h"

namespace rlx {

struct WeightInfo {
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  std::string file;
  int64_t offset_bytes = 0;  // from the start of the file
  int64_t size_bytes = 0;
};

class WeightStore {
 public:
  virtual ~WeightStore() = default;

  virtual const WeightInfo* find(std::string_view name) const = 0;  // null when there is none
  virtual std::vector<std::string> list_names() const = 0;
  // The tensor's bytes, valid for the life of the store. The name must exist.
  virtual std::span<const std::byte> bytes(std::string_view name) const = 0;
};

}  // namespace rlx
