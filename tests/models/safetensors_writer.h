// Reads a safetensors file into memory and writes it again, so that a test can change a tensor.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "rlx/dtype.h"

namespace rlx::model_testing {

struct StoredTensor {
  DType dtype;
  std::vector<int64_t> shape;
  std::string bytes;
};

using StoredTensors = std::map<std::string, StoredTensor>;

StoredTensors read_safetensors(const std::string& path);
// The file's content. f32, f16, i64 and u8 tensors only.
std::string make_safetensors(const StoredTensors& tensors);

}  // namespace rlx::model_testing
