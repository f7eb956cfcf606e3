#include "api/state_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/error.h"

namespace rlx {
namespace {

static_assert(std::endian::native == std::endian::little, "state files are little endian");

constexpr char kMagic[] = "RLXSTATE";
constexpr uint32_t kVersion = 1;
constexpr size_t kHeaderChecksumAt = 24;
constexpr size_t kDescriptionAt = 40;
constexpr size_t kAlignment = 64;

size_t align(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

class Writer {
 public:
  template <typename T>
  void add(T value) {
    const auto* begin = reinterpret_cast<const std::byte*>(&value);
    bytes.insert(bytes.end(), begin, begin + sizeof(T));
  }
  void add(const std::string& text) {
    add(static_cast<uint32_t>(text.size()));
    const auto* begin = reinterpret_cast<const std::byte*>(text.data());
    bytes.insert(bytes.end(), begin, begin + text.size());
  }
  template <typename T>
  void set(size_t at, T value) {
    std::memcpy(bytes.data() + at, &value, sizeof(T));
  }
  std::vector<std::byte> bytes;
};

// Reads the header, which is whole: its checksum fits. What it says is still checked, for a file
// may be made by a program with other ideas.
class Reader {
 public:
  Reader(std::span<const std::byte> bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  template <typename T>
  T take() {
    T value;
    std::memcpy(&value, take_bytes(sizeof(T)).data(), sizeof(T));
    return value;
  }
  std::string take_string() {
    const auto bytes = take_bytes(take<uint32_t>());
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  std::span<const std::byte> take_bytes(size_t count) {
    if (count > bytes_.size() - at_) fail();
    at_ += count;
    return bytes_.subspan(at_ - count, count);
  }
  size_t bytes_left() const { return bytes_.size() - at_; }
  [[noreturn]] void fail() const {
    throw_error(ErrorCode::kCorruptData, "{}: The header of the state contradicts itself.", name_);
  }

 private:
  std::span<const std::byte> bytes_;
  const std::string& name_;
  size_t at_ = kDescriptionAt;
};

uint64_t header_checksum(std::span<const std::byte> header) {
  return checksum(header.subspan(kHeaderChecksumAt + 8), checksum(header.first(kHeaderChecksumAt)));
}

std::vector<std::byte> make_header(const StateFile& state) {
  Writer writer;
  writer.bytes.resize(kDescriptionAt);
  writer.add(state.fingerprint);
  writer.add(state.architecture);
  writer.add(state.computing);
  writer.add(state.num_written);
  writer.add(static_cast<uint32_t>(state.places.size()));
  for (const StatePlace& place : state.places) {
    writer.add(place.name);
    writer.add(place.dtype);
    writer.add(static_cast<uint32_t>(place.shape.size()));
    for (const int64_t extent : place.shape) writer.add(extent);
    writer.add(static_cast<uint64_t>(place.bytes.size()));
  }
  writer.add(static_cast<uint32_t>(state.tokens.size()));
  for (const int32_t token : state.tokens) writer.add(token);
  writer.bytes.resize(align(writer.bytes.size()));

  uint64_t file_bytes = writer.bytes.size();
  uint64_t payload_checksum = 0;
  for (const StatePlace& place : state.places) {
    file_bytes += align(place.bytes.size());
    payload_checksum = checksum(place.bytes, payload_checksum);
  }
  std::memcpy(writer.bytes.data(), kMagic, 8);
  writer.set(8, kVersion);
  writer.set(12, static_cast<uint32_t>(writer.bytes.size()));
  writer.set(16, file_bytes);
  writer.set(32, payload_checksum);
  writer.set(kHeaderChecksumAt, header_checksum(writer.bytes));
  return std::move(writer.bytes);
}

// A file that replaces another one only when it is whole and on the disk.
class NewFile {
 public:
  explicit NewFile(const std::string& path)
      : path_(path), temporary_(path + ".part"), file_(std::fopen(temporary_.c_str(), "wb")) {
    if (file_ == nullptr) fail();
  }
  ~NewFile() {
    if (file_ == nullptr) return;
    std::fclose(file_);
    std::remove(temporary_.c_str());
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void write(std::span<const std::byte> bytes) {
    if (bytes.empty()) return;
    if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) fail();
  }
  void finish() {
    if (std::fflush(file_) != 0 || fsync(fileno(file_)) != 0) fail();
    const bool closed = std::fclose(std::exchange(file_, nullptr)) == 0;
    if (closed && std::rename(temporary_.c_str(), path_.c_str()) == 0) return;
    const int cause = errno;
    std::remove(temporary_.c_str());
    errno = cause;
    fail();
  }

 private:
  [[noreturn]] void fail() const {
    throw_error(ErrorCode::kIo, "Cannot write the file '{}': {}.", path_, std::strerror(errno));
  }

  const std::string path_, temporary_;
  std::FILE* file_;
};

}  // namespace

uint64_t checksum(std::span<const std::byte> bytes, uint64_t before) {
  // Each step can be undone, so no difference is lost on the way; the odd constant is the one of
  // SplitMix64.
  constexpr uint64_t kOdd = 0x9E3779B97F4A7C15u;
  uint64_t hash = before ^ (bytes.size() * kOdd);
  const auto mix = [&](uint64_t word) {
    hash = (hash ^ word) * kOdd;
    hash ^= hash >> 32;
  };
  size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) {
    uint64_t word;
    std::memcpy(&word, bytes.data() + at, 8);
    mix(word);
  }
  uint64_t last = 0;
  if (at < bytes.size()) std::memcpy(&last, bytes.data() + at, bytes.size() - at);
  mix(last);
  return hash;
}

void write_state_file(const std::string& path, const StateFile& state) {
  const std::vector<std::byte> header = make_header(state);
  NewFile file(path);
  file.write(header);
  constexpr std::byte kZeros[kAlignment] = {};
  for (const StatePlace& place : state.places) {
    file.write(place.bytes);
    file.write(std::span(kZeros).first(align(place.bytes.size()) - place.bytes.size()));
  }
  file.finish();
}

StateFile parse_state_file(std::span<const std::byte> bytes, const std::string& name) {
  if (bytes.size() < 8 || std::memcmp(bytes.data(), kMagic, 8) != 0) {
    throw_error(ErrorCode::kCorruptData, "{}: The file is not a saved state.", name);
  }
  const auto fail_cut = [&](uint64_t expected) {
    throw_error(ErrorCode::kCorruptData,
                "{}: The file has {} bytes, but a whole one has {}: it is cut or damaged.", name,
                bytes.size(), expected);
  };
  if (bytes.size() < kDescriptionAt) fail_cut(kDescriptionAt);
  uint32_t version, header_bytes;
  uint64_t file_bytes, own_checksum, payload_checksum;
  std::memcpy(&version, bytes.data() + 8, 4);
  std::memcpy(&header_bytes, bytes.data() + 12, 4);
  std::memcpy(&file_bytes, bytes.data() + 16, 8);
  std::memcpy(&own_checksum, bytes.data() + kHeaderChecksumAt, 8);
  std::memcpy(&payload_checksum, bytes.data() + 32, 8);
  if (version != kVersion) {
    throw_error(ErrorCode::kUnsupported,
                "{}: The state has version {}, but this build reads version {}.", name, version,
                kVersion);
  }
  if (file_bytes != bytes.size()) fail_cut(file_bytes);
  if (header_bytes < kDescriptionAt || header_bytes > bytes.size()) fail_cut(header_bytes);
  const std::span<const std::byte> header = bytes.first(header_bytes);
  if (header_checksum(header) != own_checksum) {
    throw_error(ErrorCode::kCorruptData, "{}: The header of the state is damaged.", name);
  }

  StateFile state;
  Reader reader(header, name);
  state.fingerprint = reader.take<uint64_t>();
  state.architecture = reader.take_string();
  state.computing = reader.take_string();
  state.num_written = reader.take<int64_t>();
  const auto num_places = reader.take<uint32_t>();
  size_t at = header_bytes;
  uint64_t found_checksum = 0;
  for (uint32_t i = 0; i < num_places; ++i) {
    StatePlace place;
    place.name = reader.take_string();
    place.dtype = reader.take_string();
    const auto rank = reader.take<uint32_t>();
    if (rank > reader.bytes_left() / 8) reader.fail();
    for (uint32_t k = 0; k < rank; ++k) place.shape.push_back(reader.take<int64_t>());
    const auto size = reader.take<uint64_t>();
    if (size > bytes.size() - at || align(size) > bytes.size() - at) reader.fail();
    place.bytes = bytes.subspan(at, size);
    at += align(size);
    found_checksum = checksum(place.bytes, found_checksum);
    state.places.push_back(std::move(place));
  }
  const auto num_tokens = reader.take<uint32_t>();
  if (num_tokens > reader.bytes_left() / 4) reader.fail();
  for (uint32_t i = 0; i < num_tokens; ++i) state.tokens.push_back(reader.take<int32_t>());
  if (at != bytes.size() || state.num_written < static_cast<int64_t>(num_tokens)) reader.fail();
  if (found_checksum != payload_checksum) {
    throw_error(ErrorCode::kCorruptData, "{}: The cache of the state is damaged.", name);
  }
  return state;
}

}  // namespace rlx
