#include <bit>

#include "tensor/packed_blocks.h"
#include "tensor/packed_grids.h"

namespace rlx::packed {
namespace {

constexpr float kIq2Values[4] = {8, 25, 43, 0};  // code 3 does not occur
constexpr float kIq3XxsValues[8] = {4, 12, 20, 28, 36, 44, 52, 62};
constexpr float kIq3SValues[8] = {1, 3, 5, 7, 9, 11, 13, 15};
constexpr float kIq1Delta = 0.125f;

float with_sign(float value, uint32_t signs, int index) {
  return ((signs >> index) & 1u) != 0 ? -value : value;
}

// Seven sign bits; the eighth makes the number of negative values even.
uint32_t expand_signs(uint32_t signs) {
  signs &= 127u;
  return signs | (static_cast<uint32_t>(std::popcount(signs) & 1) << 7);
}

// Eight values from a grid of 2-bit codes.
void decode_iq2_entry(uint16_t entry, uint32_t signs, float scale, float* out) {
  for (int i = 0; i < 8; ++i) {
    out[i] = with_sign(scale * kIq2Values[(entry >> (2 * i)) & 3], signs, i);
  }
}

// Four values from a grid of nibbles; `signs` has the first in its lowest bit.
void decode_iq3_entry(uint16_t entry, const float* values, uint32_t signs, float scale,
                      float* out) {
  for (int i = 0; i < 4; ++i) {
    out[i] = with_sign(scale * values[(entry >> (4 * i)) & 7], signs, i);
  }
}

// Eight values of -1, 0 or 1, moved by delta.
void decode_iq1_entry(uint16_t entry, float delta, float scale, float* out) {
  for (int i = 0; i < 8; ++i) {
    const int value = ((entry >> (2 * i)) & 3) - 1;
    out[i] = scale * (static_cast<float>(value) + delta);
  }
}

}  // namespace

// Bytes: scale, then for each 32 values four grid indices and a word of four 7-bit signs with the
// 4-bit scale on top.
void decode_iq2_xxs(const uint8_t* block, float* out) {
  const float scale = load_f16(block);
  for (int group = 0; group < 8; ++group) {
    const uint8_t* indices = block + 2 + 8 * group;
    const auto word = load<uint32_t>(indices + 4);
    const float group_scale = scale * (0.5f + static_cast<float>(word >> 28)) * 0.25f;
    for (int i = 0; i < 4; ++i) {
      decode_iq2_entry(kIq2XxsGrid[indices[i]], expand_signs(word >> (7 * i)), group_scale, out);
      out += 8;
    }
  }
}

// Bytes: scale, 32 words of a 9-bit grid index and 7 signs, 8 of 4-bit scales for 16 values each.
void decode_iq2_xs(const uint8_t* block, float* out) {
  const float scale = load_f16(block);
  const uint8_t* scales = block + 66;
  for (int i = 0; i < 32; ++i) {
    const auto word = load<uint16_t>(block + 2 + 2 * i);
    const int nibble = (scales[i / 4] >> (4 * ((i / 2) % 2))) & 15;
    const float group_scale = scale * (0.5f + static_cast<float>(nibble)) * 0.25f;
    decode_iq2_entry(kIq2XsGrid[word & 511u], expand_signs(word >> 9), group_scale, out);
    out += 8;
  }
}

// Bytes: scale, 32 low bytes of grid indices, 32 of signs, 8 of the indices' high two bits, 8 of
// 4-bit scales for 16 values each.
void decode_iq2_s(const uint8_t* block, float* out) {
  const float scale = load_f16(block);
  const uint8_t* signs = block + 34;
  const uint8_t* high_bits = block + 66;
  const uint8_t* scales = block + 74;
  for (int i = 0; i < 32; ++i) {
    const int index = block[2 + i] | (((high_bits[i / 4] >> (2 * (i % 4))) & 3) << 8);
    const int nibble = (scales[i / 4] >> (4 * ((i / 2) % 2))) & 15;
    const float group_scale = scale * (0.5f + static_cast<float>(nibble)) * 0.25f;
    decode_iq2_entry(kIq2SGrid[static_cast<size_t>(index)], signs[i], group_scale, out);
    out += 8;
  }
}

// Bytes: scale, 64 grid indices of 4 values each, then for each 32 values a word of four 7-bit
// signs with the 4-bit scale on top.
void decode_iq3_xxs(const uint8_t* block, float* out) {
  const float scale = load_f16(block);
  for (int group = 0; group < 8; ++group) {
    const uint8_t* indices = block + 2 + 8 * group;
    const auto word = load<uint32_t>(block + 66 + 4 * group);
    const float group_scale = scale * (0.5f + static_cast<float>(word >> 28)) * 0.5f;
    for (int i = 0; i < 8; ++i) {
      const uint32_t signs = expand_signs(word >> (7 * (i / 2))) >> (4 * (i % 2));
      decode_iq3_entry(kIq3XxsGrid[indices[i]], kIq3XxsValues, signs, group_scale, out);
      out += 4;
    }
  }
}

// Bytes: scale, 64 low bytes of grid indices, 8 of their ninth bits, 32 of signs, 4 of 4-bit scales
// for 32 values each.
void decode_iq3_s(const uint8_t* block, float* out) {
  const float scale = load_f16(block);
  const uint8_t* ninth_bits = block + 66;
  const uint8_t* signs = block + 74;
  const uint8_t* scales = block + 106;
  for (int i = 0; i < 64; ++i) {
    const int index = block[2 + i] | (((ninth_bits[i / 8] >> (i % 8)) & 1) << 8);
    const int nibble = (scales[i / 16] >> (4 * ((i / 8) % 2))) & 15;
    const float group_scale = scale * static_cast<float>(1 + 2 * nibble);
    const uint32_t own_signs = static_cast<uint32_t>(signs[i / 2]) >> (4 * (i % 2));
    decode_iq3_entry(kIq3SGrid[static_cast<size_t>(index)], kIq3SValues, own_signs, group_scale,
                     out);
    out += 4;
  }
}

// Bytes: scale, 32 low bytes of grid indices, then for each 32 values a word: four times the high
// three bits of an index, a 3-bit scale, the sign of delta.
void decode_iq1_s(const uint8_t* block, float* out) {
  const float scale = load_f16(block);
  for (int i = 0; i < 32; ++i) {
    const auto word = load<uint16_t>(block + 34 + 2 * (i / 4));
    const float group_scale = scale * static_cast<float>(2 * ((word >> 12) & 7) + 1);
    const float delta = (word & 0x8000u) != 0 ? -kIq1Delta : kIq1Delta;
    const int index = block[2 + i] | (((word >> (3 * (i % 4))) & 7) << 8);
    decode_iq1_entry(kIq1Grid[static_cast<size_t>(index)], delta, group_scale, out);
    out += 8;
  }
}

// Bytes: 32 low bytes of grid indices, 16 with a nibble for each 8 values (the high three bits of
// the index and the sign of delta), four words of four 3-bit scales for 16 values each. The top
// nibbles of those words together are the scale of the block.
void decode_iq1_m(const uint8_t* block, float* out) {
  const uint8_t* nibbles = block + 32;
  const uint8_t* scales = block + 48;
  uint32_t scale_bits = 0;
  for (int i = 0; i < 4; ++i) {
    scale_bits |= static_cast<uint32_t>(load<uint16_t>(scales + 2 * i) >> 12) << (4 * i);
  }
  const float scale = f16_to_f32(static_cast<uint16_t>(scale_bits));
  for (int i = 0; i < 32; ++i) {
    const auto word = load<uint16_t>(scales + 2 * (i / 8));
    const int code = (word >> (3 * ((i / 2) % 4))) & 7;
    const float group_scale = scale * static_cast<float>(2 * code + 1);
    const int nibble = (nibbles[i / 2] >> (4 * (i % 2))) & 15;
    const float delta = (nibble & 8) != 0 ? -kIq1Delta : kIq1Delta;
    const int index = block[i] | ((nibble & 7) << 8);
    decode_iq1_entry(kIq1Grid[static_cast<size_t>(index)], delta, group_scale, out);
    out += 8;
  }
}

void decode_iq4_nl(const uint8_t* block, float* out) {
  const float scale = load_f16(block);
  for (int i = 0; i < 16; ++i) {
    out[i] = scale * static_cast<float>(kIq4Values[block[2 + i] & 15]);
    out[i + 16] = scale * static_cast<float>(kIq4Values[block[2 + i] >> 4]);
  }
}

// Bytes: scale, a word of the high two bits of 8 scales, 4 of their low nibbles, 128 of codes.
void decode_iq4_xs(const uint8_t* block, float* out) {
  const float scale = load_f16(block);
  const auto high_bits = load<uint16_t>(block + 2);
  for (int group = 0; group < 8; ++group) {
    const int low = (block[4 + group / 2] >> (4 * (group % 2))) & 15;
    const int high = (high_bits >> (2 * group)) & 3;
    const float group_scale = scale * static_cast<float>((low | (high << 4)) - 32);
    const uint8_t* codes = block + 8 + 16 * group;
    for (int i = 0; i < 16; ++i) {
      out[i] = group_scale * static_cast<float>(kIq4Values[codes[i] & 15]);
      out[i + 16] = group_scale * static_cast<float>(kIq4Values[codes[i] >> 4]);
    }
    out += 32;
  }
}

}  // namespace rlx::packed
