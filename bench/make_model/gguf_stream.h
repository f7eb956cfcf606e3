// Writes a GGUF file (version 3) whose tensors are larger than memory should hold: the header is
// made whole from names and shapes, then the data goes to the file piece by piece in the order in
// which the tensors were declared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/dtype.h"

namespace rlx::bench {

class GgufStream {
 public:
  // Metadata; each key once.
  void add(std::string_view key, std::string_view value);
  void add(std::string_view key, const char* value) { add(key, std::string_view(value)); }
  void add(std::string_view key, uint32_t value);
  void add(std::string_view key, float value);
  void add(std::string_view key, bool value);
  void add(std::string_view key, std::span<const std::string> values);
  void add(std::string_view key, std::span<const int32_t> values);

  // `shape` outermost first. Throws kUnsupported for an element type that GGUF does not have.
  void declare_tensor(std::string_view name, DType dtype, std::span<const int64_t> shape);

  // Writes the header to a new file. Then `append` takes all data in order: `end_tensor` pads to
  // the alignment after each tensor, and `close` ends the file. Throw kIo naming the path.
  void open(const std::string& path);
  void append(std::span<const std::byte> bytes);
  void end_tensor();
  void close();

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  void add_key(std::string_view key, uint32_t type);
  [[noreturn]] void fail() const;

  std::string metadata_, tensors_;
  uint64_t num_keys_ = 0, num_tensors_ = 0;
  uint64_t next_offset_bytes_ = 0;  // of the next declared tensor, within the data
  uint64_t written_bytes_ = 0;
  std::string path_;
  std::unique_ptr<std::FILE, CloseFile> file_;
};

}  // namespace rlx::bench
