// Writes GGUF files for tests: version 3, tensors of any dtype whose bytes the caller has.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/dtype.h"

namespace rlx::model_testing {

class GgufWriter {
 public:
  void add(std::string_view key, std::string_view value);
  void add(std::string_view key, const char* value) { add(key, std::string_view(value)); }
  void add(std::string_view key, uint32_t value);
  void add(std::string_view key, float value);
  void add(std::string_view key, bool value);
  void add(std::string_view key, const std::vector<bool>& values);
  // `shape` outermost first.
  void add_tensor(std::string_view name, DType dtype, const std::vector<int64_t>& shape,
                  std::string bytes);

  std::string finish() const;

 private:
  struct Tensor {
    std::string name;
    DType dtype;
    std::vector<int64_t> shape;
    std::string bytes;
  };

  void add_key(std::string_view key, uint32_t type);

  std::string metadata_;
  uint64_t num_keys_ = 0;
  std::vector<Tensor> tensors_;
};

}  // namespace rlx::model_testing
