// The parts of reading a GGUF header that need no file object: a cursor that never leaves the
// bytes, and the table of element types. Private to this folder.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "base/error.h"
#include "frontends/gguf/gguf_file.h"
#include "rlx/dtype.h"

namespace rlx::gguf {

static_assert(std::endian::native == std::endian::little,
              "Values are copied from the file as they lie, which needs a little-endian machine.");

class Cursor {
 public:
  explicit Cursor(std::span<const std::byte> bytes) : bytes_(bytes) {}

  size_t position() const { return position_; }
  size_t remaining() const { return bytes_.size() - position_; }

  // The next `count` bytes. Throws kCorruptData when fewer are left; `what` names them.
  std::span<const std::byte> take(uint64_t count, const char* what) {
    if (count > remaining()) {
      throw_error(ErrorCode::kCorruptData,
                  "The file ends inside {}: it needs {} bytes from byte {}, but the file has {}.",
                  what, count, position_, bytes_.size());
    }
    const auto result = bytes_.subspan(position_, static_cast<size_t>(count));
    position_ += static_cast<size_t>(count);
    return result;
  }

  template <typename T>
  T read(const char* what) {
    T value;
    std::memcpy(&value, take(sizeof(T), what).data(), sizeof(T));
    return value;
  }

  std::string_view read_string(const char* what) {
    const auto length = read<uint64_t>(what);
    const auto text = take(length, what);
    return {reinterpret_cast<const char*>(text.data()), text.size()};
  }

 private:
  std::span<const std::byte> bytes_;
  size_t position_ = 0;
};

template <typename T>
T load(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

// The bytes of one value of a type of fixed size; 0 for strings and arrays.
size_t fixed_size_bytes(GgufType type);

// The type with that number. Throws kUnsupported when there is none.
GgufType checked_type(uint32_t number);

// Moves the cursor over `count` values of `type`, checking that they are complete. `depth` counts
// the arrays around them.
void skip_values(Cursor& cursor, GgufType type, uint64_t count, int depth);

// The dtype of a tensor's element type number. Throws kUnsupported with the number, and the name
// where the format once had one.
DType dtype_of_tensor_type(uint32_t number);

}  // namespace rlx::gguf
