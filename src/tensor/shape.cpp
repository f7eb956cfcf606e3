#include "tensor/shape.h"

#include "base/checked.h"

namespace rlx {

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    text += to_string(shape[i]);
  }
  return text + "]";
}

Dim count_elements(const Shape& shape) {
  Dim product = 1;
  for (const Dim& extent : shape) product = product * extent;
  return product;
}

std::string to_string(const TensorType& type) {
  return std::string(to_string(type.dtype)) + to_string(type.shape);
}

TensorType parse_tensor_type(std::string_view text) {
  const size_t bracket = text.find('[');
  TensorType type;
  if (bracket == std::string_view::npos || text.back() != ']' ||
      !parse_dtype(text.substr(0, bracket), type.dtype)) {
    throw_error(ErrorCode::kInvalidArgument,
                "'{}' is not a tensor type: something like 'f32[1, tokens, 256]' is expected.",
                text);
  }
  std::string_view list = text.substr(bracket + 1, text.size() - bracket - 2);
  while (!list.empty()) {
    const size_t comma = list.find(',');
    type.shape.push_back(parse_dim(list.substr(0, comma)));
    if (type.shape.back().is_constant() && type.shape.back().constant() < 0) {
      throw_error(ErrorCode::kInvalidArgument, "'{}' has the negative extent {}.", text,
                  type.shape.back().constant());
    }
    if (comma == std::string_view::npos) break;
    list.remove_prefix(comma + 1);
  }
  if (type.shape.size() > kMaxRank) {
    throw_error(ErrorCode::kUnsupported, "'{}' has {} dimensions; at most {} are supported.", text,
                type.shape.size(), kMaxRank);
  }
  return type;
}

int64_t upper_bound_bytes(const TensorType& type, const SymbolTable& symbols) {
  const int64_t block = elements_per_block(type.dtype);
  int64_t elements = 1;
  for (const Dim& extent : type.shape) {
    elements = checked_mul(elements, extent.upper_bound(symbols));
  }
  if (block > 1) {
    const int64_t row = type.shape.empty() ? 1 : type.shape.back().upper_bound(symbols);
    if (row % block != 0) {
      throw_error(ErrorCode::kInvalidArgument,
                  "A row of {} has {} elements, but {} is packed in blocks of {}.", to_string(type),
                  row, to_string(type.dtype), block);
    }
  }
  return checked_mul(elements / block, bytes_per_block(type.dtype));
}

Layout make_contiguous_layout(const Shape& shape) {
  Layout layout;
  layout.strides.resize(shape.size());
  Dim stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    layout.strides[i] = stride;
    stride = stride * shape[i];
  }
  return layout;
}

bool is_contiguous(const Shape& shape, const Layout& layout) {
  Dim expected = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    if (!shape[i].is(1) && layout.strides[i] != expected) return false;
    expected = expected * shape[i];
  }
  return true;
}

}  // namespace rlx
