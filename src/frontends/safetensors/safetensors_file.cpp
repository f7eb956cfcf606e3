#include "frontends/safetensors/safetensors_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "base/checked.h"
#include "base/error.h"
#include "base/printable_text.h"
#include "frontends/safetensors/safetensors_header.h"
#include "tensor/storage.h"

namespace rlx {
namespace {

using safetensors::Header;
using safetensors::HeaderEntry;

static_assert(std::endian::native == std::endian::little,
              "Data is used as it lies in the file, which needs a little-endian machine.");

// The bound of the reference implementation.
constexpr uint64_t kMaxHeaderBytes = 100'000'000;

struct NamedDType {
  std::string_view name;
  DType dtype;
};

constexpr std::array kDTypes = {
    NamedDType{"F64", DType::kF64},   NamedDType{"F32", DType::kF32},
    NamedDType{"F16", DType::kF16},   NamedDType{"BF16", DType::kBF16},
    NamedDType{"I64", DType::kI64},   NamedDType{"I32", DType::kI32},
    NamedDType{"I16", DType::kI16},   NamedDType{"I8", DType::kI8},
    NamedDType{"U64", DType::kU64},   NamedDType{"U32", DType::kU32},
    NamedDType{"U16", DType::kU16},   NamedDType{"U8", DType::kU8},
    NamedDType{"BOOL", DType::kBool}, NamedDType{"C64", DType::kC64},
};

std::optional<DType> find_dtype(std::string_view name) {
  for (const NamedDType& candidate : kDTypes) {
    if (candidate.name == name) return candidate.dtype;
  }
  return std::nullopt;
}

std::span<const std::byte> header_text(std::span<const std::byte> bytes) {
  uint64_t header_bytes = 0;
  if (bytes.size() < sizeof(header_bytes)) {
    throw_error(ErrorCode::kCorruptData,
                "The file has {} bytes, but expected at least 8 for the length of the header.",
                bytes.size());
  }
  std::memcpy(&header_bytes, bytes.data(), sizeof(header_bytes));
  const size_t left = bytes.size() - sizeof(header_bytes);
  if (header_bytes > left || header_bytes > kMaxHeaderBytes) {
    throw_error(
        ErrorCode::kCorruptData,
        "The header claims {} bytes, but expected at most {} (the rest of the file) and {}.",
        header_bytes, left, kMaxHeaderBytes);
  }
  const auto text = bytes.subspan(sizeof(header_bytes), static_cast<size_t>(header_bytes));
  if (text.empty() || static_cast<char>(text[0]) != '{') {
    throw_error(ErrorCode::kCorruptData, "The header does not start with '{{'.");
  }
  return text;
}

// The tensors lie end to end, from the first byte of the data to the last.
void check_coverage(std::vector<HeaderEntry>& entries, int64_t data_bytes) {
  std::sort(entries.begin(), entries.end(), [](const HeaderEntry& a, const HeaderEntry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  int64_t expected = 0;
  for (const HeaderEntry& entry : entries) {
    if (entry.begin != expected || entry.end < entry.begin) {
      throw_error(ErrorCode::kCorruptData,
                  "Tensor {} takes the bytes {} to {} of the data, but expected it to start at {}, "
                  "where the one before ends.",
                  printable_text(entry.name), entry.begin, entry.end, expected);
    }
    expected = entry.end;
    if (expected > data_bytes) {
      throw_error(ErrorCode::kCorruptData,
                  "Tensor {} ends at byte {} of the data, but the file holds {} bytes of data.",
                  printable_text(entry.name), expected, data_bytes);
    }
  }
  if (expected != data_bytes) {
    throw_error(ErrorCode::kCorruptData,
                "The tensors end at byte {} of the data, but the file holds {} bytes of data.",
                expected, data_bytes);
  }
}

void check_unique_names(const std::vector<HeaderEntry>& entries) {
  std::vector<std::string_view> names;
  names.reserve(entries.size());
  for (const HeaderEntry& entry : entries) names.push_back(entry.name);
  std::sort(names.begin(), names.end());
  const auto twin = std::adjacent_find(names.begin(), names.end());
  if (twin != names.end()) {
    throw_error(ErrorCode::kCorruptData, "The tensor {} appears twice.", printable_text(*twin));
  }
}

SafetensorsTensor make_tensor(HeaderEntry& entry, DType dtype, int64_t data_start) {
  SafetensorsTensor tensor;
  with_context("tensor " + printable_text(entry.name), [&] {
    int64_t elements = 1;
    bool is_empty = false;
    // The product fits even without its zeros, so that no one who multiplies some of the extents
    // has to check again.
    for (const int64_t extent : entry.shape) {
      is_empty = is_empty || extent == 0;
      elements = checked_mul(elements, std::max<int64_t>(extent, 1));
    }
    tensor.size_bytes = is_empty ? 0 : storage_bytes(dtype, elements);
    if (tensor.size_bytes != entry.end - entry.begin) {
      throw_error(ErrorCode::kCorruptData,
                  "Its shape and dtype {} take {} bytes, but its data_offsets span {}.",
                  entry.dtype_name, tensor.size_bytes, entry.end - entry.begin);
    }
  });
  tensor.name = std::move(entry.name);
  tensor.dtype = dtype;
  tensor.shape = std::move(entry.shape);
  tensor.offset_bytes = data_start + entry.begin;
  return tensor;
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::string& path)
    : file_(std::make_shared<const MappedFile>(path)), bytes_(file_->bytes()), path_(path) {
  with_context(path_, [&] { read_header(); });
}

SafetensorsFile SafetensorsFile::from_bytes(std::span<const std::byte> bytes,
                                            const std::string& name) {
  SafetensorsFile file;
  file.bytes_ = bytes;
  file.path_ = name;
  with_context(name, [&] { file.read_header(); });
  return file;
}

void SafetensorsFile::read_header() {
  const auto text = header_text(bytes_);
  const auto data_start = static_cast<int64_t>(sizeof(uint64_t) + text.size());
  Header header = safetensors::parse_header(text);
  metadata_ = std::move(header.metadata);

  check_unique_names(header.entries);
  check_coverage(header.entries, static_cast<int64_t>(bytes_.size()) - data_start);
  for (HeaderEntry& entry : header.entries) {
    if (const std::optional<DType> dtype = find_dtype(entry.dtype_name)) {
      tensors_.push_back(make_tensor(entry, *dtype, data_start));
    } else {
      unsupported_.push_back({std::move(entry.name), std::move(entry.dtype_name)});
    }
  }

  index_.reserve(tensors_.size());
  for (const SafetensorsTensor& tensor : tensors_) index_.emplace_back(tensor.name, index_.size());
  std::sort(index_.begin(), index_.end());
}

const SafetensorsTensor* SafetensorsFile::find_tensor(std::string_view name) const {
  const auto found = std::lower_bound(
      index_.begin(), index_.end(), name,
      [](const auto& entry, std::string_view wanted) { return entry.first < wanted; });
  if (found != index_.end() && found->first == name) return &tensors_[found->second];
  for (const UnsupportedTensor& tensor : unsupported_) {
    if (tensor.name == name) {
      throw_error(ErrorCode::kUnsupported,
                  "{}: the tensor {} has the dtype {}, which this build cannot read.", path_,
                  printable_text(name), printable_text(tensor.dtype_name));
    }
  }
  return nullptr;
}

}  // namespace rlx
