// The packed kernels for AVX2. Its budget per 256 weights, at 20 GB/s and 3.4 GHz: a q4_k group of
// 144 bytes arrives in 24 cycles, a q8_0 group of 272 in 46, and four vector operations start in
// each, so decoding (one row) stays bound by memory only with few operations besides the products.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "backends/cpu/kernels/packed_dot.h"
#include "backends/cpu/kernels/simd.h"

#if HWY_ARCH_X86_64

#include <immintrin.h>

#define HWY_ATTR_AVX2 __attribute__((target("avx2,fma,f16c,bmi,bmi2")))
HWY_PUSH_ATTRIBUTES("avx2,fma,f16c,bmi,bmi2")

namespace rlx::cpu {
namespace {

#include "backends/cpu/kernels/packed_avx2_formats-inl.h"

// --- activations -------------------------------------------------------------------------------

// The code of 8 elements as int32.
HWY_INLINE __m256i round_scaled(const float* x, __m256 inverse) {
  return _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x), inverse));
}

HWY_INLINE __m256i magnitude_bits(const float* x) {
  return _mm256_and_si256(_mm256_castps_si256(_mm256_loadu_ps(x)), _mm256_set1_epi32(0x7fffffff));
}

// The largest magnitudes of 32 elements, eight of them. Compared as integers, in which order a NaN
// is the largest.
HWY_INLINE __m256i largest_magnitudes(const float* x) {
  return _mm256_max_epi32(_mm256_max_epi32(magnitude_bits(x), magnitude_bits(x + 8)),
                          _mm256_max_epi32(magnitude_bits(x + 16), magnitude_bits(x + 24)));
}

// Lane b is the largest magnitude of block b of a group.
HWY_INLINE __m256 largest_of_blocks(const float* x) {
  const auto join_two = [&](int b) HWY_ATTR_AVX2 {
    const __m256i v0 = largest_magnitudes(x + 32 * b), v1 = largest_magnitudes(x + 32 * b + 32);
    return _mm256_max_epi32(_mm256_unpacklo_epi32(v0, v1), _mm256_unpackhi_epi32(v0, v1));
  };
  const auto join_four = [&](int b) HWY_ATTR_AVX2 {
    const __m256i v0 = join_two(b), v1 = join_two(b + 2);
    return _mm256_max_epi32(_mm256_unpacklo_epi64(v0, v1), _mm256_unpackhi_epi64(v0, v1));
  };
  const __m256i low = join_four(0), high = join_four(4);
  return _mm256_castsi256_ps(_mm256_max_epi32(_mm256_permute2x128_si256(low, high, 0x20),
                                              _mm256_permute2x128_si256(low, high, 0x31)));
}

// Where the first 16 codes of block j of a group lie when blocks are paired; the others lie 32
// bytes further on.
constexpr int64_t paired_offset(int64_t j) { return j % 4 * 64 + j / 4 * 16; }

// Quantises block b of a group at `x` and stores its codes; returns four sums of its first half and
// four of the second.
template <class F>
HWY_INLINE __m256i quantize_block(const float* x, __m256 inverse, const QuantizedRow& row,
                                  int64_t block, int64_t b) {
  x += b * kQuantBlock;
  const __m256i low = _mm256_packs_epi32(round_scaled(x, inverse), round_scaled(x + 8, inverse));
  const __m256i high =
      _mm256_packs_epi32(round_scaled(x + 16, inverse), round_scaled(x + 24, inverse));
  // Packing works on halves: put the groups of four back in order.
  const __m256i codes = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(low, high),
                                                    _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
  if constexpr (F::kPaired) {
    auto* to = reinterpret_cast<__m128i*>(row.codes + block * kQuantBlock + paired_offset(b));
    _mm_storeu_si128(to, _mm256_castsi256_si128(codes));
    _mm_storeu_si128(to + 2, _mm256_extracti128_si256(codes, 1));
  } else {
    auto* to = reinterpret_cast<__m256i*>(row.codes + (block + b) * kQuantBlock);
    _mm256_storeu_si256(to, codes);
  }
  if (row.wide_codes != nullptr) {
    auto* wide = reinterpret_cast<__m256i*>(row.wide_codes + (block + b) * kQuantBlock);
    _mm256_storeu_si256(wide, _mm256_cvtepi8_epi16(_mm256_castsi256_si128(codes)));
    _mm256_storeu_si256(wide + 1, _mm256_cvtepi8_epi16(_mm256_extracti128_si256(codes, 1)));
  }
  return _mm256_madd_epi16(_mm256_maddubs_epi16(_mm256_set1_epi8(1), codes), _mm256_set1_epi16(1));
}

