// Shapes, layouts and the runtime view of a tensor. A Shape lists extents outermost first; a Layout
// says where an element lies (offset and strides, in elements), so that reshape, transpose, slice
// and broadcast cost nothing where the consumer accepts strides.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rlx/dtype.h"
#include "tensor/dim.h"

namespace rlx {

inline constexpr int kMaxRank = 8;

using Shape = std::vector<Dim>;

// "[1, tokens, 256]"; "[]" for a scalar.
std::string to_string(const Shape& shape);

// The product of the extents; 1 for a scalar.
Dim count_elements(const Shape& shape);

// What a value is: element type and shape. Two types are equal when both are.
struct TensorType {
  DType dtype = DType::kF32;
  Shape shape;

  int rank() const { return static_cast<int>(shape.size()); }
  bool operator==(const TensorType&) const = default;
};

// "f32[1, tokens, 256]".
std::string to_string(const TensorType& type);
// Reads what to_string writes; throws kInvalidArgument naming the text.
TensorType parse_tensor_type(std::string_view text);

// Bytes that the value occupies at the symbols' upper bounds. A packed dtype counts whole blocks
// along the last dimension; throws kInvalidArgument when that dimension is not a multiple of the
// block.
int64_t upper_bound_bytes(const TensorType& type, const SymbolTable& symbols);

// Element (i0, i1, ...) lies at offset + i0 * strides[0] + i1 * strides[1] + ..., in elements. A
// broadcast dimension has stride 0. For packed dtypes the last stride is 1 and every other one is a
// multiple of the block.
struct Layout {
  Dim offset = 0;
  std::vector<Dim> strides;

  bool operator==(const Layout&) const = default;
};

// Row-major without gaps.
Layout make_contiguous_layout(const Shape& shape);

// True when the elements lie row-major without gaps from the layout's offset on (dimensions of
// extent 1 may have any stride).
bool is_contiguous(const Shape& shape, const Layout& layout);

// A tensor as kernels see it: actual extents, strides in elements, first element at `data`.
struct TensorView {
  std::byte* data = nullptr;
  DType dtype = DType::kF32;
  int rank = 0;
  std::array<int64_t, kMaxRank> extents{};
  std::array<int64_t, kMaxRank> strides{};

  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(data);
  }
  int64_t num_elements() const {
    int64_t product = 1;
    for (int i = 0; i < rank; ++i) product *= extents[i];
    return product;
  }
  // Extent or stride counted from the last dimension: last(0) is the innermost.
  int64_t last_extent(int i) const { return extents[rank - 1 - i]; }
  int64_t last_stride(int i) const { return strides[rank - 1 - i]; }
  // Row-major without gaps (extents of 1 may have any stride).
  bool is_contiguous() const {
    int64_t expected = 1;
    for (int i = rank - 1; i >= 0; --i) {
      if (extents[i] != 1 && strides[i] != expected) return false;
      expected *= extents[i];
    }
    return true;
  }
};

}  // namespace rlx
