// Products of many rows with packed weights, with AVX2: strips of 16 columns are unpacked once for
// all rows. Included by packed_avx2.cpp inside its namespace and target region only.

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
