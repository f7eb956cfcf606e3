// A folder that lives as long as the process, for readers that open files by name.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/error.h"

namespace rlx::fuzz {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "rlx_fuzz_XXXXXX").string();
    RLX_CHECK(mkdtemp(name.data()) != nullptr, "Cannot make the folder {}.", name);
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }

  // Writes a file of the folder anew and returns its path.
  std::string write(const std::string& name, const void* data, size_t size) const {
    const std::string path = path_ + "/" + name;
    // Removed first: a file that is mapped somewhere must not change under the map.
    std::filesystem::remove(path);
    std::ofstream file(path, std::ios::binary);
    file.write(static_cast<const char*>(data), static_cast<std::streamsize>(size));
    RLX_CHECK(file.good(), "Cannot write {}.", path);
    return path;
  }

 private:
  std::string path_;
};

}  // namespace rlx::fuzz
