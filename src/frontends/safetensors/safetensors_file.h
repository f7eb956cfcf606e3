// Weights in safetensors files: one mapped file, or a folder whose weights are split over several.
// Only the JSON header is read; the data stays in the mapping.
//
// The header is checked in full, as the format demands: the tensors cover the data exactly, without
// overlap, holes or trailing bytes, and every size is that of its shape and dtype. A file that
// breaks a rule throws rlx::Error with the file in the context.
//
// The format does not align the data of a tensor to its dtype: check the address before reading in
// place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mapped_file.h"
#include "rlx/dtype.h"

namespace rlx {

struct SafetensorsTensor {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;  // outermost dimension first
  int64_t offset_bytes;        // from the start of the file
  int64_t size_bytes;
};

// A tensor whose dtype this build has no type for, such as F8_E4M3.
struct UnsupportedTensor {
  std::string name;
  std::string dtype_name;  // as written in the file
};

class SafetensorsFile {
 public:
  // Maps the file and reads its header. Throws kNotFound, kIo or kCorruptData.
  explicit SafetensorsFile(const std::string& path);
  SafetensorsFile(SafetensorsFile&&) = default;
  SafetensorsFile& operator=(SafetensorsFile&&) = default;

  // The same for bytes in memory, which must outlive the result; `file()` is then null. `name`
  // stands for the path in errors.
  static SafetensorsFile from_bytes(std::span<const std::byte> bytes, const std::string& name);

  // The mapping. Share it to keep tensor data alive without this object.
  const std::shared_ptr<const MappedFile>& file() const { return file_; }
  std::span<const std::byte> bytes() const { return bytes_; }
  const std::string& path() const { return path_; }

  // In the order of the data. Tensors of an unsupported dtype are in the second list instead: a
  // file may hold some that nobody asks for.
  const std::vector<SafetensorsTensor>& tensors() const { return tensors_; }
  const std::vector<UnsupportedTensor>& unsupported_tensors() const { return unsupported_; }

  // Null when there is no such tensor. Throws kUnsupported, naming the dtype, when there is one of
  // an unsupported dtype.
  const SafetensorsTensor* find_tensor(std::string_view name) const;

  std::span<const std::byte> data(const SafetensorsTensor& tensor) const {
    return bytes_.subspan(static_cast<size_t>(tensor.offset_bytes),
                          static_cast<size_t>(tensor.size_bytes));
  }

  // The entries of `__metadata__`, in the order of the file.
  const std::vector<std::pair<std::string, std::string>>& metadata() const { return metadata_; }

 private:
  SafetensorsFile() = default;
  void read_header();

  std::shared_ptr<const MappedFile> file_;
  std::span<const std::byte> bytes_;
  std::string path_;
  std::vector<SafetensorsTensor> tensors_;
  std::vector<UnsupportedTensor> unsupported_;
  std::vector<std::pair<std::string, std::string>> metadata_;
  std::vector<std::pair<std::string_view, size_t>> index_;  // sorted names of `tensors_`
};

// One tensor of a folder, with the file that holds it.
struct SafetensorsWeight {
  const SafetensorsFile* file;
  const SafetensorsTensor* tensor;

  std::span<const std::byte> data() const { return file->data(*tensor); }
};

class SafetensorsFolder {
 public:
  // Opens `model.safetensors` in the folder or, when that is absent, the shards that
  // `model.safetensors.index.json` names. Throws kNotFound when there is neither, and kCorruptData
  // when the index names a file that is not directly in the folder, when a tensor is not in the
  // shard that the index gives for it, or when two shards hold the same tensor.
  explicit SafetensorsFolder(const std::string& folder);

  const std::string& path() const { return path_; }
  const std::vector<SafetensorsFile>& files() const { return files_; }

  // Sorted by name; valid while this object lives where it was made, or was moved to.
  const std::vector<SafetensorsWeight>& tensors() const { return weights_; }

  // Nothing when there is no such tensor; throws like SafetensorsFile::find_tensor.
  std::optional<SafetensorsWeight> find_tensor(std::string_view name) const;

 private:
  void open_shards(const std::string& index_path);
  void collect_weights();

  std::string path_;
  std::vector<SafetensorsFile> files_;
  std::vector<SafetensorsWeight> weights_;
};

}  // namespace rlx
