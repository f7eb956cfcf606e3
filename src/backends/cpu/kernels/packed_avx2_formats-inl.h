// How each packed format's group of 256 weights becomes 8 vectors of 32 codes, with AVX2. Included
// by packed_avx2.cpp inside its namespace and target region only.
//
// A format says:
//   kBytes       of a group (8 blocks of 32, or one block of 256)
//   kBlockBytes  of one of its blocks; kGroupBlocks of them make a group
//   kMaxCode     codes are in [0, kMaxCode]; 0 when they are signed bytes instead
//   kOffset      what is to be taken from an unsigned code
//   kHalfScales  whether 16 codes have an integer scale of their own
//   kMinimum     kNone, kBlocks (w = scale * code + minimum) or kHalves (an integer per 16 codes,
//                times a scale per group)
//   load_codes<j>(group) the codes of block j in order
//   load_scales(group)   f32 of the 8 blocks
//   kPaired      whether its activations lie in the order of paired codes: block k beside block
//                k + 4, a half of 16 of each in a vector. Then load_pair<k>(group) gives the first
//                and the second halves of the codes of both.
// and where it has them load_minimums (f32 of the 8 blocks, sign included; for kHalves the scale of
// the integers), load_half_scales and load_half_minimums (16 int8).

enum class Minimum { kNone, kBlocks, kHalves };

HWY_INLINE float load_f16(const uint8_t* from) {
  uint16_t bits;
  std::memcpy(&bits, from, 2);
  return _cvtsh_ss(bits);
}
HWY_INLINE uint32_t load_u32(const uint8_t* from) {
  uint32_t value;
  std::memcpy(&value, from, 4);
  return value;
}
HWY_INLINE __m128i load_128(const uint8_t* from) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}
HWY_INLINE __m256i load_256(const uint8_t* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}

// 16 bytes of nibbles: the low ones are codes 0 to 15, the high ones 16 to 31.
HWY_INLINE __m256i split_nibbles(const uint8_t* from) {
  const __m128i bytes = load_128(from);
  const __m256i both =
      _mm256_inserti128_si256(_mm256_castsi128_si256(bytes), _mm_srli_epi16(bytes, 4), 1);
  return _mm256_and_si256(both, _mm256_set1_epi8(15));
}
// 16 in byte i where bit i is set, after the bytes of `word` are spread.
HWY_INLINE __m256i fifth_bits(__m256i word, __m256i spread) {
  const __m256i bit = _mm256_set1_epi64x(static_cast<int64_t>(0x8040201008040201));
  const __m256i bits = _mm256_and_si256(_mm256_shuffle_epi8(word, spread), bit);
  return _mm256_and_si256(_mm256_cmpeq_epi8(bits, bit), _mm256_set1_epi8(16));
}
HWY_INLINE __m256i fifth_bits(const uint8_t* from) {
  return fifth_bits(_mm256_set1_epi32(static_cast<int>(load_u32(from))),
                    _mm256_setr_epi64x(0x0000000000000000, 0x0101010101010101, 0x0202020202020202,
                                       0x0303030303030303));
}

// Codes of two blocks: the first 16 of both, and the second 16 of both.
struct CodePair {
  __m256i first, second;
};
HWY_INLINE CodePair split_nibbles(const uint8_t* a, const uint8_t* b) {
  const __m256i bytes =
      _mm256_inserti128_si256(_mm256_castsi128_si256(load_128(a)), load_128(b), 1);
  const __m256i low = _mm256_set1_epi8(15);
  return {_mm256_and_si256(bytes, low), _mm256_and_si256(_mm256_srli_epi16(bytes, 4), low)};
}
HWY_INLINE CodePair add_fifth_bits(CodePair codes, const uint8_t* a, const uint8_t* b) {
  const __m256i words = _mm256_set_m128i(_mm_set1_epi32(static_cast<int>(load_u32(b))),
                                         _mm_set1_epi32(static_cast<int>(load_u32(a))));
  const __m256i first =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1));
  const __m256i second =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3));
  return {_mm256_or_si256(codes.first, fifth_bits(words, first)),
          _mm256_or_si256(codes.second, fifth_bits(words, second))};
}

