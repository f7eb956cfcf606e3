#include "tensor/packed_blocks.h"

namespace rlx::packed {
namespace {

struct ScaleAndMin {
  float scale;
  float min;
};

// q4_k and q5_k keep 8 scales and 8 minima of 6 bits each in 12 bytes. The first four of both lie
// in the low 6 bits of bytes 0 to 7; of the last four, bytes 8 to 11 have the low nibbles and the
// top two bits of bytes 0 to 7 the rest.
ScaleAndMin load_scale_and_min(const uint8_t* packed, int group) {
  int scale = 0;
  int min = 0;
  if (group < 4) {
    scale = packed[group] & 63;
    min = packed[group + 4] & 63;
  } else {
    scale = (packed[group + 4] & 15) | ((packed[group - 4] >> 6) << 4);
    min = (packed[group + 4] >> 4) | ((packed[group] >> 6) << 4);
  }
  return {static_cast<float>(scale), static_cast<float>(min)};
}

}  // namespace

// Bytes: 16 of scales (low nibble) and minima (high nibble), 64 of codes, scale, scale of the
// minima.
void decode_q2_k(const uint8_t* block, float* out) {
  const uint8_t* codes = block + 16;
  const float scale = load_f16(block + 80);
  const float min_scale = load_f16(block + 82);
  for (int group = 0; group < 16; ++group) {
    const float group_scale = scale * static_cast<float>(block[group] & 15);
    const float group_min = min_scale * static_cast<float>(block[group] >> 4);
    const int shift = 2 * ((group / 2) % 4);
    const uint8_t* group_codes = codes + 32 * (group / 8) + 16 * (group % 2);
    for (int i = 0; i < 16; ++i) {
      *out++ = group_scale * static_cast<float>((group_codes[i] >> shift) & 3) - group_min;
    }
  }
}

// Bytes: 32 of third bits, 64 of the low two bits, 12 of 6-bit scales, scale.
void decode_q3_k(const uint8_t* block, float* out) {
  const uint8_t* codes = block + 32;
  const uint8_t* scales = block + 96;
  const float scale = load_f16(block + 108);
  for (int group = 0; group < 16; ++group) {
    const int low = (scales[group % 8] >> (4 * (group / 8))) & 15;
    const int high = (scales[8 + group % 4] >> (2 * (group / 4))) & 3;
    const float group_scale = scale * static_cast<float>((low | (high << 4)) - 32);
    const int shift = 2 * ((group / 2) % 4);
    const uint8_t* group_codes = codes + 32 * (group / 8) + 16 * (group % 2);
    const uint8_t* third_bits = block + 16 * (group % 2);
    for (int i = 0; i < 16; ++i) {
      const int offset = ((third_bits[i] >> (group / 2)) & 1) != 0 ? 0 : 4;
      *out++ = group_scale * static_cast<float>(((group_codes[i] >> shift) & 3) - offset);
    }
  }
}

// Bytes: scale, scale of the minima, 12 of scales and minima, 128 of codes.
void decode_q4_k(const uint8_t* block, float* out) {
  const float scale = load_f16(block);
  const float min_scale = load_f16(block + 2);
  for (int group = 0; group < 8; ++group) {
    const ScaleAndMin own = load_scale_and_min(block + 4, group);
    const float group_scale = scale * own.scale;
    const float group_min = min_scale * own.min;
    const uint8_t* codes = block + 16 + 32 * (group / 2);
    const int shift = 4 * (group % 2);
    for (int i = 0; i < 32; ++i) {
      *out++ = group_scale * static_cast<float>((codes[i] >> shift) & 15) - group_min;
    }
  }
}

// Bytes: scale, scale of the minima, 12 of scales and minima, 32 of fifth bits, 128 of codes.
void decode_q5_k(const uint8_t* block, float* out) {
  const float scale = load_f16(block);
  const float min_scale = load_f16(block + 2);
  const uint8_t* fifth_bits = block + 16;
  for (int group = 0; group < 8; ++group) {
    const ScaleAndMin own = load_scale_and_min(block + 4, group);
    const float group_scale = scale * own.scale;
    const float group_min = min_scale * own.min;
    const uint8_t* codes = block + 48 + 32 * (group / 2);
    const int shift = 4 * (group % 2);
    for (int i = 0; i < 32; ++i) {
      const int high = ((fifth_bits[i] >> group) & 1) << 4;
      *out++ = group_scale * static_cast<float>(((codes[i] >> shift) & 15) | high) - group_min;
    }
  }
}

// Bytes: 128 of low nibbles, 64 of the high two bits, 16 signed scales, scale.
void decode_q6_k(const uint8_t* block, float* out) {
  const uint8_t* high_bits = block + 128;
  const uint8_t* scales = block + 192;
  const float scale = load_f16(block + 208);
  for (int group = 0; group < 16; ++group) {
    const int half = group / 8;
    const int run = group % 8 / 2;  // of 32 values; runs 0 and 1 are low nibbles, 2 and 3 high ones
    const uint8_t* low_bits = block + 64 * half + 32 * (run % 2) + 16 * (group % 2);
    const uint8_t* own_high_bits = high_bits + 32 * half + 16 * (group % 2);
    const int low_shift = 4 * (run / 2);
    const int high_shift = 2 * run;
    const float group_scale = scale * static_cast<float>(static_cast<int8_t>(scales[group]));
    for (int i = 0; i < 16; ++i) {
      const int low = (low_bits[i] >> low_shift) & 15;
      const int high = (own_high_bits[i] >> high_shift) & 3;
      *out++ = group_scale * static_cast<float>((low | (high << 4)) - 32);
    }
  }
}

}  // namespace rlx::packed
