// A GGUF file opened for reading: its metadata and where each tensor lies. The file is mapped, only
// the header is read, and strings and arrays stay where they are as views; opening a file with a
// vocabulary of 150,000 tokens takes about a millisecond.
//
// The header is checked in full before anything is handed out: afterwards every tensor lies inside
// the file, none overlaps another, and every string is complete. A file that breaks a rule throws
// rlx::Error, with the file in the context. Versions 2 and 3, little endian.
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

struct GgufTensor {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;  // outermost dimension first: GGUF's `ne`, reversed
  int64_t offset_bytes;        // from the start of the file
  int64_t size_bytes;
};

// The types of metadata values; the numbers are those of the format.
enum class GgufType : uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};

// "u8", "string", "array" and so on.
std::string_view to_string(GgufType type);

// One metadata entry. The views point into the file.
struct GgufValue {
  std::string_view key;
  GgufType type;
  GgufType element_type;               // of an array; otherwise equal to `type`
  int64_t count;                       // elements of an array; otherwise 1
  std::span<const std::byte> payload;  // the value, or the elements of an array, as stored
};

// The value as one short line for people: a long string is cut, an array shows its type, its count
// and its first elements.
std::string printable_value(const GgufValue& value);

class GgufFile {
 public:
  // Maps the file and reads its header. Throws kNotFound, kIo, kUnsupported (another version, big
  // endian, an element type this build does not know) or kCorruptData.
  explicit GgufFile(const std::string& path);
  GgufFile(GgufFile&&) = default;
  GgufFile& operator=(GgufFile&&) = default;

  // The same for bytes in memory, which must outlive the result and all views from it; `file()` is
  // then null. `name` stands for the path in errors.
  static GgufFile from_bytes(std::span<const std::byte> bytes, const std::string& name);

  // The mapping that all views point into. Share it to keep tensor data alive without this object.
  const std::shared_ptr<const MappedFile>& file() const { return file_; }
  std::span<const std::byte> bytes() const { return bytes_; }
  const std::string& path() const { return path_; }
  int version() const { return version_; }
  int64_t alignment() const { return alignment_; }

  // In the order of the file.
  const std::vector<GgufTensor>& tensors() const { return tensors_; }
  const GgufTensor* find_tensor(std::string_view name) const;
  std::span<const std::byte> data(const GgufTensor& tensor) const {
    return bytes_.subspan(static_cast<size_t>(tensor.offset_bytes),
                          static_cast<size_t>(tensor.size_bytes));
  }

  // In the order of the file.
  const std::vector<GgufValue>& metadata() const { return metadata_; }
  const GgufValue* find(std::string_view key) const;

  // The value of a key, or nothing when the key is absent. A value of another type throws
  // kInvalidArgument naming the file, the key, the type found and the type expected. Integers of
  // every width and sign are read as int64 (one beyond it throws kOutOfRange), f32 and f64 as
  // double.
  std::optional<int64_t> find_int(std::string_view key) const;
  std::optional<double> find_float(std::string_view key) const;
  std::optional<bool> find_bool(std::string_view key) const;
  std::optional<std::string_view> find_string(std::string_view key) const;
  std::optional<std::vector<int64_t>> find_int_array(std::string_view key) const;
  std::optional<std::vector<float>> find_float_array(std::string_view key) const;
  std::optional<std::vector<bool>> find_bool_array(std::string_view key) const;
  // Views into the file; nothing is copied.
  std::optional<std::vector<std::string_view>> find_string_array(std::string_view key) const;

 private:
  GgufFile() = default;
  void read_header();
  const GgufValue* find_array(std::string_view key, std::string_view expected) const;
  [[noreturn]] void throw_wrong_type(const GgufValue& value, std::string_view expected) const;

  // Sorted by name, for the find functions. A hash table would let a file choose its collisions.
  using NameIndex = std::vector<std::pair<std::string_view, size_t>>;

  std::shared_ptr<const MappedFile> file_;
  std::span<const std::byte> bytes_;
  std::string path_;
  int version_ = 0;
  int64_t alignment_ = 0;
  std::vector<GgufTensor> tensors_;
  std::vector<GgufValue> metadata_;
  NameIndex tensor_index_;
  NameIndex metadata_index_;
};

}  // namespace rlx
