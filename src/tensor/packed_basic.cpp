#include "tensor/packed_blocks.h"

namespace rlx::packed {
namespace {

// Twice the values of the 4-bit float e2m1, so that they are integers; scales are halved instead.
constexpr int8_t kE2M1Doubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

// Half of 2^(exponent - 127), which is subnormal for 0 and 1.
float half_of_e8m0(uint8_t exponent) {
  const uint32_t bits =
      exponent < 2 ? 0x00200000u << exponent : static_cast<uint32_t>(exponent - 1) << 23;
  return std::bit_cast<float>(bits);
}

// Half of an e4m3 without sign. Its NaN stands for 0, and the top bit is not looked at elsewhere.
float half_of_ue4m3(uint8_t bits) {
  if (bits == 0 || bits == 0x7f) return 0.0f;
  const int exponent = (bits >> 3) & 15;
  const auto mantissa = static_cast<float>(bits & 7);
  if (exponent == 0) return mantissa * 0x1p-10f;
  const float power = std::bit_cast<float>(static_cast<uint32_t>(exponent + 127 - 8) << 23);
  return (1.0f + mantissa * 0.125f) * power;
}

// The low nibbles of `half_count` bytes are the first values, the high nibbles the second half.
template <typename Value>
void decode_nibbles(const uint8_t* codes, int half_count, float* out, Value value) {
  for (int i = 0; i < half_count; ++i) {
    out[i] = value(codes[i] & 15, i);
    out[i + half_count] = value(codes[i] >> 4, i + half_count);
  }
}

}  // namespace

void decode_q4_0(const uint8_t* block, float* out) {
  const float scale = load_f16(block);
  decode_nibbles(block + 2, 16, out,
                 [&](int code, int) { return static_cast<float>(code - 8) * scale; });
}

void decode_q4_1(const uint8_t* block, float* out) {
  const float scale = load_f16(block);
  const float least = load_f16(block + 2);
  decode_nibbles(block + 4, 16, out,
                 [&](int code, int) { return static_cast<float>(code) * scale + least; });
}

void decode_q5_0(const uint8_t* block, float* out) {
  const float scale = load_f16(block);
  const auto high_bits = load<uint32_t>(block + 2);
  decode_nibbles(block + 6, 16, out, [&](int code, int i) {
    const int high = static_cast<int>((high_bits >> i) & 1u) << 4;
    return static_cast<float>((code | high) - 16) * scale;
  });
}

void decode_q5_1(const uint8_t* block, float* out) {
  const float scale = load_f16(block);
  const float least = load_f16(block + 2);
  const auto high_bits = load<uint32_t>(block + 4);
  decode_nibbles(block + 8, 16, out, [&](int code, int i) {
    const int high = static_cast<int>((high_bits >> i) & 1u) << 4;
    return static_cast<float>(code | high) * scale + least;
  });
}

void decode_q8_0(const uint8_t* block, float* out) {
  const float scale = load_f16(block);
  for (int i = 0; i < 32; ++i) {
    out[i] = static_cast<float>(static_cast<int8_t>(block[2 + i])) * scale;
  }
}

// Bytes 2 and 3 hold scale * sum of the codes, which only dot products use.
void decode_q8_1(const uint8_t* block, float* out) {
  const float scale = load_f16(block);
  for (int i = 0; i < 32; ++i) {
    out[i] = static_cast<float>(static_cast<int8_t>(block[4 + i])) * scale;
  }
}

// The scale is an f32. After the codes come sums of 16 codes each, which only dot products use.
void decode_q8_k(const uint8_t* block, float* out) {
  const auto scale = load<float>(block);
  for (int i = 0; i < 256; ++i) {
    out[i] = static_cast<float>(static_cast<int8_t>(block[4 + i])) * scale;
  }
}

// Five base-3 digits in a byte, as the fraction byte / 256: multiplying by 3^k (modulo 256) brings
// digit k to the front, and times 3 / 256 reads it. Bytes 0 to 31 hold five runs of 32 values,
// bytes 32 to 47 five runs of 16, bytes 48 to 51 four runs of 4; the scale is at the end.
void decode_tq1_0(const uint8_t* block, float* out) {
  constexpr int kPowers[5] = {1, 3, 9, 27, 81};
  const float scale = load_f16(block + 52);
  const auto decode_run = [&](const uint8_t* codes, int count, int num_digits) {
    for (int digit = 0; digit < num_digits; ++digit) {
      for (int i = 0; i < count; ++i) {
        const int shifted = (codes[i] * kPowers[digit]) & 255;
        *out++ = static_cast<float>(((shifted * 3) >> 8) - 1) * scale;
      }
    }
  };
  decode_run(block, 32, 5);
  decode_run(block + 32, 16, 5);
  decode_run(block + 48, 4, 4);
}

void decode_tq2_0(const uint8_t* block, float* out) {
  const float scale = load_f16(block + 64);
  for (int start = 0; start < 64; start += 32) {
    for (int shift = 0; shift < 8; shift += 2) {
      for (int i = 0; i < 32; ++i) {
        *out++ = static_cast<float>(((block[start + i] >> shift) & 3) - 1) * scale;
      }
    }
  }
}

void decode_mxfp4(const uint8_t* block, float* out) {
  const float scale = half_of_e8m0(block[0]);
  decode_nibbles(block + 1, 16, out,
                 [&](int code, int) { return static_cast<float>(kE2M1Doubled[code]) * scale; });
}

// Four groups of 16 values, each with its own scale byte in front.
void decode_nvfp4(const uint8_t* block, float* out) {
  for (int group = 0; group < 4; ++group) {
    const float scale = half_of_ue4m3(block[group]);
    decode_nibbles(block + 4 + group * 8, 8, out + group * 16,
                   [&](int code, int) { return static_cast<float>(kE2M1Doubled[code]) * scale; });
  }
}

void decode_q1_0(const uint8_t* block, float* out) {
  const float scale = load_f16(block);
  for (int i = 0; i < 128; ++i) {
    const bool is_positive = ((block[2 + i / 8] >> (i % 8)) & 1) != 0;
    out[i] = is_positive ? scale : -scale;
  }
}

void decode_q2_0(const uint8_t* block, float* out) {
  const float scale = load_f16(block);
  for (int i = 0; i < 64; ++i) {
    const int code = (block[2 + i / 4] >> (2 * (i % 4))) & 3;
    out[i] = static_cast<float>(code - 1) * scale;
  }
}

}  // namespace rlx::packed
