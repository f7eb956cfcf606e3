#include "random_blocks.h"

#include <cmath>
#include <cstring>

#include "base/error.h"
#include "tensor/half.h"

namespace rlx::bench {
namespace {

// Root mean squares of uniformly random codes, as their format reads them, with a scale of 1.
constexpr double kRms8Bit = 73.9;   // -128 to 127
constexpr double kRms6Bit = 18.48;  // -32 to 31
constexpr double kRms5Bit = 9.24;   // -16 to 15
constexpr double kRms4Bit = 4.64;   // -8 to 7
constexpr double kRms3Bit = 2.35;   // -4 to 3
constexpr double kRms2Bit = 1.118;  // -1.5 to 1.5
constexpr double kRmsIq4 = 69.6;    // the code book of iq4_nl
constexpr double kRmsE2M1 = 2.31;   // the 4-bit floats of mxfp4, half of the blocks at half scale
constexpr double kRmsTwoOctaves = 1.21;  // magnitudes in [0.5, 2)

void store_f16(double value, uint8_t* at) {
  const uint16_t bits = f32_to_f16(static_cast<float>(value));
  std::memcpy(at, &bits, sizeof(bits));
}

// Within a quarter of `scale`, as scales differ between blocks.
double vary(double scale, RandomBits& random) { return scale * (0.75 + 0.5 * random.uniform()); }

double with_random_sign(double scale, RandomBits& random) {
  return (random.next() & 1) != 0 ? scale : -scale;
}

// Sign and mantissa are random, and so is the last bit of the exponent: two octaves around the
// spread.
template <typename Word>
void fill_floats(int mantissa_bits, int bias, double spread, RandomBits& random,
                 std::span<std::byte> bytes) {
  const auto exponent = static_cast<int>(std::lround(std::log2(spread / kRmsTwoOctaves)));
  const Word base = static_cast<Word>(static_cast<Word>(exponent - 1 + bias) << mantissa_bits);
  const Word sign = static_cast<Word>(Word{1} << (8 * sizeof(Word) - 1));
  const Word kept = static_cast<Word>(sign | ((Word{2} << mantissa_bits) - 1));
  for (size_t at = 0; at < bytes.size(); at += sizeof(uint64_t)) {
    const uint64_t bits = random.next();
    Word words[sizeof(uint64_t) / sizeof(Word)];
    std::memcpy(words, &bits, sizeof(bits));
    for (Word& word : words) word = static_cast<Word>((word & kept) + base);
    std::memcpy(bytes.data() + at, words, std::min(sizeof(words), bytes.size() - at));
  }
}

// The scales of q4_k and q5_k: eight of 6 bits in the upper half of their range, and minima equal
// to them, so that one ratio between the block's two scales makes the mean of each group 0.
void store_group_scales(RandomBits& random, uint8_t* at) {
  const uint64_t bits = random.next();
  uint8_t scales[8];
  for (int group = 0; group < 8; ++group) {
    scales[group] = static_cast<uint8_t>(32 | ((bits >> (5 * group)) & 31));
  }
  for (int group = 0; group < 4; ++group) {
    const uint8_t high = static_cast<uint8_t>(scales[group + 4] >> 4 << 6);
    at[group] = at[group + 4] = static_cast<uint8_t>(scales[group] | high);
    at[group + 8] = static_cast<uint8_t>((scales[group + 4] & 15) * 0x11);
  }
}
constexpr double kMeanGroupScale = 48.4;

// The scale fields of one block whose codes are already random.
void set_scales(DType dtype, double spread, RandomBits& random, uint8_t* block) {
  switch (dtype) {
    case DType::kQ8_0:
      store_f16(vary(spread / kRms8Bit, random), block);
      // A quantiser never writes -128.
      for (int i = 2; i < 34; ++i) block[i] = block[i] == 0x80 ? 0x81 : block[i];
      return;
    case DType::kQ4_0:
      return store_f16(with_random_sign(vary(spread / kRms4Bit, random), random), block);
    case DType::kQ5_0:
      return store_f16(with_random_sign(vary(spread / kRms5Bit, random), random), block);
    case DType::kQ4_1:
    case DType::kQ5_1: {
      const bool is_5_bit = dtype == DType::kQ5_1;
      const double scale = vary(spread / (is_5_bit ? kRms5Bit : kRms4Bit), random);
      store_f16(scale, block);
      return store_f16(-scale * (is_5_bit ? 15.5 : 7.5), block + 2);
    }
    case DType::kQ2_K: {
      uint64_t bits = random.next();
      for (int group = 0; group < 16; ++group, bits >>= 3) {
        block[group] = static_cast<uint8_t>((8 | (bits & 7)) * 0x11);
      }
      const double scale = vary(spread / (kRms2Bit * 11.7), random);
      store_f16(scale, block + 80);
      return store_f16(1.5 * scale, block + 82);
    }
    case DType::kQ3_K:
      return store_f16(vary(spread / (kRms3Bit * kRms6Bit), random), block + 108);
    case DType::kQ4_K:
    case DType::kQ5_K: {
      const bool is_5_bit = dtype == DType::kQ5_K;
      const double scale =
          vary(spread / ((is_5_bit ? kRms5Bit : kRms4Bit) * kMeanGroupScale), random);
      store_f16(scale, block);
      store_f16(scale * (is_5_bit ? 15.5 : 7.5), block + 2);
      return store_group_scales(random, block + 4);
    }
    case DType::kQ6_K: {
      uint64_t bits = random.next();
      const uint64_t signs = random.next();
      for (int group = 0; group < 16; ++group, bits >>= 4) {
        const int magnitude = 40 + static_cast<int>(bits & 15);
        block[192 + group] =
            static_cast<uint8_t>(((signs >> group) & 1) != 0 ? magnitude : -magnitude);
      }
      return store_f16(vary(spread / (kRms6Bit * 47.7), random), block + 208);
    }
    case DType::kIQ4_NL:
      return store_f16(with_random_sign(vary(spread / kRmsIq4, random), random), block);
    case DType::kIQ4_XS:
      return store_f16(vary(spread / (kRmsIq4 * kRms6Bit), random), block);
    case DType::kMXFP4:
      block[0] = static_cast<uint8_t>(127 + std::lround(std::log2(spread / kRmsE2M1)) -
                                      static_cast<int>(random.next() & 1));
      return;
    default:
      throw_error(ErrorCode::kUnsupported, "Random blocks of {} are not made.", to_string(dtype));
  }
}

}  // namespace

RandomBits::RandomBits(uint64_t seed)
    : a_(seed * 0x9e3779b97f4a7c15u + 0x7f4a7c159e3779b9u), b_(seed ^ 0xbf58476d1ce4e5b9u) {
  for (int i = 0; i < 16; ++i) next();
}

uint64_t RandomBits::next() {
  uint64_t a = a_;
  const uint64_t b = b_;
  a_ = b;
  a ^= a << 23;
  b_ = a ^ b ^ (a >> 18) ^ (b >> 5);
  return b_ + b;
}

void fill_random_blocks(DType dtype, double spread, RandomBits& random,
                        std::span<std::byte> bytes) {
  switch (dtype) {
    case DType::kF32:
      return fill_floats<uint32_t>(23, 127, spread, random, bytes);
    case DType::kF16:
      return fill_floats<uint16_t>(10, 15, spread, random, bytes);
    case DType::kBF16:
      return fill_floats<uint16_t>(7, 127, spread, random, bytes);
    default:
      break;
  }
  for (size_t at = 0; at < bytes.size(); at += sizeof(uint64_t)) {
    const uint64_t bits = random.next();
    std::memcpy(bytes.data() + at, &bits, std::min(sizeof(bits), bytes.size() - at));
  }
  auto* blocks = reinterpret_cast<uint8_t*>(bytes.data());
  const auto step = static_cast<size_t>(bytes_per_block(dtype));
  for (size_t at = 0; at < bytes.size(); at += step) {
    set_scales(dtype, spread, random, blocks + at);
  }
}

}  // namespace rlx::bench
