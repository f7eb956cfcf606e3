// A file mapped read-only into memory. Weights are used straight from here: the pages belong to the
// file, so loading copies nothing and two programs share one copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace rlx {

class MappedFile {
 public:
  // Maps the whole file. Throws kNotFound or kIo naming the path; an empty file maps to no bytes.
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::string& path() const { return path_; }
  std::span<const std::byte> bytes() const { return {data_, static_cast<size_t>(size_bytes_)}; }
  int64_t size_bytes() const { return size_bytes_; }

 private:
  std::string path_;
  const std::byte* data_ = nullptr;
  int64_t size_bytes_ = 0;
};

}  // namespace rlx
