#include "gguf_stream.h"

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "tensor/storage.h"

namespace rlx::bench {
namespace {

constexpr uint64_t kAlignment = 32;

// The format's numbers for the types of metadata values.
enum ValueType : uint32_t { kU32 = 4, kI32 = 5, kF32 = 6, kBool = 7, kString = 8, kArray = 9 };

template <typename T>
void append_value(std::string& out, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out.append(bytes, sizeof(T));
}

void append_string(std::string& out, std::string_view text) {
  append_value(out, static_cast<uint64_t>(text.size()));
  out += text;
}

uint64_t round_up(uint64_t value) { return (value + kAlignment - 1) / kAlignment * kAlignment; }

// The format's numbers for element types.
uint32_t type_number(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return 0;
    case DType::kF16:
      return 1;
    case DType::kQ4_0:
      return 2;
    case DType::kQ4_1:
      return 3;
    case DType::kQ5_0:
      return 6;
    case DType::kQ5_1:
      return 7;
    case DType::kQ8_0:
      return 8;
    case DType::kQ2_K:
      return 10;
    case DType::kQ3_K:
      return 11;
    case DType::kQ4_K:
      return 12;
    case DType::kQ5_K:
      return 13;
    case DType::kQ6_K:
      return 14;
    case DType::kIQ4_NL:
      return 20;
    case DType::kIQ4_XS:
      return 23;
    case DType::kBF16:
      return 30;
    case DType::kMXFP4:
      return 39;
    default:
      throw_error(ErrorCode::kUnsupported, "Tensors of {} are not written.", to_string(dtype));
  }
}

}  // namespace

void GgufStream::add_key(std::string_view key, uint32_t type) {
  append_string(metadata_, key);
  append_value(metadata_, type);
  ++num_keys_;
}

void GgufStream::add(std::string_view key, std::string_view value) {
  add_key(key, kString);
  append_string(metadata_, value);
}

void GgufStream::add(std::string_view key, uint32_t value) {
  add_key(key, kU32);
  append_value(metadata_, value);
}

void GgufStream::add(std::string_view key, float value) {
  add_key(key, kF32);
  append_value(metadata_, value);
}

void GgufStream::add(std::string_view key, bool value) {
  add_key(key, kBool);
  append_value(metadata_, static_cast<uint8_t>(value));
}

void GgufStream::add(std::string_view key, std::span<const std::string> values) {
  add_key(key, kArray);
  append_value(metadata_, uint32_t{kString});
  append_value(metadata_, static_cast<uint64_t>(values.size()));
  for (const std::string& value : values) append_string(metadata_, value);
}

void GgufStream::add(std::string_view key, std::span<const int32_t> values) {
  add_key(key, kArray);
  append_value(metadata_, uint32_t{kI32});
  append_value(metadata_, static_cast<uint64_t>(values.size()));
  for (const int32_t value : values) append_value(metadata_, value);
}

void GgufStream::declare_tensor(std::string_view name, DType dtype,
                                std::span<const int64_t> shape) {
  append_string(tensors_, name);
  append_value(tensors_, static_cast<uint32_t>(shape.size()));
  int64_t elements = 1;
  for (size_t axis = shape.size(); axis > 0; --axis) {
    append_value(tensors_, static_cast<uint64_t>(shape[axis - 1]));
    elements *= shape[axis - 1];
  }
  append_value(tensors_, type_number(dtype));
  append_value(tensors_, next_offset_bytes_);
  next_offset_bytes_ += round_up(static_cast<uint64_t>(storage_bytes(dtype, elements)));
  ++num_tensors_;
}

void GgufStream::open(const std::string& path) {
  path_ = path;
  file_.reset(std::fopen(path.c_str(), "wb"));
  if (file_ == nullptr) fail();
  std::string header = "GGUF";
  append_value(header, uint32_t{3});
  append_value(header, num_tensors_);
  append_value(header, num_keys_);
  header += metadata_;
  header += tensors_;
  append(std::as_bytes(std::span(header)));
  end_tensor();
}

void GgufStream::append(std::span<const std::byte> bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size()) fail();
  written_bytes_ += bytes.size();
}

void GgufStream::end_tensor() {
  constexpr std::byte kZeros[kAlignment] = {};
  append(std::span(kZeros).first(round_up(written_bytes_) - written_bytes_));
}

void GgufStream::close() {
  if (std::fclose(file_.release()) != 0) fail();
}

void GgufStream::fail() const {
  throw_error(ErrorCode::kIo, "Cannot write the file '{}': {}.", path_, std::strerror(errno));
}

}  // namespace rlx::bench