template <class F>
HWY_INLINE void quantize_group(const float* x, const QuantizedRow& row, int64_t block) {
  const __m256 largest = largest_of_blocks(x);
  const __m256 is_finite =
      _mm256_cmp_ps(largest, _mm256_set1_ps(std::numeric_limits<float>::max()), _CMP_LE_OQ);
  // Below 1e-36, 127 / largest could overflow.
  const __m256 is_usable =
      _mm256_and_ps(is_finite, _mm256_cmp_ps(largest, _mm256_set1_ps(1e-36f), _CMP_GT_OQ));
  const __m256 most = _mm256_set1_ps(127.0f);
  const __m256 scales =
      _mm256_blendv_ps(_mm256_set1_ps(std::numeric_limits<float>::quiet_NaN()),
                       _mm256_and_ps(_mm256_div_ps(largest, most), is_usable), is_finite);
  alignas(32) float inverses[kQuantGroup];
  _mm256_store_ps(inverses, _mm256_and_ps(_mm256_div_ps(most, largest), is_usable));
  const auto quantize_two = [&](int64_t b) HWY_ATTR_AVX2 {
    const __m256i first = quantize_block<F>(x, _mm256_set1_ps(inverses[b]), row, block, b);
    const __m256i second = quantize_block<F>(x, _mm256_set1_ps(inverses[b + 1]), row, block, b + 1);
    return _mm256_hadd_epi32(first, second);
  };
  const auto quantize_four = [&](int64_t b) HWY_ATTR_AVX2 {
    const __m256i first = quantize_two(b);
    return _mm256_hadd_epi32(first, quantize_two(b + 2));
  };
  // Of each block the sum of the first half of its codes, and that of the second.
  const __m256i low = quantize_four(0), high = quantize_four(4);
  const __m256i first = _mm256_permute2x128_si256(low, high, 0x20);
  const __m256i second = _mm256_permute2x128_si256(low, high, 0x31);
  const __m256i sums = _mm256_add_epi32(first, second);
  _mm256_storeu_ps(row.scales + block, scales);
  _mm256_storeu_ps(row.scaled_sums + block, _mm256_mul_ps(scales, _mm256_cvtepi32_ps(sums)));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(row.offset_sums + block),
                      _mm256_mullo_epi32(sums, _mm256_set1_epi32(F::kOffset)));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(row.half_sums + 2 * block),
                      _mm256_blend_epi16(first, _mm256_slli_epi32(second, 16), 0xaa));
}

template <class F>
void quantize(const float* x, int64_t depth, const QuantizedRow& row) {
  constexpr int64_t kGroup = kQuantBlock * kQuantGroup;
  int64_t i = 0;
  for (; i + kGroup <= depth; i += kGroup) quantize_group<F>(x + i, row, i / kQuantBlock);
  if (i < depth) {
    float tail[kGroup] = {};
    std::memcpy(tail, x + i, static_cast<size_t>(depth - i) * sizeof(float));
    quantize_group<F>(tail, row, i / kQuantBlock);
  }
}

// --- one row -----------------------------------------------------------------------------------

// Sums of two neighbouring products of block j, 16 of 16 bits.
template <class F, int j>
HWY_INLINE __m256i pair_products(const uint8_t* group, const int8_t* codes) {
  const __m256i w = F::template load_codes<j>(group);
  const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes + 32 * j));
  if constexpr (F::kMaxCode > 0) return _mm256_maddubs_epi16(w, x);
  // |w| x (x with w's sign): 128 x 127 x 2 fits 16 bits.
  return _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w));
}

// Adds within two or four blocks at a time, block after block: 32-bit lanes [a a b b | a a b b] and
// then [a b c d | a b c d]. Where the sums fit 16 bits (4 and then 8 products of codes up to
// kMaxCode and 127) packing and multiplying by one takes 2 operations instead of the 3 of a
// horizontal addition.
template <class F>
HWY_INLINE __m256i add_in_pairs(__m256i a, __m256i b) {
  const __m256i ones = _mm256_set1_epi16(1);
  a = _mm256_madd_epi16(a, ones);
  b = _mm256_madd_epi16(b, ones);
  if constexpr (F::kMaxCode > 0 && F::kMaxCode * 127 * 4 <= 32767) {
    return _mm256_madd_epi16(_mm256_packs_epi32(a, b), ones);
  } else {
    return _mm256_hadd_epi32(a, b);
  }
}
template <class F>
HWY_INLINE __m256i add_in_fours(__m256i ab, __m256i cd) {
  if constexpr (F::kMaxCode > 0 && F::kMaxCode * 127 * 8 <= 32767) {
    return _mm256_madd_epi16(_mm256_packs_epi32(ab, cd), _mm256_set1_epi16(1));
  } else {
    return _mm256_hadd_epi32(ab, cd);
  }
}

