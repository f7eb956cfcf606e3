#include "frontends/gguf/gguf_file.h"

#include <algorithm>
#include <bit>

#include "base/checked.h"
#include "base/error.h"
#include "base/printable_text.h"
#include "frontends/gguf/gguf_reader.h"
#include "tensor/storage.h"

namespace rlx {
namespace {

using gguf::Cursor;

constexpr int64_t kDefaultAlignment = 32;
constexpr uint32_t kMaxDimensions = 4;
// What the smallest entry takes: a key without letters and a value of one byte; a tensor without
// letters or dimensions. These bound the counts, and with them what the lists may allocate.
constexpr size_t kLeastMetadataBytes = 8 + 4 + 1;
constexpr size_t kLeastTensorBytes = 8 + 4 + 4 + 8;

void check_count(uint64_t count, size_t least_bytes, const Cursor& cursor, const char* what) {
  if (count > cursor.remaining() / least_bytes) {
    throw_error(ErrorCode::kCorruptData,
                "The header claims {} {}, but only {} bytes of the file are left.", count, what,
                cursor.remaining());
  }
}

int read_version(Cursor& cursor) {
  const auto magic = cursor.take(4, "the magic number");
  if (std::memcmp(magic.data(), "GGUF", 4) != 0) {
    const std::string_view found(reinterpret_cast<const char*>(magic.data()), 4);
    throw_error(ErrorCode::kCorruptData,
                "This is not a GGUF file: it starts with {}, but expected 'GGUF'.",
                printable_text(found));
  }
  const auto version = cursor.read<uint32_t>("the version");
  if (version != 0 && (version & 0xffffu) == 0) {
    throw_error(ErrorCode::kUnsupported,
                "This is a big-endian GGUF file (version {}); expected a little-endian one.",
                __builtin_bswap32(version));
  }
  if (version != 2 && version != 3) {
    throw_error(ErrorCode::kUnsupported, "The GGUF version is {}, but expected 2 or 3.", version);
  }
  return static_cast<int>(version);
}

GgufValue read_metadata_entry(Cursor& cursor) {
  GgufValue value;
  value.key = cursor.read_string("a metadata key");
  with_context("key " + printable_text(value.key), [&] {
    value.type = gguf::checked_type(cursor.read<uint32_t>("the type of a value"));
    value.element_type = value.type;
    value.count = 1;
    if (value.type == GgufType::kString) {
      const std::string_view text = cursor.read_string("a string");
      value.payload = std::as_bytes(std::span(text));
      return;
    }
    if (value.type != GgufType::kArray) {
      value.payload = cursor.take(gguf::fixed_size_bytes(value.type), "a value");
      return;
    }
    value.element_type = gguf::checked_type(cursor.read<uint32_t>("the type of an array"));
    const auto count = cursor.read<uint64_t>("the count of an array");
    Cursor elements = cursor;
    gguf::skip_values(cursor, value.element_type, count, 1);
    value.count = static_cast<int64_t>(count);
    value.payload = elements.take(cursor.position() - elements.position(), "an array");
  });
  return value;
}

// `offset_bytes` is left relative to the data section, which starts after all entries.
GgufTensor read_tensor_entry(Cursor& cursor) {
  GgufTensor tensor;
  tensor.name = cursor.read_string("a tensor name");
  with_context("tensor " + printable_text(tensor.name), [&] {
    const auto rank = cursor.read<uint32_t>("the number of dimensions");
    if (rank > kMaxDimensions) {
      throw_error(ErrorCode::kUnsupported, "It has {} dimensions, but expected at most {}.", rank,
                  kMaxDimensions);
    }
    for (uint32_t i = 0; i < rank; ++i) {
      const auto extent = cursor.read<int64_t>("a dimension");
      if (extent < 0) {
        throw_error(ErrorCode::kCorruptData, "Dimension {} is {}, but expected at least 0.", i,
                    extent);
      }
      tensor.shape.insert(tensor.shape.begin(), extent);
    }
    tensor.dtype = gguf::dtype_of_tensor_type(cursor.read<uint32_t>("the element type"));
    // The product of the extents fits even without its zeros, so that no one who multiplies some of
    // them has to check again.
    int64_t product = 1;
    for (const int64_t extent : tensor.shape) {
      product = checked_mul(product, std::max<int64_t>(extent, 1));
    }
    const int64_t row_elements = tensor.shape.empty() ? 1 : tensor.shape.back();
    tensor.size_bytes = storage_bytes(tensor.dtype, row_elements);
    for (size_t i = 0; i + 1 < tensor.shape.size(); ++i) {
      tensor.size_bytes = checked_mul(tensor.size_bytes, tensor.shape[i]);
    }
    tensor.offset_bytes = cursor.read<int64_t>("the offset of the data");
    if (tensor.offset_bytes < 0) {
      throw_error(ErrorCode::kCorruptData, "The offset of its data does not fit in 63 bits.");
    }
  });
  return tensor;
}

void place_tensor(GgufTensor& tensor, int64_t data_start, int64_t alignment, int64_t file_bytes) {
  with_context("tensor " + printable_text(tensor.name), [&] {
    if (tensor.offset_bytes % alignment != 0) {
      throw_error(ErrorCode::kCorruptData,
                  "Its data starts at offset {}, but expected a multiple of the alignment {}.",
                  tensor.offset_bytes, alignment);
    }
    tensor.offset_bytes = checked_add(data_start, tensor.offset_bytes);
    if (checked_add(tensor.offset_bytes, tensor.size_bytes) > file_bytes) {
      throw_error(ErrorCode::kCorruptData,
                  "Its data takes {} bytes from byte {}, but the file ends at byte {}.",
                  tensor.size_bytes, tensor.offset_bytes, file_bytes);
    }
  });
}

void check_no_overlap(const std::vector<GgufTensor>& tensors) {
  std::vector<const GgufTensor*> by_offset;
  for (const GgufTensor& tensor : tensors) {
    if (tensor.size_bytes > 0) by_offset.push_back(&tensor);
  }
  std::sort(by_offset.begin(), by_offset.end(), [](const GgufTensor* a, const GgufTensor* b) {
    return a->offset_bytes < b->offset_bytes;
  });
  for (size_t i = 1; i < by_offset.size(); ++i) {
    const GgufTensor& before = *by_offset[i - 1];
    const GgufTensor& after = *by_offset[i];
    if (before.offset_bytes + before.size_bytes > after.offset_bytes) {
      throw_error(ErrorCode::kCorruptData,
                  "The data of tensor {} ends at byte {}, inside tensor {}, which starts at {}.",
                  printable_text(before.name), before.offset_bytes + before.size_bytes,
                  printable_text(after.name), after.offset_bytes);
    }
  }
}

template <typename Index>
void sort_unique_names(Index& index, const char* what) {
  std::sort(index.begin(), index.end());
  for (size_t i = 1; i < index.size(); ++i) {
    if (index[i - 1].first == index[i].first) {
      throw_error(ErrorCode::kCorruptData, "The {} {} appears twice.", what,
                  printable_text(index[i].first));
    }
  }
}

template <typename Index, typename Item>
const Item* find_by_name(const Index& index, const std::vector<Item>& items,
                         std::string_view name) {
  const auto found = std::lower_bound(
      index.begin(), index.end(), name,
      [](const auto& entry, std::string_view wanted) { return entry.first < wanted; });
  if (found == index.end() || found->first != name) return nullptr;
  return &items[found->second];
}

}  // namespace

GgufFile::GgufFile(const std::string& path)
    : file_(std::make_shared<const MappedFile>(path)), bytes_(file_->bytes()), path_(path) {
  with_context(path_, [&] { read_header(); });
}

GgufFile GgufFile::from_bytes(std::span<const std::byte> bytes, const std::string& name) {
  GgufFile file;
  file.bytes_ = bytes;
  file.path_ = name;
  with_context(name, [&] { file.read_header(); });
  return file;
}

void GgufFile::read_header() {
  Cursor cursor(bytes_);
  version_ = read_version(cursor);
  const auto num_tensors = cursor.read<uint64_t>("the number of tensors");
  const auto num_entries = cursor.read<uint64_t>("the number of metadata entries");
  check_count(num_tensors, kLeastTensorBytes, cursor, "tensors");
  check_count(num_entries, kLeastMetadataBytes, cursor, "metadata entries");

  metadata_.reserve(num_entries);
  for (uint64_t i = 0; i < num_entries; ++i) {
    metadata_.push_back(read_metadata_entry(cursor));
    metadata_index_.emplace_back(metadata_.back().key, metadata_.size() - 1);
  }
  sort_unique_names(metadata_index_, "metadata key");

  alignment_ = find_int("general.alignment").value_or(kDefaultAlignment);
  if (alignment_ <= 0 || !std::has_single_bit(static_cast<uint64_t>(alignment_))) {
    throw_error(ErrorCode::kCorruptData,
                "The key 'general.alignment' is {}, but expected a power of two.", alignment_);
  }

  tensors_.reserve(num_tensors);
  for (uint64_t i = 0; i < num_tensors; ++i) tensors_.push_back(read_tensor_entry(cursor));
  for (const GgufTensor& tensor : tensors_) {
    tensor_index_.emplace_back(tensor.name, tensor_index_.size());
  }
  sort_unique_names(tensor_index_, "tensor");

  if (tensors_.empty()) return;
  const int64_t data_start = align_up(static_cast<int64_t>(cursor.position()), alignment_);
  for (GgufTensor& tensor : tensors_) {
    place_tensor(tensor, data_start, alignment_, static_cast<int64_t>(bytes_.size()));
  }
  check_no_overlap(tensors_);
}

const GgufTensor* GgufFile::find_tensor(std::string_view name) const {
  return find_by_name(tensor_index_, tensors_, name);
}

const GgufValue* GgufFile::find(std::string_view key) const {
  return find_by_name(metadata_index_, metadata_, key);
}

}  // namespace rlx
