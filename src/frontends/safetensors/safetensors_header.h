// The JSON of a safetensors header and of an index, as plain lists. What depends on the rest of the
// file is checked by the caller. Private to this folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace rlx::safetensors {

// A tensor as its header entry states it; all three fields are present.
struct HeaderEntry {
  std::string name;
  std::string dtype_name;
  std::vector<int64_t> shape;
  int64_t begin = 0;  // of the data, from the start of the data section
  int64_t end = 0;
};

struct Header {
  std::vector<HeaderEntry> entries;                           // in the order of the text
  std::vector<std::pair<std::string, std::string>> metadata;  // of `__metadata__`
};

// Throws kCorruptData when the text is not a header: anything missing, repeated or of another type.
Header parse_header(std::span<const std::byte> text);

// The pairs (tensor, file) of the index's `weight_map`, in the order of the text; all else in the
// index is passed over. Throws kCorruptData as above.
std::vector<std::pair<std::string, std::string>> parse_index(std::span<const std::byte> text);

}  // namespace rlx::safetensors