// The integers of blocks k (low half) and k + 4 (high half), each as four sums of 8 products.
template <class F, int k>
HWY_INLINE __m256i pair_sums(const uint8_t* group, const int8_t* codes) {
  const auto* x = reinterpret_cast<const __m256i*>(codes + 64 * k);
  const CodePair w = F::template load_pair<k>(group);
  const __m256i x0 = _mm256_loadu_si256(x), x1 = _mm256_loadu_si256(x + 1);
  const __m256i ones = _mm256_set1_epi16(1);
  if constexpr (F::kMaxCode > 0) {
    static_assert(F::kMaxCode * 127 * 4 <= 32767);
    return _mm256_madd_epi16(
        _mm256_add_epi16(_mm256_maddubs_epi16(w.first, x0), _mm256_maddubs_epi16(w.second, x1)),
        ones);
  }
  const auto multiply = [&](__m256i a, __m256i b) HWY_ATTR_AVX2 {
    return _mm256_madd_epi16(_mm256_maddubs_epi16(_mm256_abs_epi8(a), _mm256_sign_epi8(b, a)),
                             ones);
  };
  return _mm256_add_epi32(multiply(w.first, x0), multiply(w.second, x1));
}

// Adds neighbouring lanes of a and of b, within halves; the lanes hold sums of kProducts products.
template <class F, int kProducts>
HWY_INLINE __m256i add_neighbours(__m256i a, __m256i b) {
  if constexpr (F::kMaxCode > 0 && F::kMaxCode * 127 * kProducts <= 32767) {
    return _mm256_madd_epi16(_mm256_packs_epi32(a, b), _mm256_set1_epi16(1));
  } else {
    return _mm256_hadd_epi32(a, b);
  }
}

template <class F>
HWY_INLINE __m256i paired_block_sums(const uint8_t* group, const QuantizedRow& row, int64_t block) {
  const int8_t* codes = row.codes + block * kQuantBlock;
  const __m256i sums = add_neighbours<F, 16>(
      add_neighbours<F, 8>(pair_sums<F, 0>(group, codes), pair_sums<F, 1>(group, codes)),
      add_neighbours<F, 8>(pair_sums<F, 2>(group, codes), pair_sums<F, 3>(group, codes)));
  if constexpr (F::kOffset == 0) return sums;
  return _mm256_sub_epi32(
      sums, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(row.offset_sums + block)));
}

// The integer of each of the 8 blocks: sum of (code - offset) * x code, times half scales.
template <class F>
HWY_INLINE __m256i block_sums(const uint8_t* group, const QuantizedRow& row, int64_t block) {
  if constexpr (F::kPaired) return paired_block_sums<F>(group, row, block);
  const int8_t* codes = row.codes + block * kQuantBlock;
  __m256i low = add_in_fours<F>(
      add_in_pairs<F>(pair_products<F, 0>(group, codes), pair_products<F, 1>(group, codes)),
      add_in_pairs<F>(pair_products<F, 2>(group, codes), pair_products<F, 3>(group, codes)));
  __m256i high = add_in_fours<F>(
      add_in_pairs<F>(pair_products<F, 4>(group, codes), pair_products<F, 5>(group, codes)),
      add_in_pairs<F>(pair_products<F, 6>(group, codes), pair_products<F, 7>(group, codes)));
  // Lanes are halves: first halves of blocks 0 to 3, second halves of 0 to 3; then of 4 to 7.
  if constexpr (F::kHalfScales) {
    const __m128i scales = F::load_half_scales(group);
    const __m128i by_half = _mm_shuffle_epi8(
        scales, _mm_setr_epi8(0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15));
    low = _mm256_mullo_epi32(low, _mm256_cvtepi8_epi32(by_half));
    high = _mm256_mullo_epi32(high, _mm256_cvtepi8_epi32(_mm_srli_si128(by_half, 8)));
  }
  __m256i sums = _mm256_add_epi32(_mm256_permute2x128_si256(low, high, 0x20),
                                  _mm256_permute2x128_si256(low, high, 0x31));
  if constexpr (F::kOffset > 0) {
    __m256i offsets;
    if constexpr (F::kHalfScales) {
      const __m256i half_sums =
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(row.half_sums + 2 * block));
      offsets = _mm256_madd_epi16(_mm256_cvtepi8_epi16(F::load_half_scales(group)), half_sums);
      offsets = _mm256_slli_epi32(offsets, std::countr_zero(static_cast<unsigned>(F::kOffset)));
    } else {
      offsets = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(row.offset_sums + block));
    }
    sums = _mm256_sub_epi32(sums, offsets);
  }
  return sums;
}

// Adds the terms of 8 blocks, one to each partial sum.
template <class F>
HWY_INLINE __m256 add_group(const uint8_t* group, const QuantizedRow& row, int64_t block,
                            __m256 sums) {
  const __m256 x_scales = _mm256_loadu_ps(row.scales + block);
  const __m256 integers = _mm256_cvtepi32_ps(block_sums<F>(group, row, block));
  sums = _mm256_fmadd_ps(_mm256_mul_ps(F::load_scales(group), x_scales), integers, sums);
  if constexpr (F::kMinimum == Minimum::kBlocks) {
    sums = _mm256_fmadd_ps(F::load_minimums(group), _mm256_loadu_ps(row.scaled_sums + block), sums);
  } else if constexpr (F::kMinimum == Minimum::kHalves) {
    const __m256i half_sums =
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(row.half_sums + 2 * block));
    const __m256i minimums =
        _mm256_madd_epi16(_mm256_cvtepi8_epi16(F::load_half_minimums(group)), half_sums);
    sums = _mm256_fmadd_ps(_mm256_mul_ps(F::load_minimums(group), x_scales),
                           _mm256_cvtepi32_ps(minimums), sums);
  }
  return sums;
}

