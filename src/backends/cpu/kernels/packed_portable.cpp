// The packed kernels in plain C++, for every processor: one group of 256 weights is unpacked to
// 16-bit codes with the format's offset taken off and its half scales multiplied in.
#include <hwy/targets.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "backends/cpu/kernels/packed_dot.h"
#include "backends/cpu/kernels/simd.h"
#include "tensor/half.h"

namespace rlx::cpu {
namespace {

constexpr int kGroupSize = static_cast<int>(kQuantBlock * kQuantGroup);

// A group: w = scale * code + minimum * (1, or the integer of its half).
struct Group {
  int16_t codes[kGroupSize];
  float scales[kQuantGroup];
  float minimums[kQuantGroup];
  int16_t half_minimums[2 * kQuantGroup];
};

template <typename T>
T load(const uint8_t* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}
float load_f16(const uint8_t* bytes) { return f16_to_f32(load<uint16_t>(bytes)); }

constexpr int8_t kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                   1,    13,   25,  38,  53,  69,  89,  113};
constexpr int8_t kE2M1Doubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

// Nibble i of 16 bytes, the low ones first.
int nibble(const uint8_t* bytes, int i) { return i < 16 ? bytes[i] & 15 : bytes[i - 16] >> 4; }

// One block of 32 of the formats that have such.
void unpack_block(DType dtype, const uint8_t* block, int j, Group& group) {
  int16_t* codes = group.codes + 32 * j;
  group.scales[j] = load_f16(block);
  switch (dtype) {
    case DType::kQ8_0:
      for (int i = 0; i < 32; ++i) codes[i] = static_cast<int8_t>(block[2 + i]);
      break;
    case DType::kQ4_0:
      for (int i = 0; i < 32; ++i) codes[i] = static_cast<int16_t>(nibble(block + 2, i) - 8);
      break;
    case DType::kQ4_1:
      group.minimums[j] = load_f16(block + 2);
      for (int i = 0; i < 32; ++i) codes[i] = static_cast<int16_t>(nibble(block + 4, i));
      break;
    case DType::kQ5_0:
    case DType::kQ5_1: {
      const bool has_minimum = dtype == DType::kQ5_1;
      const uint8_t* after_scales = block + (has_minimum ? 4 : 2);
      if (has_minimum) group.minimums[j] = load_f16(block + 2);
      const auto high = load<uint32_t>(after_scales);
      for (int i = 0; i < 32; ++i) {
        const int code = nibble(after_scales + 4, i) | static_cast<int>(high >> i & 1u) << 4;
        codes[i] = static_cast<int16_t>(has_minimum ? code : code - 16);
      }
      break;
    }
    case DType::kIQ4_NL:
      for (int i = 0; i < 32; ++i) codes[i] = kIq4Values[nibble(block + 2, i)];
      break;
    default: {  // mxfp4: half of 2^(exponent - 127), subnormal for exponents 0 and 1
      const uint32_t exponent = block[0];
      const uint32_t bits = exponent < 2 ? 0x00200000u << exponent : (exponent - 1) << 23;
      group.scales[j] = std::bit_cast<float>(bits);
      for (int i = 0; i < 32; ++i) codes[i] = kE2M1Doubled[nibble(block + 1, i)];
    }
  }
}

void unpack_q4_or_q5_k(DType dtype, const uint8_t* block, Group& group) {
  const float scale = load_f16(block), min_scale = load_f16(block + 2);
  const uint8_t* packed = block + 4;
  const bool has_fifth_bits = dtype == DType::kQ5_K;
  const uint8_t* nibbles = block + (has_fifth_bits ? 48 : 16);
  for (int j = 0; j < 8; ++j) {
    int own_scale, own_min;
    if (j < 4) {
      own_scale = packed[j] & 63;
      own_min = packed[j + 4] & 63;
    } else {
      own_scale = (packed[j + 4] & 15) | packed[j - 4] >> 6 << 4;
      own_min = packed[j + 4] >> 4 | packed[j] >> 6 << 4;
    }
    group.scales[j] = scale * static_cast<float>(own_scale);
    group.minimums[j] = -min_scale * static_cast<float>(own_min);
    for (int i = 0; i < 32; ++i) {
      int code = nibbles[32 * (j / 2) + i] >> (4 * (j % 2)) & 15;
      if (has_fifth_bits) code |= (block[16 + i] >> j & 1) << 4;
      group.codes[32 * j + i] = static_cast<int16_t>(code);
    }
  }
}

void unpack_q6_k(const uint8_t* block, Group& group) {
  for (int i = 0; i < kGroupSize; ++i) {
    const int j = i / 32, half = j / 4, run = j % 4, l = i % 32;
    const int low = block[64 * half + 32 * (run % 2) + l] >> (4 * (run / 2)) & 15;
    const int high = block[128 + 32 * half + l] >> (2 * run) & 3;
    const auto own_scale = static_cast<int8_t>(block[192 + i / 16]);
    group.codes[i] = static_cast<int16_t>(own_scale * ((low | high << 4) - 32));
  }
  std::fill_n(group.scales, kQuantGroup, load_f16(block + 208));
}

void unpack_q3_k(const uint8_t* block, Group& group) {
  for (int i = 0; i < kGroupSize; ++i) {
    const int j = i / 32, l = i % 32, g = i / 16;
    const int low_scale = block[96 + g % 8] >> (4 * (g / 8)) & 15;
    const int high_scale = block[104 + g % 4] >> (2 * (g / 4)) & 3;
    const int low = block[32 + 32 * (j / 4) + l] >> (2 * (j % 4)) & 3;
    const int high = block[l] >> j & 1;
    group.codes[i] =
        static_cast<int16_t>(((low_scale | high_scale << 4) - 32) * ((low | high << 2) - 4));
  }
  std::fill_n(group.scales, kQuantGroup, load_f16(block + 108));
}

void unpack_q2_k(const uint8_t* block, Group& group) {
  for (int i = 0; i < kGroupSize; ++i) {
    const int j = i / 32, l = i % 32, g = i / 16;
    const int code = block[16 + 32 * (j / 4) + l] >> (2 * (j % 4)) & 3;
    group.codes[i] = static_cast<int16_t>((block[g] & 15) * code);
    group.half_minimums[g] = static_cast<int16_t>(block[g] >> 4);
  }
  std::fill_n(group.scales, kQuantGroup, load_f16(block + 80));
  std::fill_n(group.minimums, kQuantGroup, -load_f16(block + 82));
}

void unpack_iq4_xs(const uint8_t* block, Group& group) {
  const float scale = load_f16(block);
  const auto high_bits = load<uint16_t>(block + 2);
  for (int j = 0; j < 8; ++j) {
    const int own = (block[4 + j / 2] >> (4 * (j % 2)) & 15) | (high_bits >> (2 * j) & 3) << 4;
    group.scales[j] = scale * static_cast<float>(own - 32);
    for (int i = 0; i < 32; ++i) {
      group.codes[32 * j + i] = kIq4Values[nibble(block + 8 + 16 * j, i)];
    }
  }
}

constexpr bool has_minimum(DType dtype) {
  return dtype == DType::kQ4_1 || dtype == DType::kQ5_1 || dtype == DType::kQ4_K ||
         dtype == DType::kQ5_K || dtype == DType::kQ2_K;
}

// The group of the row at `w` that begins at this block; blocks beyond the last give zeros.
template <DType kDType>
void unpack_group(const uint8_t* w, int64_t block, int64_t blocks, Group& group) {
  if (elements_per_block(kDType) == kQuantBlock) {
    std::memset(&group, 0, sizeof(group));
    const int64_t size = bytes_per_block(kDType);
    for (int64_t j = 0; j < std::min(kQuantGroup, blocks - block); ++j) {
      unpack_block(kDType, w + (block + j) * size, static_cast<int>(j), group);
    }
    return;
  }
  const uint8_t* from = w + block / kQuantGroup * bytes_per_block(kDType);
  switch (kDType) {
    case DType::kQ2_K:
      return unpack_q2_k(from, group);
    case DType::kQ3_K:
      return unpack_q3_k(from, group);
    case DType::kQ6_K:
      return unpack_q6_k(from, group);
    case DType::kIQ4_XS:
      return unpack_iq4_xs(from, group);
    default:
      return unpack_q4_or_q5_k(kDType, from, group);
  }
}

template <DType kDType>
void add_group(const Group& group, const QuantizedRow& row, int64_t block, float* partial) {
  for (int64_t j = 0; j < kQuantGroup; ++j) {
    const int16_t* w = group.codes + 32 * j;
    const int8_t* x = row.codes + (block + j) * kQuantBlock;
    int32_t sum = 0;
    for (int i = 0; i < kQuantBlock; ++i) sum += w[i] * x[i];
    const float x_scale = row.scales[block + j];
    partial[j] += group.scales[j] * x_scale * static_cast<float>(sum);
    if constexpr (kDType == DType::kQ2_K) {
      const int32_t minimum = group.half_minimums[2 * j] * row.half_sums[2 * (block + j)] +
                              group.half_minimums[2 * j + 1] * row.half_sums[2 * (block + j) + 1];
      partial[j] += group.minimums[j] * x_scale * static_cast<float>(minimum);
    } else if constexpr (has_minimum(kDType)) {
      partial[j] += group.minimums[j] * row.scaled_sums[block + j];
    }
  }
}

float add_partial_sums(const float* s) {
  return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
}

void quantize(const float* x, int64_t depth, const QuantizedRow& row) {
  const int64_t blocks = depth / kQuantBlock;
  const QuantizedLayout layout(depth, false);
  for (int64_t b = 0; b < layout.padded_blocks; ++b) {
    int8_t* codes = row.codes + b * kQuantBlock;
    std::memset(codes, 0, kQuantBlock);
    float scale = 0;
    if (b < blocks) {
      const float* from = x + b * kQuantBlock;
      float largest = 0;
      for (int i = 0; i < kQuantBlock; ++i) {
        const float magnitude = std::abs(from[i]);
        if (!(magnitude <= largest)) largest = magnitude;  // also a NaN, which then stays
      }
      if (!(largest <= std::numeric_limits<float>::max())) {
        scale = std::numeric_limits<float>::quiet_NaN();
      } else if (largest > 1e-36f) {  // below, 127 / largest could overflow
        scale = largest / 127.0f;
        const float inverse = 127.0f / largest;
        for (int i = 0; i < kQuantBlock; ++i) {
          codes[i] = static_cast<int8_t>(std::nearbyintf(from[i] * inverse));
        }
      }
    }
    int sums[2] = {0, 0};
    for (int i = 0; i < kQuantBlock; ++i) sums[i / 16] += codes[i];
    row.scales[b] = scale;
    row.scaled_sums[b] = scale * static_cast<float>(sums[0] + sums[1]);
    row.offset_sums[b] = 0;
    row.half_sums[2 * b] = static_cast<int16_t>(sums[0]);
    row.half_sums[2 * b + 1] = static_cast<int16_t>(sums[1]);
  }
}

template <DType kDType>
void dot(const std::byte* w, int64_t w_stride, int64_t columns, int64_t depth,
         const QuantizedRow& row, float* out) {
  const int64_t blocks = depth / kQuantBlock;
  for (int64_t c = 0; c < columns; ++c) {
    float partial[kQuantGroup] = {};
    Group group;
    for (int64_t block = 0; block < blocks; block += kQuantGroup) {
      unpack_group<kDType>(reinterpret_cast<const uint8_t*>(w + c * w_stride), block, blocks,
                           group);
      add_group<kDType>(group, row, block, partial);
    }
    out[c] = add_partial_sums(partial);
  }
}

template <DType kDType>
void decode_strip(const std::byte* w, int64_t w_stride, int64_t columns, int64_t depth,
                  std::byte* strip) {
  const int64_t blocks = depth / kQuantBlock;
  auto* groups = reinterpret_cast<Group*>(strip);
  for (int64_t block = 0; block < blocks; block += kQuantGroup) {
    for (int64_t c = 0; c < kStripColumns; ++c, ++groups) {
      if (c < columns) {
        unpack_group<kDType>(reinterpret_cast<const uint8_t*>(w + c * w_stride), block, blocks,
                             *groups);
      } else {
        std::memset(groups, 0, sizeof(*groups));
      }
    }
  }
}

template <DType kDType>
void multiply_strip(const std::byte* strip, int64_t depth, const QuantizedRow* rows,
                    int64_t num_rows, float* out, int64_t out_stride) {
  const int64_t blocks = depth / kQuantBlock;
  const auto* groups = reinterpret_cast<const Group*>(strip);
  for (int64_t r = 0; r < num_rows; ++r) {
    for (int64_t c = 0; c < kStripColumns; ++c) {
      float partial[kQuantGroup] = {};
      for (int64_t block = 0; block < blocks; block += kQuantGroup) {
        add_group<kDType>(groups[block / kQuantGroup * kStripColumns + c], rows[r], block, partial);
      }
      out[r * out_stride + c] = add_partial_sums(partial);
    }
  }
}

template <DType kDType>
constexpr PackedKernels kKernelsOf{false,
                                   static_cast<int64_t>(sizeof(Group)) * kStripColumns,
                                   quantize,
                                   dot<kDType>,
                                   decode_strip<kDType>,
                                   multiply_strip<kDType>};

}  // namespace

