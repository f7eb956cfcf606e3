#include "ir/reference_tensor.h"

#include <cstring>

#include "base/checked.h"
#include "tensor/half.h"

namespace rlx {

int64_t ReferenceTensor::num_elements() const {
  int64_t product = 1;
  for (int64_t extent : shape) product *= extent;
  return product;
}

double ReferenceTensor::at(int64_t index) const {
  if (holds_floats()) return floats[index];
  if (dtype == DType::kU64) return static_cast<double>(static_cast<uint64_t>(integers[index]));
  return static_cast<double>(integers[index]);
}

void ReferenceTensor::set(int64_t index, double value) {
  if (holds_floats()) {
    floats[index] = value;
  } else if (dtype == DType::kBool) {
    integers[index] = value != 0;
  } else {
    integers[index] = wrap_integer(dtype, static_cast<int64_t>(value));
  }
}

void ReferenceTensor::set_integer(int64_t index, int64_t value) {
  if (holds_floats()) {
    floats[index] = static_cast<double>(value);
  } else {
    integers[index] = wrap_integer(dtype, value);
  }
}

ReferenceTensor make_reference_tensor(DType dtype, std::vector<int64_t> shape) {
  if (is_complex(dtype)) {
    throw_error(ErrorCode::kUnsupported, "The reference does not compute on {}.", to_string(dtype));
  }
  ReferenceTensor tensor{dtype, std::move(shape), {}, {}};
  int64_t elements = 1;
  for (int64_t extent : tensor.shape) elements = checked_mul(elements, extent);
  if (tensor.holds_floats()) {
    tensor.floats.resize(elements);
  } else {
    tensor.integers.resize(elements);
  }
  return tensor;
}

int64_t wrap_integer(DType dtype, int64_t value) {
  switch (dtype) {
    case DType::kI32:
      return static_cast<int32_t>(value);
    case DType::kI16:
      return static_cast<int16_t>(value);
    case DType::kI8:
      return static_cast<int8_t>(value);
    case DType::kU32:
      return static_cast<uint32_t>(value);
    case DType::kU16:
      return static_cast<uint16_t>(value);
    case DType::kU8:
      return static_cast<uint8_t>(value);
    case DType::kBool:
      return value != 0;
    default:
      return value;
  }
}

double round_float(DType dtype, double value) {
  switch (dtype) {
    case DType::kF32:
      return static_cast<float>(value);
    case DType::kF16:
      return f16_to_f32(f32_to_f16(static_cast<float>(value)));
    case DType::kBF16:
      return bf16_to_f32(f32_to_bf16(static_cast<float>(value)));
    default:
      return value;
  }
}

namespace {

// Calls visit(T{}) with the C++ type that stores one element of a 64-bit or narrower integer dtype.
template <typename Visit>
void visit_integer_type(DType dtype, Visit visit) {
  switch (dtype) {
    case DType::kI64:
      return visit(int64_t{});
    case DType::kI32:
      return visit(int32_t{});
    case DType::kI16:
      return visit(int16_t{});
    case DType::kI8:
      return visit(int8_t{});
    case DType::kU64:
      return visit(uint64_t{});
    case DType::kU32:
      return visit(uint32_t{});
    case DType::kU16:
      return visit(uint16_t{});
    case DType::kU8:
    case DType::kBool:
      return visit(uint8_t{});
    default:
      RLX_CHECK(false, "{} is not an integer dtype", to_string(dtype));
  }
}

}  // namespace

ReferenceTensor reference_from_bytes(DType dtype, std::vector<int64_t> shape,
                                     std::span<const std::byte> bytes) {
  if (is_packed(dtype)) {
    throw_error(ErrorCode::kUnsupported, "{} is packed; decode its rows first.", to_string(dtype));
  }
  ReferenceTensor tensor = make_reference_tensor(dtype, std::move(shape));
  const int64_t elements = tensor.num_elements();
  const int64_t width = bytes_per_block(dtype);
  if (static_cast<int64_t>(bytes.size()) != checked_mul(elements, width)) {
    throw_error(ErrorCode::kInvalidArgument, "{} bytes are given, but {} elements of {} take {}.",
                bytes.size(), elements, to_string(dtype), elements * width);
  }
  auto load = [&](auto& into, int64_t i) {
    std::memcpy(&into, bytes.data() + i * width, sizeof(into));
  };
  for (int64_t i = 0; i < elements; ++i) {
    if (dtype == DType::kF64) {
      load(tensor.floats[i], i);
    } else if (dtype == DType::kF32) {
      float value;
      load(value, i);
      tensor.floats[i] = value;
    } else if (dtype == DType::kF16 || dtype == DType::kBF16) {
      uint16_t bits;
      load(bits, i);
      tensor.floats[i] = dtype == DType::kF16 ? f16_to_f32(bits) : bf16_to_f32(bits);
    } else {
      visit_integer_type(dtype, [&](auto value) {
        load(value, i);
        tensor.integers[i] = dtype == DType::kBool ? (value != 0) : static_cast<int64_t>(value);
      });
    }
  }
  return tensor;
}

std::vector<std::byte> to_bytes(const ReferenceTensor& tensor) {
  if (is_packed(tensor.dtype)) {
    throw_error(ErrorCode::kUnsupported, "{} is packed and has no encoder here.",
                to_string(tensor.dtype));
  }
  const int64_t elements = tensor.num_elements();
  const int64_t width = bytes_per_block(tensor.dtype);
  std::vector<std::byte> bytes(elements * width);
  auto store = [&](const auto& value, int64_t i) {
    std::memcpy(bytes.data() + i * width, &value, sizeof(value));
  };
  for (int64_t i = 0; i < elements; ++i) {
    switch (tensor.dtype) {
      case DType::kF64:
        store(tensor.floats[i], i);
        break;
      case DType::kF32:
        store(static_cast<float>(tensor.floats[i]), i);
        break;
      case DType::kF16:
        store(f32_to_f16(static_cast<float>(tensor.floats[i])), i);
        break;
      case DType::kBF16:
        store(f32_to_bf16(static_cast<float>(tensor.floats[i])), i);
        break;
      default:
        visit_integer_type(tensor.dtype, [&](auto value) {
          value = static_cast<decltype(value)>(tensor.integers[i]);
          store(value, i);
        });
    }
  }
  return bytes;
}

}  // namespace rlx