// Blocks that are left after the last whole group, padded with zeros to a group.
template <class F>
HWY_INLINE __m256 add_tail(const uint8_t* from, int64_t blocks, const QuantizedRow& row,
                           int64_t block, __m256 sums) {
  uint8_t tail[F::kBytes] = {};
  std::memcpy(tail, from, static_cast<size_t>(blocks * F::kBlockBytes));
  return add_group<F>(tail, row, block, sums);
}

// C columns at once, each a stream of memory of its own.
template <class F, int C>
HWY_INLINE void dot_columns(const uint8_t* w0, int64_t w_stride, int64_t depth,
                            const QuantizedRow& row, float* out) {
  const uint8_t* w1 = w0 + (C > 1 ? w_stride : 0);
  const uint8_t* w2 = w1 + (C > 1 ? w_stride : 0);
  const uint8_t* w3 = w2 + (C > 1 ? w_stride : 0);
  __m256 s0 = _mm256_setzero_ps(), s1 = s0, s2 = s0, s3 = s0;
  const int64_t groups = depth / (kQuantBlock * kQuantGroup);
  for (int64_t g = 0; g < groups; ++g) {
    const int64_t at = g * F::kBytes, block = g * kQuantGroup;
    s0 = add_group<F>(w0 + at, row, block, s0);
    if constexpr (C > 1) {
      s1 = add_group<F>(w1 + at, row, block, s1);
      s2 = add_group<F>(w2 + at, row, block, s2);
      s3 = add_group<F>(w3 + at, row, block, s3);
    }
  }
  if constexpr (F::kGroupBlocks > 1) {
    const int64_t block = groups * kQuantGroup, blocks = depth / kQuantBlock - block;
    if (blocks > 0) {
      const int64_t at = groups * F::kBytes;
      s0 = add_tail<F>(w0 + at, blocks, row, block, s0);
      if constexpr (C > 1) {
        s1 = add_tail<F>(w1 + at, blocks, row, block, s1);
        s2 = add_tail<F>(w2 + at, blocks, row, block, s2);
        s3 = add_tail<F>(w3 + at, blocks, row, block, s3);
      }
    }
  }
  // ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7)) of each.
  const __m256 quads = _mm256_hadd_ps(_mm256_hadd_ps(s0, s1), _mm256_hadd_ps(s2, s3));
  const __m128 sums = _mm_add_ps(_mm256_castps256_ps128(quads), _mm256_extractf128_ps(quads, 1));
  if constexpr (C > 1) {
    _mm_storeu_ps(out, sums);
  } else {
    _mm_store_ss(out, sums);
  }
}

template <class F>
void dot(const std::byte* weights, int64_t w_stride, int64_t columns, int64_t depth,
         const QuantizedRow& row, float* out) {
  const auto* w = reinterpret_cast<const uint8_t*>(weights);
  int64_t c = 0;
  for (; c + 4 <= columns; c += 4)
    dot_columns<F, 4>(w + c * w_stride, w_stride, depth, row, out + c);
  for (; c < columns; ++c) dot_columns<F, 1>(w + c * w_stride, w_stride, depth, row, out + c);
}

// --- strips of 16 columns ------------------------------------------------------------------------

// A group of a strip: for each of its 8 blocks codes[step][column], where a step is 4 codes of a
// byte or 2 of 16 bits (one 32-bit lane), then tables[block][column] of 32-bit lanes.
template <class F>
struct Strip {
  static constexpr bool kWide = F::kMaxCode == 0;
  static constexpr int64_t kSteps = kWide ? 16 : 8;
  static constexpr int64_t kBlockBytes = kSteps * kStripColumns * 4;
  static constexpr int64_t kTableBytes = kQuantGroup * kStripColumns * 4;
  static constexpr int64_t kScales = kQuantGroup * kBlockBytes;
  static constexpr int64_t kMinimums = kScales + kTableBytes;
  // Half scales as 16-bit pairs: (first, second), (first, first), (second, second).
  static constexpr int64_t kHalfPairs =
      kMinimums + (F::kMinimum != Minimum::kNone ? kTableBytes : 0);
  static constexpr int64_t kHalfMinimums = kHalfPairs + (F::kHalfScales ? 3 * kTableBytes : 0);
  static constexpr int64_t kBytes =
      kHalfMinimums + (F::kMinimum == Minimum::kHalves ? kTableBytes : 0);
};

