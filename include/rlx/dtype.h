// Element types: the scalars, and the packed block formats that a GGUF file can hold. A packed
// format stores a fixed number of elements in a block of a fixed number of bytes, so storage size
// always comes from the dtype, never from "elements * 4".
#pragma once

#include <cstdint>
#include <string_view>

namespace rlx {

enum class DType : uint8_t {
  // Scalars. `kBool` is one byte, 0 or 1. c64 and c128 are pairs (real, imaginary) of f32 and f64.
  kF64,
  kF32,
  kF16,
  kBF16,
  kI64,
  kI32,
  kI16,
  kI8,
  kU64,
  kU32,
  kU16,
  kU8,
  kBool,
  kC64,
  kC128,
  // Packed block formats, named as in GGUF.
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
  kQ8_1,
  kQ2_K,
  kQ3_K,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kQ8_K,
  kIQ2_XXS,
  kIQ2_XS,
  kIQ2_S,
  kIQ3_XXS,
  kIQ3_S,
  kIQ1_S,
  kIQ1_M,
  kIQ4_NL,
  kIQ4_XS,
  kTQ1_0,
  kTQ2_0,
  kMXFP4,
  kNVFP4,
  kQ1_0,
  kQ2_0,
};

inline constexpr int kNumDTypes = static_cast<int>(DType::kQ2_0) + 1;

// The name as written in the text form: "f32", "i64", "q4_k". Lower case always.
std::string_view to_string(DType dtype);

// The dtype of that name; false when there is none.
bool parse_dtype(std::string_view name, DType& dtype);

int64_t elements_per_block(DType dtype);  // 1 for scalars
int64_t bytes_per_block(DType dtype);     // the size of a scalar, or of a packed block

inline bool is_packed(DType dtype) { return dtype > DType::kC128; }
inline bool is_float(DType dtype) { return dtype <= DType::kBF16; }
inline bool is_integer(DType dtype) { return dtype >= DType::kI64 && dtype <= DType::kU8; }
inline bool is_complex(DType dtype) { return dtype == DType::kC64 || dtype == DType::kC128; }

}  // namespace rlx
