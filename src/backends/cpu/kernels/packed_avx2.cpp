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

#include "backends/cpu/kernels/packed_avx2_activations-inl.h"
#include "backends/cpu/kernels/packed_avx2_formats-inl.h"

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

#include "backends/cpu/kernels/packed_avx2_strips-inl.h"

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