// Stores the 8 lanes of 8 columns as 8 rows, kStripColumns lanes apart.
HWY_INLINE void store_transposed(__m256i c0, __m256i c1, __m256i c2, __m256i c3, __m256i c4,
                                 __m256i c5, __m256i c6, __m256i c7, std::byte* to) {
  const __m256i a0 = _mm256_unpacklo_epi32(c0, c1), a1 = _mm256_unpackhi_epi32(c0, c1);
  const __m256i a2 = _mm256_unpacklo_epi32(c2, c3), a3 = _mm256_unpackhi_epi32(c2, c3);
  const __m256i a4 = _mm256_unpacklo_epi32(c4, c5), a5 = _mm256_unpackhi_epi32(c4, c5);
  const __m256i a6 = _mm256_unpacklo_epi32(c6, c7), a7 = _mm256_unpackhi_epi32(c6, c7);
  const __m256i b0 = _mm256_unpacklo_epi64(a0, a2), b1 = _mm256_unpackhi_epi64(a0, a2);
  const __m256i b2 = _mm256_unpacklo_epi64(a1, a3), b3 = _mm256_unpackhi_epi64(a1, a3);
  const __m256i b4 = _mm256_unpacklo_epi64(a4, a6), b5 = _mm256_unpackhi_epi64(a4, a6);
  const __m256i b6 = _mm256_unpacklo_epi64(a5, a7), b7 = _mm256_unpackhi_epi64(a5, a7);
  auto* rows = reinterpret_cast<__m256i*>(to);
  _mm256_store_si256(rows + 0, _mm256_permute2x128_si256(b0, b4, 0x20));
  _mm256_store_si256(rows + 2, _mm256_permute2x128_si256(b1, b5, 0x20));
  _mm256_store_si256(rows + 4, _mm256_permute2x128_si256(b2, b6, 0x20));
  _mm256_store_si256(rows + 6, _mm256_permute2x128_si256(b3, b7, 0x20));
  _mm256_store_si256(rows + 8, _mm256_permute2x128_si256(b0, b4, 0x31));
  _mm256_store_si256(rows + 10, _mm256_permute2x128_si256(b1, b5, 0x31));
  _mm256_store_si256(rows + 12, _mm256_permute2x128_si256(b2, b6, 0x31));
  _mm256_store_si256(rows + 14, _mm256_permute2x128_si256(b3, b7, 0x31));
}

// Block j of 8 columns.
template <class F, int j>
HWY_INLINE void decode_block(const uint8_t* const* groups, std::byte* strip) {
  std::byte* to = strip + j * Strip<F>::kBlockBytes;
  const __m256i c0 = F::template load_codes<j>(groups[0]);
  const __m256i c1 = F::template load_codes<j>(groups[1]);
  const __m256i c2 = F::template load_codes<j>(groups[2]);
  const __m256i c3 = F::template load_codes<j>(groups[3]);
  const __m256i c4 = F::template load_codes<j>(groups[4]);
  const __m256i c5 = F::template load_codes<j>(groups[5]);
  const __m256i c6 = F::template load_codes<j>(groups[6]);
  const __m256i c7 = F::template load_codes<j>(groups[7]);
  if constexpr (Strip<F>::kWide) {
    const auto low = [&](__m256i v)
                         HWY_ATTR_AVX2 { return _mm256_cvtepi8_epi16(_mm256_castsi256_si128(v)); };
    const auto high = [&](__m256i v) HWY_ATTR_AVX2 {
      return _mm256_cvtepi8_epi16(_mm256_extracti128_si256(v, 1));
    };
    store_transposed(low(c0), low(c1), low(c2), low(c3), low(c4), low(c5), low(c6), low(c7), to);
    store_transposed(high(c0), high(c1), high(c2), high(c3), high(c4), high(c5), high(c6), high(c7),
                     to + Strip<F>::kBlockBytes / 2);
  } else {
    store_transposed(c0, c1, c2, c3, c4, c5, c6, c7, to);
  }
}

template <class Load>
HWY_INLINE void decode_table(const uint8_t* const* g, std::byte* to, Load load) {
  store_transposed(load(g[0]), load(g[1]), load(g[2]), load(g[3]), load(g[4]), load(g[5]),
                   load(g[6]), load(g[7]), to);
}