// f16 fields `step` bytes apart, one of each of 8 blocks. Put together by the scalar units, which
// have nothing else to do, and not by 8 insertions.
template <int kStep>
HWY_INLINE __m256 load_f16_fields(const uint8_t* from) {
  const auto load_four = [](const uint8_t* at) {
    uint16_t a, b, c, d;
    std::memcpy(&a, at, 2), std::memcpy(&b, at + kStep, 2);
    std::memcpy(&c, at + 2 * kStep, 2), std::memcpy(&d, at + 3 * kStep, 2);
    const uint32_t low = a | static_cast<uint32_t>(b) << 16;
    const uint32_t high = c | static_cast<uint32_t>(d) << 16;
    return static_cast<int64_t>(low | static_cast<uint64_t>(high) << 32);
  };
  return _mm256_cvtph_ps(_mm_set_epi64x(load_four(from + 4 * kStep), load_four(from)));
}
HWY_INLINE __m256 widen_bytes(uint32_t low, uint32_t high) {
  const __m128i bytes =
      _mm_cvtsi64_si128(static_cast<int64_t>(low | static_cast<uint64_t>(high) << 32));
  return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes));
}

struct Plain {
  static constexpr int kMaxCode = 0;
  static constexpr int kOffset = 0;
  static constexpr bool kHalfScales = false;
  static constexpr bool kPaired = false;
  static constexpr Minimum kMinimum = Minimum::kNone;
  static constexpr int kGroupBlocks = 1;
};

template <int kBytesOfBlock>
struct Blocks32 : Plain {
  static constexpr int kBlockBytes = kBytesOfBlock;
  static constexpr int kGroupBlocks = 8;
  static constexpr int kBytes = 8 * kBytesOfBlock;
  static HWY_INLINE __m256 load_scales(const uint8_t* group) {
    return load_f16_fields<kBytesOfBlock>(group);
  }
};

struct Q8_0 : Blocks32<34> {
  template <int j>
  static HWY_INLINE __m256i load_codes(const uint8_t* group) {
    return load_256(group + 34 * j + 2);
  }
};

struct Q4_0 : Blocks32<18> {
  static constexpr int kMaxCode = 15;
  static constexpr int kOffset = 8;
  template <int j>
  static HWY_INLINE __m256i load_codes(const uint8_t* group) {
    return split_nibbles(group + 18 * j + 2);
  }
  static constexpr bool kPaired = true;
  template <int k>
  static HWY_INLINE CodePair load_pair(const uint8_t* group) {
    const uint8_t *a = group + 18 * k, *b = a + 4 * 18;
    return split_nibbles(a + 2, b + 2);
  }
};

struct Q4_1 : Blocks32<20> {
  static constexpr int kMaxCode = 15;
  static constexpr Minimum kMinimum = Minimum::kBlocks;
  template <int j>
  static HWY_INLINE __m256i load_codes(const uint8_t* group) {
    return split_nibbles(group + 20 * j + 4);
  }
  static HWY_INLINE __m256 load_minimums(const uint8_t* group) {
    return load_f16_fields<20>(group + 2);
  }
  static constexpr bool kPaired = true;
  template <int k>
  static HWY_INLINE CodePair load_pair(const uint8_t* group) {
    const uint8_t *a = group + 20 * k, *b = a + 4 * 20;
    return split_nibbles(a + 4, b + 4);
  }
};

struct Q5_0 : Blocks32<22> {
  static constexpr int kMaxCode = 31;
  static constexpr int kOffset = 16;
  template <int j>
  static HWY_INLINE __m256i load_codes(const uint8_t* group) {
    return _mm256_or_si256(split_nibbles(group + 22 * j + 6), fifth_bits(group + 22 * j + 2));
  }
  static constexpr bool kPaired = true;
  template <int k>
  static HWY_INLINE CodePair load_pair(const uint8_t* group) {
    const uint8_t *a = group + 22 * k, *b = a + 4 * 22;
    return add_fifth_bits(split_nibbles(a + 6, b + 6), a + 2, b + 2);
  }
};

