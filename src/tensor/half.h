// Conversion between f32 and the two 16-bit floats, exact and portable. Narrowing rounds to
// nearest, ties to even; infinities stay, values too large become infinities, subnormals are exact,
// and a NaN stays a NaN (made quiet, the upper bits of its payload kept).
#pragma once

#include <bit>
#include <cstdint>

#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace rlx {

inline float bf16_to_f32(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

inline uint16_t f32_to_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x0040u);
  // Half of the last kept place, less one when that place is even: ties go to even.
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

// The portable forms of the f16 conversions, which tests compare with the machine's.
inline float f16_to_f32_portable(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t magnitude = bits & 0x7fffu;
  if (magnitude >= 0x7c00u) {  // infinity or NaN
    const uint32_t quiet = magnitude > 0x7c00u ? 0x00400000u : 0u;
    return std::bit_cast<float>(sign | 0x7f800000u | ((magnitude & 0x03ffu) << 13) | quiet);
  }
  if (magnitude >= 0x0400u) {  // normal: the exponent bias grows from 15 to 127
    return std::bit_cast<float>(sign | ((magnitude << 13) + (112u << 23)));
  }
  // Subnormal: magnitude * 2^-24, exact in f32.
  const float value = static_cast<float>(magnitude) * 0x1p-24f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(value));
}

inline uint16_t f32_to_f16_portable(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {
    return static_cast<uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x03ffu));
  }
  // 65520 lies halfway between the largest f16 and the next step, and the tie goes to infinity.
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);
  if (magnitude >= 0x38800000u) {  // at least 2^-14: a normal f16
    const uint32_t rebased = magnitude - (112u << 23);
    return static_cast<uint16_t>(sign | ((rebased + 0x0fffu + ((rebased >> 13) & 1u)) >> 13));
  }
  // Below 2^-14 the steps of f16 are 2^-24. Adding 0.5 puts them in the last place of an f32, so
  // the addition itself rounds to nearest even, and the low bits of the sum are the f16.
  const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
  return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
}

inline float f16_to_f32(uint16_t bits) {
#if defined(__F16C__)
  return _cvtsh_ss(bits);
#else
  return f16_to_f32_portable(bits);
#endif
}

inline uint16_t f32_to_f16(float value) {
#if defined(__F16C__)
  return static_cast<uint16_t>(_cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT));
#else
  return f32_to_f16_portable(value);
#endif
}

}  // namespace rlx