template <class F, int... kBlocks>
HWY_INLINE void decode_columns(const uint8_t* const* groups, std::byte* strip,
                               std::integer_sequence<int, kBlocks...>) {
  (decode_block<F, kBlocks>(groups, strip), ...);
  decode_table(groups, strip + Strip<F>::kScales, [&](const uint8_t* group) HWY_ATTR_AVX2 {
    return _mm256_castps_si256(F::load_scales(group));
  });
  if constexpr (F::kMinimum != Minimum::kNone) {
    decode_table(groups, strip + Strip<F>::kMinimums, [&](const uint8_t* group) HWY_ATTR_AVX2 {
      return _mm256_castps_si256(F::load_minimums(group));
    });
  }
  if constexpr (F::kHalfScales) {
    std::byte* pairs = strip + Strip<F>::kHalfPairs;
    decode_table(groups, pairs, [&](const uint8_t* group) HWY_ATTR_AVX2 {
      return _mm256_cvtepi8_epi16(F::load_half_scales(group));
    });
    decode_table(groups, pairs + Strip<F>::kTableBytes, [&](const uint8_t* group) HWY_ATTR_AVX2 {
      const __m256i both = _mm256_cvtepi8_epi16(F::load_half_scales(group));
      return _mm256_blend_epi16(both, _mm256_slli_epi32(both, 16), 0xaa);
    });
    decode_table(groups, pairs + 2 * Strip<F>::kTableBytes,
                 [&](const uint8_t* group) HWY_ATTR_AVX2 {
                   const __m256i both = _mm256_cvtepi8_epi16(F::load_half_scales(group));
                   return _mm256_blend_epi16(_mm256_srli_epi32(both, 16), both, 0xaa);
                 });
  }
  if constexpr (F::kMinimum == Minimum::kHalves) {
    decode_table(groups, strip + Strip<F>::kHalfMinimums, [&](const uint8_t* group) HWY_ATTR_AVX2 {
      return _mm256_cvtepi8_epi16(F::load_half_minimums(group));
    });
  }
}

template <class F>
void decode_strip(const std::byte* weights, int64_t w_stride, int64_t columns, int64_t depth,
                  std::byte* strip) {
  const auto* w = reinterpret_cast<const uint8_t*>(weights);
  static constexpr uint8_t kZeros[F::kBytes] = {};
  uint8_t tail[kStripColumns][F::kBytes];
  const int64_t blocks = depth / kQuantBlock;
  for (int64_t block = 0; block < blocks; block += kQuantGroup, strip += Strip<F>::kBytes) {
    const uint8_t* groups[kStripColumns];
    for (int64_t c = 0; c < kStripColumns; ++c) {
      const uint8_t* group = w + c * w_stride + block / kQuantGroup * F::kBytes;
      groups[c] = c < columns ? group : kZeros;
      if (c < columns && block + kQuantGroup > blocks) {
        std::memset(tail[c], 0, sizeof(tail[c]));
        std::memcpy(tail[c], group, static_cast<size_t>((blocks - block) * F::kBlockBytes));
        groups[c] = tail[c];
      }
    }
    using Sequence = std::make_integer_sequence<int, static_cast<int>(kQuantGroup)>;
    decode_columns<F>(groups, strip, Sequence());
    decode_columns<F>(groups + 8, strip + 32, Sequence());
  }
}

// Sums of R <= 4 rows and two vectors of 8 columns, named since gcc keeps arrays in memory.
struct Sums {
  __m256i s00, s01, s10, s11, s20, s21, s30, s31;
};

// Keeps gcc from reordering sums of integers: it would form the products of all steps first and run
// out of registers (3 times slower).
HWY_INLINE void pin(__m256i& v) { asm("" : "+x"(v)); }

// One step of all rows: products of the lanes of w with the lane that each row has there.
template <int R, bool kWide, bool kFirst>
HWY_INLINE void add_step(Sums& s, const std::byte* w, const std::byte* const* x, int64_t offset) {
  const __m256i w0 = _mm256_load_si256(reinterpret_cast<const __m256i*>(w));
  const __m256i w1 = _mm256_load_si256(reinterpret_cast<const __m256i*>(w) + 1);
  const auto add = [](__m256i& sum, __m256i weights, __m256i codes) HWY_ATTR_AVX2 {
    if constexpr (kWide) {
      const __m256i product = _mm256_madd_epi16(weights, codes);
      sum = kFirst ? product : _mm256_add_epi32(sum, product);
    } else {
      const __m256i product = _mm256_maddubs_epi16(weights, codes);
      sum = kFirst ? product : _mm256_add_epi16(sum, product);
    }
    pin(sum);
  };
  const auto load = [&](int r) HWY_ATTR_AVX2 {
    int lane;
    std::memcpy(&lane, x[r] + offset, 4);
    return _mm256_set1_epi32(lane);
  };
  __m256i codes = load(0);
  add(s.s00, w0, codes), add(s.s01, w1, codes);
  if constexpr (R > 1) {
    codes = load(1);
    add(s.s10, w0, codes), add(s.s11, w1, codes);
    codes = load(2);
    add(s.s20, w0, codes), add(s.s21, w1, codes);
    codes = load(3);
    add(s.s30, w0, codes), add(s.s31, w1, codes);
  }
}

// Calls f(sum, r, c) for each.
template <int R, class Function>
HWY_INLINE void for_each_sum(Sums& s, Function&& f) {
  f(s.s00, 0, 0), f(s.s01, 0, 1);
  if constexpr (R > 1) {
    f(s.s10, 1, 0), f(s.s11, 1, 1);
    f(s.s20, 2, 0), f(s.s21, 2, 1);
    f(s.s30, 3, 0), f(s.s31, 3, 1);
  }
}

