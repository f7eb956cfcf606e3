#include "tensor/half.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace rlx {
namespace {

// The value of an f16 from the definition of the format, in double, where all are exact.
double f16_by_definition(uint32_t bits) {
  const int exponent = static_cast<int>((bits >> 10) & 31u);
  const double fraction = bits & 0x3ffu;
  double value =
      exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024.0 + fraction, exponent - 25);
  if (exponent == 31) value = fraction == 0 ? INFINITY : NAN;
  return (bits & 0x8000u) != 0 ? -value : value;
}

TEST(HalfFloat, WidensEveryValueAsTheFormatDefines) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const double expected = f16_by_definition(bits);
    for (const float value : {f16_to_f32(static_cast<uint16_t>(bits)),
                              f16_to_f32_portable(static_cast<uint16_t>(bits))}) {
      if (std::isnan(expected)) {
        ASSERT_TRUE(std::isnan(value)) << bits;
      } else {
        ASSERT_EQ(static_cast<double>(value), expected) << bits;
        ASSERT_EQ(std::signbit(value), (bits & 0x8000u) != 0) << bits;
      }
    }
  }
}

TEST(HalfFloat, ReturnsEveryValueUnchangedAndMakesNaNsQuiet) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const bool is_nan = (bits & 0x7fffu) > 0x7c00u;
    const uint32_t expected = is_nan ? bits | 0x0200u : bits;
    const auto narrow = static_cast<uint16_t>(bits);
    ASSERT_EQ(f32_to_f16(f16_to_f32(narrow)), expected) << bits;
    ASSERT_EQ(f32_to_f16_portable(f16_to_f32_portable(narrow)), expected) << bits;
  }
}

// Both sides of the boundary between each neighbouring pair: the midpoint goes to the even one.
TEST(HalfFloat, RoundsToNearestEvenAroundEveryMidpoint) {
  for (uint32_t bits = 0; bits < 0x7c00u; ++bits) {
    const double low = f16_by_definition(bits);
    const double high = bits == 0x7bffu ? 65536.0 : f16_by_definition(bits + 1);
    const auto middle = static_cast<float>((low + high) / 2);
    const uint32_t even = (bits & 1u) == 0 ? bits : bits + 1;
    for (const float sign : {1.0f, -1.0f}) {
      const uint32_t sign_bit = sign < 0 ? 0x8000u : 0u;
      const float below = sign * std::nextafter(middle, 0.0f);
      const float above = sign * std::nextafter(middle, INFINITY);
      ASSERT_EQ(f32_to_f16_portable(below), bits | sign_bit);
      ASSERT_EQ(f32_to_f16_portable(sign * middle), even | sign_bit);
      ASSERT_EQ(f32_to_f16_portable(above), (bits + 1) | sign_bit);
      ASSERT_EQ(f32_to_f16(below), bits | sign_bit);
      ASSERT_EQ(f32_to_f16(sign * middle), even | sign_bit);
      ASSERT_EQ(f32_to_f16(above), (bits + 1) | sign_bit);
    }
  }
}

#if defined(__FLT16_MAX__)
TEST(HalfFloat, AgreesWithTheCompilersOwnTypeOnSpreadValues) {
  for (uint64_t i = 0; i < (uint64_t{1} << 32); i += 65537 / 16) {
    const float value = std::bit_cast<float>(static_cast<uint32_t>(i));
    const auto expected = std::bit_cast<uint16_t>(static_cast<_Float16>(value));
    if (std::isnan(value)) {
      ASSERT_GT(f32_to_f16_portable(value) & 0x7fffu, 0x7c00u);
    } else {
      ASSERT_EQ(f32_to_f16_portable(value), expected) << value;
    }
  }
}
#endif

TEST(HalfFloat, SendsOverflowAndInfinityToInfinity) {
  EXPECT_EQ(f32_to_f16(65519.996f), 0x7bffu);
  EXPECT_EQ(f32_to_f16(65520.0f), 0x7c00u);
  EXPECT_EQ(f32_to_f16(-1e30f), 0xfc00u);
  EXPECT_EQ(f32_to_f16(INFINITY), 0x7c00u);
  EXPECT_EQ(f32_to_bf16(std::numeric_limits<float>::max()), 0x7f80u);
}

TEST(BrainFloat, ReturnsEveryValueUnchangedAndMakesNaNsQuiet) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const bool is_nan = (bits & 0x7fffu) > 0x7f80u;
    ASSERT_EQ(f32_to_bf16(bf16_to_f32(static_cast<uint16_t>(bits))),
              is_nan ? bits | 0x0040u : bits);
  }
}

TEST(BrainFloat, RoundsToNearestEvenAroundEveryMidpoint) {
  for (uint32_t bits = 0; bits < 0x7f80u; ++bits) {
    const uint32_t middle = (bits << 16) | 0x8000u;
    const uint32_t even = (bits & 1u) == 0 ? bits : bits + 1;
    ASSERT_EQ(f32_to_bf16(std::bit_cast<float>(middle - 1)), bits);
    ASSERT_EQ(f32_to_bf16(std::bit_cast<float>(middle)), even);
    ASSERT_EQ(f32_to_bf16(std::bit_cast<float>(middle + 1)), bits + 1);
    ASSERT_EQ(f32_to_bf16(std::bit_cast<float>(middle | 0x80000000u)), even | 0x8000u);
  }
}

TEST(BrainFloat, KeepsASignallingPayloadANaN) {
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x7f800001u)), 0x7fc0u);
}

}  // namespace
}  // namespace rlx
