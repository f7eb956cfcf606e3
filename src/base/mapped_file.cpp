#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace rlx {

MappedFile::MappedFile(const std::string& path) : path_(path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    throw_error(errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo,
                "Cannot open the file '{}': {}.", path, std::strerror(errno));
  }
  struct stat info {};
  if (::fstat(descriptor, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(descriptor);
    throw_error(ErrorCode::kIo, "'{}' is not a regular file.", path);
  }
  size_bytes_ = info.st_size;
  if (size_bytes_ > 0) {
    void* mapping =
        ::mmap(nullptr, static_cast<size_t>(size_bytes_), PROT_READ, MAP_PRIVATE, descriptor, 0);
    const int map_error = errno;
    ::close(descriptor);
    if (mapping == MAP_FAILED) {
      throw_error(ErrorCode::kIo, "Cannot map the file '{}' of {} bytes: {}.", path, size_bytes_,
                  std::strerror(map_error));
    }
    data_ = static_cast<const std::byte*>(mapping);
  } else {
    ::close(descriptor);
  }
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), static_cast<size_t>(size_bytes_));
}

}  // namespace rlx