// kSteps steps from `first` on in 16 bits, then times `factors` (two vectors of 16-bit pairs) and
// added to `total` in 32 bits.
template <int R, int kSteps, bool kFirst, int kHalfStride>
HWY_INLINE void add_short_run(Sums& total, const std::byte* w, const std::byte* const* x,
                              int64_t offset, int first, __m256i factors0, __m256i factors1) {
  Sums run;
  const auto x_offset = [&](int step) { return offset + (step / 4 * kHalfStride + step % 4 * 4); };
  add_step<R, false, true>(run, w + first * kStripColumns * 4, x, x_offset(first));
  for (int step = first + 1; step < first + kSteps; ++step) {
    add_step<R, false, false>(run, w + step * kStripColumns * 4, x, x_offset(step));
  }
  const auto add = [&](__m256i& sum, __m256i part, __m256i factors) HWY_ATTR_AVX2 {
    const __m256i product = _mm256_madd_epi16(part, factors);
    sum = kFirst ? product : _mm256_add_epi32(sum, product);
  };
  add(total.s00, run.s00, factors0), add(total.s01, run.s01, factors1);
  if constexpr (R > 1) {
    add(total.s10, run.s10, factors0), add(total.s11, run.s11, factors1);
    add(total.s20, run.s20, factors0), add(total.s21, run.s21, factors1);
    add(total.s30, run.s30, factors0), add(total.s31, run.s31, factors1);
  }
}

// The integers of one block for R rows.
template <class F, int R>
HWY_INLINE void multiply_block(Sums& s, const std::byte* group, int64_t j,
                               const std::byte* const* x, int64_t block) {
  using S = Strip<F>;
  const std::byte* w = group + j * S::kBlockBytes;
  if constexpr (S::kWide) {
    const int64_t offset = block * kQuantBlock * 2;
    add_step<R, true, true>(s, w, x, offset);
    for (int step = 1; step < 16; ++step) {
      add_step<R, true, false>(s, w + step * kStripColumns * 4, x, offset + step * 4);
    }
  } else {
    // As many steps of two products as 16 bits hold.
    constexpr int kFit = 32767 / (F::kMaxCode * 127 * 2);
    constexpr int kLimit = F::kHalfScales ? 4 : 8;
    constexpr int kRun = kFit >= 8 && kLimit >= 8 ? 8 : (kFit >= 4 ? 4 : 2);
    // Bytes from the first 16 codes of a block to the others.
    constexpr int kHalf = F::kPaired ? 32 : 16;
    const int64_t offset =
        F::kPaired ? (block - j) * kQuantBlock + paired_offset(j) : block * kQuantBlock;
    __m256i first0 = _mm256_set1_epi16(1), first1 = first0, second0 = first0, second1 = first0;
    if constexpr (F::kHalfScales) {
      const auto* pairs =
          reinterpret_cast<const __m256i*>(group + S::kHalfPairs + j * 64 + S::kTableBytes);
      constexpr int64_t kNext = S::kTableBytes / 32;
      first0 = _mm256_load_si256(pairs), first1 = _mm256_load_si256(pairs + 1);
      second0 = _mm256_load_si256(pairs + kNext), second1 = _mm256_load_si256(pairs + kNext + 1);
    }
    add_short_run<R, kRun, true, kHalf>(s, w, x, offset, 0, first0, first1);
    if constexpr (kRun == 4) {
      add_short_run<R, 4, false, kHalf>(s, w, x, offset, 4, second0, second1);
    } else if constexpr (kRun == 2) {
      add_short_run<R, 2, false, kHalf>(s, w, x, offset, 2, first0, first1);
      add_short_run<R, 2, false, kHalf>(s, w, x, offset, 4, second0, second1);
      add_short_run<R, 2, false, kHalf>(s, w, x, offset, 6, second0, second1);
    }
  }
}

HWY_INLINE __m256i broadcast_pair(const int16_t* from) {
  int pair;
  std::memcpy(&pair, from, 4);
  return _mm256_set1_epi32(pair);
}

