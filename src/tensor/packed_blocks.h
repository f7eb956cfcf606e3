// One function per packed format that decodes one block. Private to this folder; decode_row in
// packed.h is the way in.
//
// Shared by all: `block` has bytes_per_block bytes and no alignment, `out` takes elements_per_block
// values. Multi-byte fields are little endian, and scales are f16 unless stated otherwise.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "tensor/half.h"

namespace rlx::packed {

static_assert(std::endian::native == std::endian::little,
              "Fields are copied as they lie, which needs a little-endian machine.");

template <typename T>
T load(const uint8_t* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

inline float load_f16(const uint8_t* bytes) { return f16_to_f32(load<uint16_t>(bytes)); }

// The 16 values of a 4-bit code in iq4_nl and iq4_xs.
inline constexpr int8_t kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                          1,    13,   25,  38,  53,  69,  89,  113};

// packed_basic.cpp: blocks with one scale (and offset), the 4-bit floats, ternary and 1-bit.
void decode_q4_0(const uint8_t* block, float* out);
void decode_q4_1(const uint8_t* block, float* out);
void decode_q5_0(const uint8_t* block, float* out);
void decode_q5_1(const uint8_t* block, float* out);
void decode_q8_0(const uint8_t* block, float* out);
void decode_q8_1(const uint8_t* block, float* out);
void decode_q8_k(const uint8_t* block, float* out);
void decode_tq1_0(const uint8_t* block, float* out);
void decode_tq2_0(const uint8_t* block, float* out);
void decode_mxfp4(const uint8_t* block, float* out);
void decode_nvfp4(const uint8_t* block, float* out);
void decode_q1_0(const uint8_t* block, float* out);
void decode_q2_0(const uint8_t* block, float* out);

// packed_k.cpp: blocks of 256 with scales of their own for each 16 or 32 values.
void decode_q2_k(const uint8_t* block, float* out);
void decode_q3_k(const uint8_t* block, float* out);
void decode_q4_k(const uint8_t* block, float* out);
void decode_q5_k(const uint8_t* block, float* out);
void decode_q6_k(const uint8_t* block, float* out);

// packed_iq.cpp: blocks whose values come from a codebook.
void decode_iq2_xxs(const uint8_t* block, float* out);
void decode_iq2_xs(const uint8_t* block, float* out);
void decode_iq2_s(const uint8_t* block, float* out);
void decode_iq3_xxs(const uint8_t* block, float* out);
void decode_iq3_s(const uint8_t* block, float* out);
void decode_iq1_s(const uint8_t* block, float* out);
void decode_iq1_m(const uint8_t* block, float* out);
void decode_iq4_nl(const uint8_t* block, float* out);
void decode_iq4_xs(const uint8_t* block, float* out);

}  // namespace rlx::packed
