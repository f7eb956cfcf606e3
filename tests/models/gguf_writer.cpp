#include "gguf_writer.h"

#include <cstring>

#include "base/error.h"

namespace rlx::model_testing {
namespace {

constexpr size_t kAlignment = 32;

template <typename T>
void append(std::string& out, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out.append(bytes, sizeof(T));
}

void append_string(std::string& out, std::string_view text) {
  append(out, static_cast<uint64_t>(text.size()));
  out += text;
}

void align(std::string& out) {
  out.resize((out.size() + kAlignment - 1) / kAlignment * kAlignment);
}

// The format's numbers for the types that these tests write.
uint32_t type_number(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return 0;
    case DType::kF16:
      return 1;
    case DType::kMXFP4:
      return 39;
    default:
      throw_error(ErrorCode::kUnsupported, "Tests write no {} tensors.", to_string(dtype));
  }
}

}  // namespace

void GgufWriter::add_key(std::string_view key, uint32_t type) {
  append_string(metadata_, key);
  append(metadata_, type);
  ++num_keys_;
}

void GgufWriter::add(std::string_view key, std::string_view value) {
  add_key(key, 8);
  append_string(metadata_, value);
}

void GgufWriter::add(std::string_view key, uint32_t value) {
  add_key(key, 4);
  append(metadata_, value);
}

void GgufWriter::add(std::string_view key, float value) {
  add_key(key, 6);
  append(metadata_, value);
}

void GgufWriter::add(std::string_view key, bool value) {
  add_key(key, 7);
  append(metadata_, static_cast<uint8_t>(value));
}

void GgufWriter::add(std::string_view key, const std::vector<bool>& values) {
  add_key(key, 9);
  append(metadata_, uint32_t{7});
  append(metadata_, static_cast<uint64_t>(values.size()));
  for (bool value : values) append(metadata_, static_cast<uint8_t>(value));
}

void GgufWriter::add_tensor(std::string_view name, DType dtype, const std::vector<int64_t>& shape,
                            std::string bytes) {
  tensors_.push_back({std::string(name), dtype, shape, std::move(bytes)});
}

std::string GgufWriter::finish() const {
  std::string out = "GGUF";
  append(out, uint32_t{3});
  append(out, static_cast<uint64_t>(tensors_.size()));
  append(out, num_keys_);
  out += metadata_;
  size_t offset = 0;
  for (const Tensor& tensor : tensors_) {
    append_string(out, tensor.name);
    append(out, static_cast<uint32_t>(tensor.shape.size()));
    for (size_t axis = tensor.shape.size(); axis > 0; --axis) {
      append(out, static_cast<uint64_t>(tensor.shape[axis - 1]));
    }
    append(out, type_number(tensor.dtype));
    append(out, static_cast<uint64_t>(offset));
    offset += (tensor.bytes.size() + kAlignment - 1) / kAlignment * kAlignment;
  }
  align(out);
  for (const Tensor& tensor : tensors_) {
    out += tensor.bytes;
    align(out);
  }
  return out;
}

}  // namespace rlx::model_testing