struct Q5_1 : Blocks32<24> {
  static constexpr int kMaxCode = 31;
  static constexpr Minimum kMinimum = Minimum::kBlocks;
  template <int j>
  static HWY_INLINE __m256i load_codes(const uint8_t* group) {
    return _mm256_or_si256(split_nibbles(group + 24 * j + 8), fifth_bits(group + 24 * j + 4));
  }
  static HWY_INLINE __m256 load_minimums(const uint8_t* group) {
    return load_f16_fields<24>(group + 2);
  }
  static constexpr bool kPaired = true;
  template <int k>
  static HWY_INLINE CodePair load_pair(const uint8_t* group) {
    const uint8_t *a = group + 24 * k, *b = a + 4 * 24;
    return add_fifth_bits(split_nibbles(a + 8, b + 8), a + 4, b + 4);
  }
};

// The 16 values of a 4-bit code in iq4_nl and iq4_xs.
HWY_INLINE __m256i iq4_values(__m256i codes) {
  const __m256i table = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113));
  return _mm256_shuffle_epi8(table, codes);
}
HWY_INLINE CodePair iq4_values(CodePair codes) {
  return {iq4_values(codes.first), iq4_values(codes.second)};
}

struct IQ4_NL : Blocks32<18> {
  template <int j>
  static HWY_INLINE __m256i load_codes(const uint8_t* group) {
    return iq4_values(split_nibbles(group + 18 * j + 2));
  }
  static constexpr bool kPaired = true;
  template <int k>
  static HWY_INLINE CodePair load_pair(const uint8_t* group) {
    const uint8_t *a = group + 18 * k, *b = a + 4 * 18;
    return iq4_values(split_nibbles(a + 2, b + 2));
  }
};

struct IQ4_XS : Plain {
  static constexpr int kBlockBytes = 136;
  static constexpr int kBytes = 136;
  template <int j>
  static HWY_INLINE __m256i load_codes(const uint8_t* group) {
    return iq4_values(split_nibbles(group + 8 + 16 * j));
  }
  static HWY_INLINE __m256 load_scales(const uint8_t* group) {
    // Low nibbles in 4 bytes, two high bits each in a word before them.
    const uint32_t low = load_u32(group + 4);
    const auto high = static_cast<uint32_t>(group[2] | group[3] << 8);
    const __m256i lows = _mm256_srlv_epi32(_mm256_set1_epi32(static_cast<int>(low)),
                                           _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28));
    const __m256i highs = _mm256_srlv_epi32(_mm256_set1_epi32(static_cast<int>(high << 4)),
                                            _mm256_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14));
    const __m256i scales = _mm256_or_si256(_mm256_and_si256(lows, _mm256_set1_epi32(15)),
                                           _mm256_and_si256(highs, _mm256_set1_epi32(48)));
    return _mm256_mul_ps(_mm256_set1_ps(load_f16(group)),
                         _mm256_cvtepi32_ps(_mm256_sub_epi32(scales, _mm256_set1_epi32(32))));
  }
  static constexpr bool kPaired = true;
  template <int k>
  static HWY_INLINE CodePair load_pair(const uint8_t* group) {
    const uint8_t *a = group + 16 * k, *b = a + 4 * 16;
    return iq4_values(split_nibbles(a + 8, b + 8));
  }
};

// Twice the e2m1 values are integers in [-12, 12], moved up by 12 to be unsigned.
HWY_INLINE __m256i e2m1_values(__m256i codes) {
  const __m256i table = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0));
  return _mm256_shuffle_epi8(table, codes);
}
HWY_INLINE CodePair e2m1_values(CodePair codes) {
  return {e2m1_values(codes.first), e2m1_values(codes.second)};
}