template <class F, int R>
HWY_INLINE void multiply_rows(const std::byte* strip, int64_t depth, const QuantizedRow* rows,
                              float* out, int64_t out_stride) {
  using S = Strip<F>;
  alignas(32) float partial[kQuantGroup][R][kStripColumns];
  std::memset(partial, 0, sizeof(partial));
  const std::byte* x[R];
  for (int r = 0; r < R; ++r) {
    x[r] = S::kWide ? reinterpret_cast<const std::byte*>(rows[r].wide_codes)
                    : reinterpret_cast<const std::byte*>(rows[r].codes);
  }
  const int64_t blocks = depth / kQuantBlock;
  for (int64_t block = 0; block < blocks; ++block) {
    const int64_t j = block % kQuantGroup;
    const std::byte* group = strip + block / kQuantGroup * S::kBytes;
    Sums s;
    multiply_block<F, R>(s, group, j, x, block);
    const auto* scales = reinterpret_cast<const float*>(group + S::kScales) + j * kStripColumns;
    const auto* minimums = reinterpret_cast<const float*>(group + S::kMinimums) + j * kStripColumns;
    const auto* half_pairs = reinterpret_cast<const __m256i*>(group + S::kHalfPairs + j * 64);
    const auto* half_minimums = reinterpret_cast<const __m256i*>(group + S::kHalfMinimums + j * 64);
    for_each_sum<R>(s, [&](__m256i sum, int r, int c) HWY_ATTR_AVX2 {
      if constexpr (F::kOffset > 0 && F::kHalfScales) {
        const __m256i offsets = _mm256_madd_epi16(_mm256_load_si256(half_pairs + c),
                                                  broadcast_pair(rows[r].half_sums + 2 * block));
        sum = _mm256_sub_epi32(
            sum, _mm256_slli_epi32(offsets, std::countr_zero(static_cast<unsigned>(F::kOffset))));
      } else if constexpr (F::kOffset > 0) {
        sum = _mm256_sub_epi32(sum, _mm256_set1_epi32(rows[r].offset_sums[block]));
      }
      const __m256 x_scale = _mm256_set1_ps(rows[r].scales[block]);
      float* to = &partial[j][r][c * 8];
      __m256 total = _mm256_load_ps(to);
      total = _mm256_fmadd_ps(_mm256_mul_ps(_mm256_load_ps(scales + c * 8), x_scale),
                              _mm256_cvtepi32_ps(sum), total);
      if constexpr (F::kMinimum == Minimum::kBlocks) {
        total = _mm256_fmadd_ps(_mm256_load_ps(minimums + c * 8),
                                _mm256_set1_ps(rows[r].scaled_sums[block]), total);
      } else if constexpr (F::kMinimum == Minimum::kHalves) {
        const __m256i minimum = _mm256_madd_epi16(_mm256_load_si256(half_minimums + c),
                                                  broadcast_pair(rows[r].half_sums + 2 * block));
        total = _mm256_fmadd_ps(_mm256_mul_ps(_mm256_load_ps(minimums + c * 8), x_scale),
                                _mm256_cvtepi32_ps(minimum), total);
      }
      _mm256_store_ps(to, total);
    });
  }
  for (int r = 0; r < R; ++r) {
    for (int c = 0; c < kStripColumns; c += 8) {
      const auto load = [&](int j) HWY_ATTR_AVX2 { return _mm256_load_ps(&partial[j][r][c]); };
      const __m256 low =
          _mm256_add_ps(_mm256_add_ps(load(0), load(1)), _mm256_add_ps(load(2), load(3)));
      const __m256 high =
          _mm256_add_ps(_mm256_add_ps(load(4), load(5)), _mm256_add_ps(load(6), load(7)));
      _mm256_storeu_ps(out + r * out_stride + c, _mm256_add_ps(low, high));
    }
  }
}

template <class F>
void multiply_strip(const std::byte* strip, int64_t depth, const QuantizedRow* rows,
                    int64_t num_rows, float* out, int64_t out_stride) {
  int64_t r = 0;
  for (; r + 4 <= num_rows; r += 4) {
    multiply_rows<F, 4>(strip, depth, rows + r, out + r * out_stride, out_stride);
  }
  for (; r < num_rows; ++r) {
    multiply_rows<F, 1>(strip, depth, rows + r, out + r * out_stride, out_stride);
  }
}

template <class F>
constexpr PackedKernels kKernelsOf{Strip<F>::kWide, Strip<F>::kBytes, quantize<F>,
                                   dot<F>,          decode_strip<F>,  multiply_strip<F>};

}  // namespace

const PackedKernels* find_avx2_packed_kernels(DType dtype) {
  switch (dtype) {
    case DType::kQ8_0:
      return &kKernelsOf<Q8_0>;
    case DType::kQ4_0:
      return &kKernelsOf<Q4_0>;
    case DType::kQ4_1:
      return &kKernelsOf<Q4_1>;
    case DType::kQ5_0:
      return &kKernelsOf<Q5_0>;
    case DType::kQ5_1:
      return &kKernelsOf<Q5_1>;
    case DType::kQ2_K:
      return &kKernelsOf<Q2_K>;
    case DType::kQ3_K:
      return &kKernelsOf<Q3_K>;
    case DType::kQ4_K:
      return &kKernelsOf<Q4_K>;
    case DType::kQ5_K:
      return &kKernelsOf<Q5_K>;
    case DType::kQ6_K:
      return &kKernelsOf<Q6_K>;
    case DType::kIQ4_NL:
      return &kKernelsOf<IQ4_NL>;
    case DType::kIQ4_XS:
      return &kKernelsOf<IQ4_XS>;
    case DType::kMXFP4:
      return &kKernelsOf<MXFP4>;
    default:
      return nullptr;
  }
}

}  // namespace rlx::cpu
HWY_POP_ATTRIBUTES

#else

namespace rlx::cpu {
const PackedKernels* find_avx2_packed_kernels(DType) { return nullptr; }
}  // namespace rlx::cpu

#endif
