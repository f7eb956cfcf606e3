#include "frontends/npy/npy.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "base/checked.h"
#include "base/error.h"
#include "base/mapped_file.h"
#include "frontends/npy/npy_header.h"
#include "tensor/storage.h"

namespace rlx {
namespace {

static_assert(std::endian::native == std::endian::little,
              "Elements are copied as they lie, which needs a little-endian machine.");

constexpr std::string_view kMagic("\x93NUMPY", 6);
// Magic, two bytes of version, and the length of the header in two bytes or four.
constexpr size_t kPrefixBytes1 = 10;
constexpr size_t kPrefixBytes2 = 12;

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The bytes that a shape takes. The product fits even without its zeros, so that no one who
// multiplies some of the extents has to check again.
int64_t array_bytes(DType dtype, std::span<const int64_t> shape) {
  int64_t product = 1;
  bool is_empty = false;
  for (const int64_t extent : shape) {
    if (extent < 0) {
      throw_error(ErrorCode::kInvalidArgument, "An extent is {}, but expected at least 0.", extent);
    }
    is_empty = is_empty || extent == 0;
    product = checked_mul(product, std::max<int64_t>(extent, 1));
  }
  return is_empty ? 0 : storage_bytes(dtype, product);
}

NpyArray parse(std::span<const std::byte> bytes) {
  const auto need = [&](size_t count, const char* what) {
    if (bytes.size() < count) {
      throw_error(ErrorCode::kCorruptData, "The file has {} bytes, but {} ends at byte {}.",
                  bytes.size(), what, count);
    }
  };
  need(kMagic.size() + 2, "the version");
  if (as_text(bytes.first(kMagic.size())) != kMagic) {
    throw_error(ErrorCode::kCorruptData,
                "This is not a .npy file: it does not start with \\x93NUMPY.");
  }
  const int version = static_cast<int>(bytes[6]);
  if (version != 1 && version != 2) {
    throw_error(ErrorCode::kUnsupported, "The .npy version is {}.{}, but expected 1.0 or 2.0.",
                version, static_cast<int>(bytes[7]));
  }
  const size_t prefix_bytes = version == 1 ? kPrefixBytes1 : kPrefixBytes2;
  need(prefix_bytes, "the length of the header");
  uint32_t header_bytes = 0;
  std::memcpy(&header_bytes, bytes.data() + 8, prefix_bytes - 8);
  const size_t data_start = prefix_bytes + header_bytes;
  need(data_start, "the header");

  npy::Header header = npy::parse_header(as_text(bytes.subspan(prefix_bytes, header_bytes)));
  const int64_t size_bytes = array_bytes(header.dtype, header.shape);
  const auto data = bytes.subspan(data_start);
  if (size_bytes != static_cast<int64_t>(data.size())) {
    throw_error(ErrorCode::kCorruptData,
                "The shape and element type take {} bytes, but {} follow the header.", size_bytes,
                data.size());
  }
  NpyArray array{header.dtype, std::move(header.shape), {data.begin(), data.end()}};
  if (array.dtype == DType::kBool) {
    for (std::byte& element : array.data) element = std::byte{element != std::byte{0}};
  }
  return array;
}

// The magic, version, length and header, padded so that the data starts at a multiple of 64.
std::string make_prefix(DType dtype, std::span<const int64_t> shape) {
  const std::string header = npy::print_header(dtype, shape);
  const auto padded_bytes = [&](size_t prefix_bytes) {
    return static_cast<size_t>(
        align_up(static_cast<int64_t>(prefix_bytes + header.size() + 1), 64));
  };
  size_t prefix_bytes = kPrefixBytes1;
  if (padded_bytes(prefix_bytes) - prefix_bytes > 65535) prefix_bytes = kPrefixBytes2;
  const size_t total_bytes = padded_bytes(prefix_bytes);
  const auto header_bytes = static_cast<uint32_t>(total_bytes - prefix_bytes);

  std::string prefix(kMagic);
  prefix += prefix_bytes == kPrefixBytes1 ? '\1' : '\2';
  prefix += '\0';
  prefix.append(reinterpret_cast<const char*>(&header_bytes), prefix_bytes - 8);
  prefix += header;
  prefix.resize(total_bytes - 1, ' ');
  return prefix + '\n';
}

// Where the bytes go. A regular file is made beside its final place, and removed again unless it is
// published; a pipe or a device cannot be replaced, so it is opened itself.
class PendingFile {
 public:
  explicit PendingFile(const std::string& path) : path_(path) {
    struct stat status {};
    is_replaced_ = ::stat(path.c_str(), &status) != 0 || S_ISREG(status.st_mode);
    if (!is_replaced_) {
      descriptor_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
      if (descriptor_ < 0) fail("open");
      return;
    }
    static std::atomic<int> counter{0};
    pending_path_ = fmt::format("{}.{}.{}.tmp", path, ::getpid(), counter++);
    descriptor_ = ::open(pending_path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ < 0) fail("create");
  }
  ~PendingFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (is_replaced_ && !is_published_) ::unlink(pending_path_.c_str());
  }
  PendingFile(const PendingFile&) = delete;
  PendingFile& operator=(const PendingFile&) = delete;

  void write(std::string_view text) {
    while (!text.empty()) {
      const ssize_t written = ::write(descriptor_, text.data(), text.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail("write");
      text.remove_prefix(static_cast<size_t>(written));
    }
  }

  void publish() {
    if (is_replaced_ && ::fsync(descriptor_) != 0) fail("write");
    const int closed = ::close(descriptor_);
    descriptor_ = -1;
    if (closed != 0) fail("write");
    if (is_replaced_ && ::rename(pending_path_.c_str(), path_.c_str()) != 0) fail("rename");
    is_published_ = true;
  }

 private:
  // An exception from the constructor leaves nothing behind: there is no file yet.
  [[noreturn]] void fail(const char* action) const {
    const int error = errno;
    if (pending_path_.empty()) {
      throw_error(ErrorCode::kIo, "Cannot {} it: {}.", action, std::strerror(error));
    }
    throw_error(ErrorCode::kIo, "Cannot {} the file '{}': {}.", action, pending_path_,
                std::strerror(error));
  }

  std::string path_;
  std::string pending_path_;  // empty when nothing is replaced
  int descriptor_ = -1;
  bool is_replaced_ = true;
  bool is_published_ = false;
};

}  // namespace

NpyArray parse_npy(std::span<const std::byte> bytes, const std::string& name) {
  return with_context(name, [&] { return parse(bytes); });
}

NpyArray read_npy(const std::string& path) {
  const MappedFile file(path);
  return parse_npy(file.bytes(), path);
}

void write_npy(const std::string& path, DType dtype, std::span<const int64_t> shape,
               std::span<const std::byte> data) {
  with_context(path, [&] {
    const std::string prefix = make_prefix(dtype, shape);
    const int64_t expected_bytes = array_bytes(dtype, shape);
    if (static_cast<int64_t>(data.size()) != expected_bytes) {
      throw_error(ErrorCode::kInvalidArgument,
                  "The data has {} bytes, but the shape and element type take {}.", data.size(),
                  expected_bytes);
    }
    PendingFile file(path);
    file.write(prefix);
    file.write(as_text(data));
    file.publish();
  });
}

void write_npy(const std::string& path, const NpyArray& array) {
  write_npy(path, array.dtype, array.shape, array.data);
}

}  // namespace rlx
