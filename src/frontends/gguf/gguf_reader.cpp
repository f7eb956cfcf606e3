#include "frontends/gguf/gguf_reader.h"

#include <array>

namespace rlx::gguf {
namespace {

// The format sets no bound on arrays in arrays; files in the wild have none at all.
constexpr int kMaxArrayDepth = 8;

struct TensorType {
  uint32_t number;
  DType dtype;
};

constexpr std::array kTensorTypes = {
    TensorType{0, DType::kF32},      TensorType{1, DType::kF16},
    TensorType{2, DType::kQ4_0},     TensorType{3, DType::kQ4_1},
    TensorType{6, DType::kQ5_0},     TensorType{7, DType::kQ5_1},
    TensorType{8, DType::kQ8_0},     TensorType{9, DType::kQ8_1},
    TensorType{10, DType::kQ2_K},    TensorType{11, DType::kQ3_K},
    TensorType{12, DType::kQ4_K},    TensorType{13, DType::kQ5_K},
    TensorType{14, DType::kQ6_K},    TensorType{15, DType::kQ8_K},
    TensorType{16, DType::kIQ2_XXS}, TensorType{17, DType::kIQ2_XS},
    TensorType{18, DType::kIQ3_XXS}, TensorType{19, DType::kIQ1_S},
    TensorType{20, DType::kIQ4_NL},  TensorType{21, DType::kIQ3_S},
    TensorType{22, DType::kIQ2_S},   TensorType{23, DType::kIQ4_XS},
    TensorType{24, DType::kI8},      TensorType{25, DType::kI16},
    TensorType{26, DType::kI32},     TensorType{27, DType::kI64},
    TensorType{28, DType::kF64},     TensorType{29, DType::kIQ1_M},
    TensorType{30, DType::kBF16},    TensorType{34, DType::kTQ1_0},
    TensorType{35, DType::kTQ2_0},   TensorType{39, DType::kMXFP4},
    TensorType{40, DType::kNVFP4},   TensorType{41, DType::kQ1_0},
    TensorType{42, DType::kQ2_0},
};

// Numbers that older files used and the format has withdrawn.
std::string_view withdrawn_name(uint32_t number) {
  switch (number) {
    case 4:
      return "q4_2";
    case 5:
      return "q4_3";
    case 31:
      return "q4_0_4_4";
    case 32:
      return "q4_0_4_8";
    case 33:
      return "q4_0_8_8";
    case 36:
      return "iq4_nl_4_4";
    case 37:
      return "iq4_nl_4_8";
    case 38:
      return "iq4_nl_8_8";
    default:
      return {};
  }
}

}  // namespace

size_t fixed_size_bytes(GgufType type) {
  switch (type) {
    case GgufType::kU8:
    case GgufType::kI8:
    case GgufType::kBool:
      return 1;
    case GgufType::kU16:
    case GgufType::kI16:
      return 2;
    case GgufType::kU32:
    case GgufType::kI32:
    case GgufType::kF32:
      return 4;
    case GgufType::kU64:
    case GgufType::kI64:
    case GgufType::kF64:
      return 8;
    case GgufType::kString:
    case GgufType::kArray:
      return 0;
  }
  return 0;
}

GgufType checked_type(uint32_t number) {
  if (number > static_cast<uint32_t>(GgufType::kF64)) {
    throw_error(ErrorCode::kUnsupported, "The value type {} is unknown; expected 0 to {}.", number,
                static_cast<uint32_t>(GgufType::kF64));
  }
  return static_cast<GgufType>(number);
}

void skip_values(Cursor& cursor, GgufType type, uint64_t count, int depth) {
  // Every value takes at least one byte, a string at least 8 and an array at least 12, so a count
  // that the file cannot hold is found before any loop runs.
  const size_t fixed_bytes = fixed_size_bytes(type);
  const size_t least_bytes = fixed_bytes != 0 ? fixed_bytes : (type == GgufType::kString ? 8 : 12);
  if (count > cursor.remaining() / least_bytes) {
    throw_error(ErrorCode::kCorruptData,
                "An array claims {} elements of type {}, but only {} bytes of the file are left.",
                count, to_string(type), cursor.remaining());
  }
  if (fixed_bytes != 0) {
    cursor.take(count * fixed_bytes, "the elements of an array");
    return;
  }
  if (type == GgufType::kString) {
    for (uint64_t i = 0; i < count; ++i) cursor.read_string("a string of an array");
    return;
  }
  if (depth >= kMaxArrayDepth) {
    throw_error(ErrorCode::kUnsupported, "Arrays are nested more than {} deep.", kMaxArrayDepth);
  }
  for (uint64_t i = 0; i < count; ++i) {
    const GgufType inner_type = checked_type(cursor.read<uint32_t>("the type of an inner array"));
    const auto inner_count = cursor.read<uint64_t>("the count of an inner array");
    skip_values(cursor, inner_type, inner_count, depth + 1);
  }
}

DType dtype_of_tensor_type(uint32_t number) {
  for (const TensorType& type : kTensorTypes) {
    if (type.number == number) return type.dtype;
  }
  if (const std::string_view name = withdrawn_name(number); !name.empty()) {
    throw_error(ErrorCode::kUnsupported,
                "The element type {} ({}) has been withdrawn from GGUF; convert the file again.",
                number, name);
  }
  throw_error(ErrorCode::kUnsupported, "The element type {} is unknown; expected one of 0 to {}.",
              number, kTensorTypes.back().number);
}

}  // namespace rlx::gguf
