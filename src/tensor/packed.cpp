#include "tensor/packed.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "tensor/half.h"
#include "tensor/packed_blocks.h"
#include "tensor/storage.h"

namespace rlx {
namespace {

using DecodeBlock = void (*)(const uint8_t* block, float* out);

// Null for dtypes that are not packed.
DecodeBlock find_decoder(DType dtype) {
  switch (dtype) {
    case DType::kQ4_0:
      return packed::decode_q4_0;
    case DType::kQ4_1:
      return packed::decode_q4_1;
    case DType::kQ5_0:
      return packed::decode_q5_0;
    case DType::kQ5_1:
      return packed::decode_q5_1;
    case DType::kQ8_0:
      return packed::decode_q8_0;
    case DType::kQ8_1:
      return packed::decode_q8_1;
    case DType::kQ2_K:
      return packed::decode_q2_k;
    case DType::kQ3_K:
      return packed::decode_q3_k;
    case DType::kQ4_K:
      return packed::decode_q4_k;
    case DType::kQ5_K:
      return packed::decode_q5_k;
    case DType::kQ6_K:
      return packed::decode_q6_k;
    case DType::kQ8_K:
      return packed::decode_q8_k;
    case DType::kIQ2_XXS:
      return packed::decode_iq2_xxs;
    case DType::kIQ2_XS:
      return packed::decode_iq2_xs;
    case DType::kIQ2_S:
      return packed::decode_iq2_s;
    case DType::kIQ3_XXS:
      return packed::decode_iq3_xxs;
    case DType::kIQ3_S:
      return packed::decode_iq3_s;
    case DType::kIQ1_S:
      return packed::decode_iq1_s;
    case DType::kIQ1_M:
      return packed::decode_iq1_m;
    case DType::kIQ4_NL:
      return packed::decode_iq4_nl;
    case DType::kIQ4_XS:
      return packed::decode_iq4_xs;
    case DType::kTQ1_0:
      return packed::decode_tq1_0;
    case DType::kTQ2_0:
      return packed::decode_tq2_0;
    case DType::kMXFP4:
      return packed::decode_mxfp4;
    case DType::kNVFP4:
      return packed::decode_nvfp4;
    case DType::kQ1_0:
      return packed::decode_q1_0;
    case DType::kQ2_0:
      return packed::decode_q2_0;
    default:
      return nullptr;
  }
}

void check_block_values(const float* values, int64_t start, float largest_allowed, DType dtype) {
  for (int i = 0; i < 32; ++i) {
    if (!(std::fabs(values[i]) <= largest_allowed)) {
      throw_error(ErrorCode::kOutOfRange,
                  "Element {} is {}, but {} expects a magnitude of at most {}.", start + i,
                  values[i], to_string(dtype), largest_allowed);
    }
  }
}

void store_u16(uint16_t value, uint8_t* bytes) { std::memcpy(bytes, &value, sizeof(value)); }

// Of a scale so small that its reciprocal is infinite the f16 is 0, and every code decodes to 0.
float reciprocal_or_zero(float scale) {
  const float inverse = 1.0f / scale;
  return std::isfinite(inverse) ? inverse : 0.0f;
}

void encode_q8_0(const float* values, uint8_t* block) {
  float largest = 0.0f;
  for (int i = 0; i < 32; ++i) largest = std::max(largest, std::fabs(values[i]));
  const float scale = largest / 127.0f;
  const float inverse = reciprocal_or_zero(scale);
  store_u16(f32_to_f16(scale), block);
  for (int i = 0; i < 32; ++i) {
    // std::round takes halves away from zero, and so does the reference.
    block[2 + i] = static_cast<uint8_t>(static_cast<int8_t>(std::round(values[i] * inverse)));
  }
}

void encode_q4_0(const float* values, uint8_t* block) {
  // The value of largest magnitude gets code 0, which is -8 times the scale.
  float largest = 0.0f;
  for (int i = 0; i < 32; ++i) {
    if (std::fabs(values[i]) > std::fabs(largest)) largest = values[i];
  }
  const float scale = largest / -8.0f;
  const float inverse = reciprocal_or_zero(scale);
  store_u16(f32_to_f16(scale), block);
  const auto code_of = [&](float value) {
    return std::min(15, static_cast<int>(value * inverse + 8.5f));
  };
  for (int i = 0; i < 16; ++i) {
    block[2 + i] = static_cast<uint8_t>(code_of(values[i]) | (code_of(values[i + 16]) << 4));
  }
}

}  // namespace

void decode_row(DType dtype, const std::byte* packed, int64_t elements, float* out) {
  const int64_t size_bytes = storage_bytes(dtype, elements);
  const auto* bytes = reinterpret_cast<const uint8_t*>(packed);
  if (const DecodeBlock decode = find_decoder(dtype)) {
    const int64_t step_bytes = bytes_per_block(dtype);
    const int64_t step = elements_per_block(dtype);
    for (int64_t at = 0; at < size_bytes; at += step_bytes) {
      decode(bytes + at, out);
      out += step;
    }
    return;
  }
  switch (dtype) {
    case DType::kF32:
      if (elements > 0) std::memcpy(out, bytes, static_cast<size_t>(size_bytes));
      return;
    case DType::kF16:
      for (int64_t i = 0; i < elements; ++i) out[i] = packed::load_f16(bytes + 2 * i);
      return;
    case DType::kBF16:
      for (int64_t i = 0; i < elements; ++i) {
        out[i] = bf16_to_f32(packed::load<uint16_t>(bytes + 2 * i));
      }
      return;
    default:
      throw_error(ErrorCode::kUnsupported,
                  "A row of {} cannot be decoded; expected a packed format, f32, f16 or bf16.",
                  to_string(dtype));
  }
}

void encode_row(DType dtype, const float* values, int64_t elements, std::byte* packed) {
  constexpr float kLargestF16 = 65504.0f;
  const int64_t size_bytes = storage_bytes(dtype, elements);
  auto* bytes = reinterpret_cast<uint8_t*>(packed);
  switch (dtype) {
    case DType::kQ8_0:
    case DType::kQ4_0: {
      const bool is_q8 = dtype == DType::kQ8_0;
      for (int64_t at = 0; at < elements; at += 32) {
        check_block_values(values + at, at, kLargestF16 * (is_q8 ? 127.0f : 8.0f), dtype);
        (is_q8 ? encode_q8_0 : encode_q4_0)(values + at, bytes);
        bytes += bytes_per_block(dtype);
      }
      return;
    }
    case DType::kF32:
      if (elements > 0) std::memcpy(bytes, values, static_cast<size_t>(size_bytes));
      return;
    case DType::kF16:
      for (int64_t i = 0; i < elements; ++i) store_u16(f32_to_f16(values[i]), bytes + 2 * i);
      return;
    case DType::kBF16:
      for (int64_t i = 0; i < elements; ++i) store_u16(f32_to_bf16(values[i]), bytes + 2 * i);
      return;
    default:
      throw_error(ErrorCode::kUnsupported,
                  "There is no encoder for {}; expected q8_0, q4_0, f32, f16 or bf16.",
                  to_string(dtype));
  }
}

}  // namespace rlx