const PackedKernels* find_portable_packed_kernels(DType dtype) {
  switch (dtype) {
    case DType::kQ8_0:
      return &kKernelsOf<DType::kQ8_0>;
    case DType::kQ4_0:
      return &kKernelsOf<DType::kQ4_0>;
    case DType::kQ4_1:
      return &kKernelsOf<DType::kQ4_1>;
    case DType::kQ5_0:
      return &kKernelsOf<DType::kQ5_0>;
    case DType::kQ5_1:
      return &kKernelsOf<DType::kQ5_1>;
    case DType::kQ2_K:
      return &kKernelsOf<DType::kQ2_K>;
    case DType::kQ3_K:
      return &kKernelsOf<DType::kQ3_K>;
    case DType::kQ4_K:
      return &kKernelsOf<DType::kQ4_K>;
    case DType::kQ5_K:
      return &kKernelsOf<DType::kQ5_K>;
    case DType::kQ6_K:
      return &kKernelsOf<DType::kQ6_K>;
    case DType::kIQ4_NL:
      return &kKernelsOf<DType::kIQ4_NL>;
    case DType::kIQ4_XS:
      return &kKernelsOf<DType::kIQ4_XS>;
    case DType::kMXFP4:
      return &kKernelsOf<DType::kMXFP4>;
    default:
      return nullptr;
  }
}

const PackedKernels* find_packed_kernels(DType dtype) {
#if HWY_ARCH_X86_64
  // Asked once: CPUID leaves a virtual machine, which takes microseconds.
  static const bool has_avx2 = (hwy::SupportedTargets() & HWY_AVX2) != 0;
  if (has_avx2) return find_avx2_packed_kernels(dtype);
#endif
  return find_portable_packed_kernels(dtype);
}

}  // namespace rlx::cpu
