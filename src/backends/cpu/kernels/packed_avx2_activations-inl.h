// Quantising activations for the packed products, with AVX2: eight blocks of 32 at a time. Included
// by packed_avx2.cpp inside its namespace and target region only.

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