struct MXFP4 : Plain {
  static constexpr int kBlockBytes = 17;
  static constexpr int kGroupBlocks = 8;
  static constexpr int kBytes = 8 * 17;
  static constexpr int kMaxCode = 24;
  static constexpr int kOffset = 12;
  template <int j>
  static HWY_INLINE __m256i load_codes(const uint8_t* group) {
    return e2m1_values(split_nibbles(group + 17 * j + 1));
  }
  static HWY_INLINE __m256 load_scales(const uint8_t* group) {
    // Half of 2^(exponent - 127), subnormal for exponents 0 and 1.
    const __m256i exponents = _mm256_setr_epi32(group[0], group[17], group[34], group[51],
                                                group[68], group[85], group[102], group[119]);
    const __m256i normal = _mm256_slli_epi32(_mm256_sub_epi32(exponents, _mm256_set1_epi32(1)), 23);
    const __m256i subnormal = _mm256_sllv_epi32(_mm256_set1_epi32(0x00200000), exponents);
    const __m256i is_small = _mm256_cmpgt_epi32(_mm256_set1_epi32(2), exponents);
    return _mm256_castsi256_ps(_mm256_blendv_epi8(normal, subnormal, is_small));
  }
  static constexpr bool kPaired = true;
  template <int k>
  static HWY_INLINE CodePair load_pair(const uint8_t* group) {
    const uint8_t *a = group + 17 * k, *b = a + 4 * 17;
    return e2m1_values(split_nibbles(a + 1, b + 1));
  }
};

// Eight 6-bit scales and minima in 12 bytes, as q4_k and q5_k have them.
struct ScalesOf4K : Plain {
  static constexpr Minimum kMinimum = Minimum::kBlocks;
  static HWY_INLINE __m256 load_scales(const uint8_t* group) {
    const uint32_t a = load_u32(group + 4), c = load_u32(group + 12);
    return _mm256_mul_ps(_mm256_set1_ps(load_f16(group)),
                         widen_bytes(a & 0x3f3f3f3f, (c & 0x0f0f0f0f) | ((a >> 2) & 0x30303030)));
  }
  static HWY_INLINE __m256 load_minimums(const uint8_t* group) {
    const uint32_t b = load_u32(group + 8), c = load_u32(group + 12);
    return _mm256_mul_ps(
        _mm256_set1_ps(-load_f16(group + 2)),
        widen_bytes(b & 0x3f3f3f3f, ((c >> 4) & 0x0f0f0f0f) | ((b >> 2) & 0x30303030)));
  }
};

struct Q4_K : ScalesOf4K {
  static constexpr int kBlockBytes = 144;
  static constexpr int kBytes = 144;
  static constexpr int kMaxCode = 15;
  template <int j>
  static HWY_INLINE __m256i load_codes(const uint8_t* group) {
    __m256i bytes = load_256(group + 16 + 32 * (j / 2));
    if constexpr (j % 2 == 1) bytes = _mm256_srli_epi16(bytes, 4);
    return _mm256_and_si256(bytes, _mm256_set1_epi8(15));
  }
};

struct Q5_K : ScalesOf4K {
  static constexpr int kBlockBytes = 176;
  static constexpr int kBytes = 176;
  static constexpr int kMaxCode = 31;
  template <int j>
  static HWY_INLINE __m256i load_codes(const uint8_t* group) {
    __m256i bytes = load_256(group + 48 + 32 * (j / 2));
    if constexpr (j % 2 == 1) bytes = _mm256_srli_epi16(bytes, 4);
    __m256i high = load_256(group + 16);
    if constexpr (j < 4) {
      high = _mm256_slli_epi16(high, 4 - j);
    } else if constexpr (j > 4) {
      high = _mm256_srli_epi16(high, j - 4);
    }
    return _mm256_or_si256(_mm256_and_si256(bytes, _mm256_set1_epi8(15)),
                           _mm256_and_si256(high, _mm256_set1_epi8(16)));
  }
};

struct Q6_K : Plain {
  static constexpr int kBlockBytes = 210;
  static constexpr int kBytes = 210;
  static constexpr int kMaxCode = 63;
  static constexpr int kOffset = 32;
  static constexpr bool kHalfScales = true;
  template <int j>
  static HWY_INLINE __m256i load_codes(const uint8_t* group) {
    constexpr int half = j / 4, run = j % 4;
    __m256i low = load_256(group + 64 * half + 32 * (run % 2));
    if constexpr (run >= 2) low = _mm256_srli_epi16(low, 4);
    __m256i high = load_256(group + 128 + 32 * half);
    if constexpr (run < 2) {
      high = _mm256_slli_epi16(high, 4 - 2 * run);
    } else if constexpr (run == 3) {
      high = _mm256_srli_epi16(high, 2);
    }
    return _mm256_or_si256(_mm256_and_si256(low, _mm256_set1_epi8(15)),
                           _mm256_and_si256(high, _mm256_set1_epi8(48)));
  }
  static HWY_INLINE __m256 load_scales(const uint8_t* group) {
    return _mm256_set1_ps(load_f16(group + 208));
  }
  static HWY_INLINE __m128i load_half_scales(const uint8_t* group) { return load_128(group + 192); }
};

struct Q3_K : Plain {
  static constexpr int kBlockBytes = 110;
  static constexpr int kBytes = 110;
  static constexpr int kMaxCode = 7;
  static constexpr int kOffset = 4;
  static constexpr bool kHalfScales = true;
  template <int j>
  static HWY_INLINE __m256i load_codes(const uint8_t* group) {
    __m256i low = load_256(group + 32 + 32 * (j / 4));
    if constexpr (j % 4 != 0) low = _mm256_srli_epi16(low, 2 * (j % 4));
    __m256i high = load_256(group);
    if constexpr (j < 2) {
      high = _mm256_slli_epi16(high, 2 - j);
    } else if constexpr (j > 2) {
      high = _mm256_srli_epi16(high, j - 2);
    }
    return _mm256_or_si256(_mm256_and_si256(low, _mm256_set1_epi8(3)),
                           _mm256_and_si256(high, _mm256_set1_epi8(4)));
  }
  static HWY_INLINE __m256 load_scales(const uint8_t* group) {
    return _mm256_set1_ps(load_f16(group + 108));
  }
  // Low nibbles of 16 scales in 8 bytes, two high bits each in 4 more.
  static HWY_INLINE __m128i load_half_scales(const uint8_t* group) {
    const uint32_t s0 = load_u32(group + 96), s1 = load_u32(group + 100);
    const uint32_t t = load_u32(group + 104);
    const uint32_t low = 0x0f0f0f0f, two = 0x30303030;
    const __m128i scales = _mm_setr_epi32(static_cast<int>((s0 & low) | ((t << 4) & two)),
                                          static_cast<int>((s1 & low) | ((t << 2) & two)),
                                          static_cast<int>(((s0 >> 4) & low) | (t & two)),
                                          static_cast<int>(((s1 >> 4) & low) | ((t >> 2) & two)));
    return _mm_sub_epi8(scales, _mm_set1_epi8(32));
  }
};

struct Q2_K : Plain {
  static constexpr int kBlockBytes = 84;
  static constexpr int kBytes = 84;
  static constexpr int kMaxCode = 3;
  static constexpr bool kHalfScales = true;
  static constexpr Minimum kMinimum = Minimum::kHalves;
  template <int j>
  static HWY_INLINE __m256i load_codes(const uint8_t* group) {
    __m256i low = load_256(group + 16 + 32 * (j / 4));
    if constexpr (j % 4 != 0) low = _mm256_srli_epi16(low, 2 * (j % 4));
    return _mm256_and_si256(low, _mm256_set1_epi8(3));
  }
  static HWY_INLINE __m256 load_scales(const uint8_t* group) {
    return _mm256_set1_ps(load_f16(group + 80));
  }
  static HWY_INLINE __m256 load_minimums(const uint8_t* group) {
    return _mm256_set1_ps(-load_f16(group + 82));
  }
  static HWY_INLINE __m128i load_half_scales(const uint8_t* group) {
    return _mm_and_si128(load_128(group), _mm_set1_epi8(15));
  }
  static HWY_INLINE __m128i load_half_minimums(const uint8_t* group) {
    return _mm_and_si128(_mm_srli_epi16(load_128(group), 4), _mm_set1_epi8(15));
  }
};
