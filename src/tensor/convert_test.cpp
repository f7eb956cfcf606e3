#include "tensor/convert.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "base/error.h"
#include "base/thread_pool.h"
#include "tensor/half.h"
#include "tensor/packed.h"
#include "tensor/storage.h"

namespace rlx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <typename To, typename From>
std::vector<To> convert_vector(DType from, const std::vector<From>& source, DType to,
                               const ConvertOptions& options = {}) {
  std::vector<To> result(source.size());
  convert_elements(from, reinterpret_cast<const std::byte*>(source.data()), to,
                   reinterpret_cast<std::byte*>(result.data()), static_cast<int64_t>(source.size()),
                   options);
  return result;
}

template <typename To, typename From>
Error conversion_error(DType from, const std::vector<From>& source, DType to) {
  try {
    convert_vector<To>(from, source, to);
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorCode::kInternal, "There was no error.");
}

constexpr DType kReals[] = {DType::kF64, DType::kF32, DType::kF16, DType::kBF16, DType::kI64,
                            DType::kI32, DType::kI16, DType::kI8,  DType::kU64,  DType::kU32,
                            DType::kU16, DType::kU8,  DType::kBool};

TEST(ConvertElements, CarriesSmallWholeNumbersBetweenEveryPair) {
  const std::vector<double> values = {0, 1, 2, 100, 127};
  for (const DType from : kReals) {
    std::vector<std::byte> source(values.size() * 8);
    convert_elements(DType::kF64, reinterpret_cast<const std::byte*>(values.data()), from,
                     source.data(), 5);
    for (const DType to : kReals) {
      std::vector<std::byte> result(values.size() * 8);
      std::vector<double> back(values.size());
      convert_elements(from, source.data(), to, result.data(), 5);
      convert_elements(to, result.data(), DType::kF64, reinterpret_cast<std::byte*>(back.data()),
                       5);
      for (size_t i = 0; i < values.size(); ++i) {
        const bool is_bool = from == DType::kBool || to == DType::kBool;
        EXPECT_EQ(back[i], is_bool ? (values[i] != 0 ? 1.0 : 0.0) : values[i])
            << to_string(from) << " to " << to_string(to);
      }
    }
  }
}

TEST(ConvertElements, KeepsLargeIntegersExact) {
  const int64_t large = (int64_t{1} << 53) + 1;
  EXPECT_THAT(
      convert_vector<uint64_t>(DType::kI64, std::vector<int64_t>{large, INT64_MAX}, DType::kU64),
      ElementsAre(static_cast<uint64_t>(large), static_cast<uint64_t>(INT64_MAX)));
  EXPECT_THAT(convert_vector<int64_t>(DType::kU64, std::vector<uint64_t>{INT64_MAX}, DType::kI64),
              ElementsAre(INT64_MAX));
  EXPECT_EQ(conversion_error<int64_t>(DType::kU64, std::vector<uint64_t>{1, uint64_t{1} << 63},
                                      DType::kI64)
                .code(),
            ErrorCode::kOutOfRange);
}

TEST(ConvertElements, RoundsToNearestEvenByDefault) {
  const std::vector<float> values = {0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 2.4999998f, 8388609.0f};
  EXPECT_THAT(convert_vector<int32_t>(DType::kF32, values, DType::kI32),
              ElementsAre(0, 2, 2, 0, -2, 2, 8388609));
  ConvertOptions toward_zero;
  toward_zero.whole_rounding = WholeRounding::kTowardZero;
  EXPECT_THAT(convert_vector<int32_t>(DType::kF32, std::vector<float>{1.9f, -1.9f, -0.9f},
                                      DType::kI32, toward_zero),
              ElementsAre(1, -1, 0));
  EXPECT_THAT(
      convert_vector<int64_t>(DType::kF64, std::vector<double>{0x1p52 + 1, -0x1p63}, DType::kI64),
      ElementsAre((int64_t{1} << 52) + 1, INT64_MIN));
}

TEST(ConvertElements, NamesTheFirstElementThatDoesNotFit) {
  const Error error =
      conversion_error<int8_t>(DType::kF32, std::vector<float>{1, 127.4f, 128, NAN}, DType::kI8);
  EXPECT_EQ(error.code(), ErrorCode::kOutOfRange);
  for (const char* part : {"Element 2", "128", "i8", "-128 to 127"}) {
    EXPECT_THAT(error.what(), HasSubstr(part));
  }
  EXPECT_THAT(
      conversion_error<int32_t>(DType::kF64, std::vector<double>{0, NAN}, DType::kI32).what(),
      HasSubstr("Element 1 is nan"));
  EXPECT_THAT(conversion_error<uint8_t>(DType::kI64, std::vector<int64_t>{-1}, DType::kU8).what(),
              HasSubstr("Element 0 is -1"));
  EXPECT_THAT(
      conversion_error<int64_t>(DType::kF32, std::vector<float>{0x1p63f}, DType::kI64).what(),
      HasSubstr("Element 0"));
  EXPECT_THAT(
      conversion_error<uint64_t>(DType::kF32, std::vector<float>{-1.0f}, DType::kU64).what(),
      HasSubstr("Element 0 is -1"));
  EXPECT_THAT(
      conversion_error<uint64_t>(DType::kF64, std::vector<double>{0x1p64}, DType::kU64).what(),
      HasSubstr("Element 0"));
}

TEST(ConvertElements, GivesTheSameBitsAndErrorsOnAnyNumberOfThreads) {
  constexpr int64_t kCount = 200'001;
  std::vector<double> source(kCount);
  for (int64_t i = 0; i < kCount; ++i) source[i] = std::sin(static_cast<double>(i)) * 1000;
  std::vector<uint16_t> alone(kCount), shared(kCount);
  const auto convert = [&](std::vector<uint16_t>& into, DType to, ThreadPool* pool) {
    ConvertOptions options;
    options.pool = pool;
    convert_elements(DType::kF64, reinterpret_cast<const std::byte*>(source.data()), to,
                     reinterpret_cast<std::byte*>(into.data()), kCount, options);
  };
  for (const int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    for (const DType to : {DType::kF16, DType::kBF16, DType::kI16}) {
      convert(alone, to, nullptr);
      convert(shared, to, &pool);
      EXPECT_EQ(alone, shared) << to_string(to);
    }
  }
  // The first of two culprits is named, whichever thread finds it.
  source[150'000] = source[190'000] = 1e9;
  for (const int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    try {
      convert(shared, DType::kI16, &pool);
      FAIL() << "no error";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("Element 150000 is"), std::string::npos);
    }
  }
}

TEST(ConvertElements, SaturatesWhenAsked) {
  ConvertOptions saturate;
  saturate.saturate = true;
  const std::vector<double> values = {1e300, -INFINITY, NAN, 3.5};
  EXPECT_THAT(convert_vector<int64_t>(DType::kF64, values, DType::kI64, saturate),
              ElementsAre(INT64_MAX, INT64_MIN, 0, 4));
  EXPECT_THAT(convert_vector<uint8_t>(DType::kF64, values, DType::kU8, saturate),
              ElementsAre(255, 0, 0, 4));
  EXPECT_THAT(convert_vector<int16_t>(DType::kU64, std::vector<uint64_t>{~uint64_t{0}, 5},
                                      DType::kI16, saturate),
              ElementsAre(32767, 5));
  EXPECT_THAT(convert_vector<uint64_t>(DType::kI8, std::vector<int8_t>{-3}, DType::kU64, saturate),
              ElementsAre(0));
}

// A double just above a midpoint of f16 lies so near that f32 rounds it onto the midpoint.
TEST(ConvertElements, RoundsOnceOnTheWayToSixteenBits) {
  const double above = 1.0 + 0x1p-11 + 0x1p-40;
  const double below = 1.0 + 0x1p-10 + 0x1p-11 - 0x1p-40;
  EXPECT_THAT(
      convert_vector<uint16_t>(DType::kF64, std::vector<double>{above, below, -above}, DType::kF16),
      ElementsAre(0x3c01, 0x3c01, 0xbc01));
  const double b_above = 1.0 + 0x1p-8 + 0x1p-40;
  EXPECT_THAT(
      convert_vector<uint16_t>(DType::kF64, std::vector<double>{b_above, 1.0 + 0x1p-8, 1e300, NAN},
                               DType::kBF16),
      ElementsAre(0x3f81, 0x3f80, 0x7f80, 0x7fc0));
  // 2^62 + 2^54 is a midpoint of bf16, and one more is above it; neither f64 nor f32 holds that
  // one.
  const int64_t middle = (int64_t{1} << 62) + (int64_t{1} << 54);
  const uint16_t low = f32_to_bf16(0x1p62f);
  EXPECT_THAT(convert_vector<uint16_t>(
                  DType::kI64, std::vector<int64_t>{middle, middle + 1, -middle - 1}, DType::kBF16),
              ElementsAre(low, low + 1, (low + 1) | 0x8000));
  EXPECT_THAT(convert_vector<uint16_t>(DType::kI64, std::vector<int64_t>{65519, 65520, INT64_MIN},
                                       DType::kF16),
              ElementsAre(0x7bff, 0x7c00, 0xfc00));
}

TEST(ConvertElements, MatchesTheDirectRoundingOnRandomDoubles) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 200000; ++round) {
    // Exponents around the range of f16, and mantissas near its midpoints.
    const uint64_t exponent = 1023 - 26 + random() % 44;
    uint64_t mantissa = (random() % 2048) << 41;
    mantissa += random() % 5;
    mantissa -= 2;
    const auto bits = (exponent << 52) + (mantissa & ((uint64_t{1} << 52) - 1));
    const double value = std::bit_cast<double>(bits);
    const uint16_t result =
        convert_vector<uint16_t>(DType::kF64, std::vector<double>{value}, DType::kF16)[0];
    // No neighbour is nearer, and in a tie the result is even.
    const auto distance = [&](uint16_t candidate) {
      const double wide =
          candidate == 0x7c00 ? 65536.0 : static_cast<double>(f16_to_f32(candidate));
      return std::fabs(wide - value);
    };
    if (result > 0) {
      const double gap = distance(static_cast<uint16_t>(result - 1)) - distance(result);
      ASSERT_TRUE(gap > 0 || (gap == 0 && result % 2 == 0)) << value;
    }
    if (result < 0x7c00) {
      const double gap = distance(static_cast<uint16_t>(result + 1)) - distance(result);
      ASSERT_TRUE(gap > 0 || (gap == 0 && result % 2 == 0)) << value;
    }
  }
}

TEST(ConvertElements, TakesNonzeroForTrue) {
  EXPECT_THAT(
      convert_vector<uint8_t>(DType::kF32, std::vector<float>{0, -0.0f, NAN, 0.1f}, DType::kBool),
      ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(convert_vector<uint8_t>(DType::kBool, std::vector<uint8_t>{0, 1, 7}, DType::kBool),
              ElementsAre(0, 1, 1));
  EXPECT_THAT(convert_vector<float>(DType::kBool, std::vector<uint8_t>{0, 9}, DType::kF32),
              ElementsAre(0.0f, 1.0f));
  EXPECT_THAT(convert_vector<uint8_t>(DType::kC64, std::vector<std::complex<float>>{{0, 0}, {0, 1}},
                                      DType::kBool),
              ElementsAre(0, 1));
}

TEST(ConvertElements, KeepsComplexNumbersWhole) {
  using C64 = std::complex<float>;
  using C128 = std::complex<double>;
  const std::vector<C64> values = {{1, -2}, {0.5f, 3}};
  EXPECT_THAT(convert_vector<C128>(DType::kC64, values, DType::kC128),
              ElementsAre(C128(1, -2), C128(0.5, 3)));
  EXPECT_THAT(convert_vector<C64>(DType::kI32, std::vector<int32_t>{7}, DType::kC64),
              ElementsAre(C64(7, 0)));
  EXPECT_EQ(conversion_error<float>(DType::kC64, values, DType::kF32).code(),
            ErrorCode::kUnsupported);

  std::vector<double> pairs(4);
  convert_complex_to_pairs(DType::kC64, reinterpret_cast<const std::byte*>(values.data()),
                           DType::kF64, reinterpret_cast<std::byte*>(pairs.data()), 2);
  EXPECT_THAT(pairs, ElementsAre(1, -2, 0.5, 3));
  std::vector<C64> back(2);
  convert_pairs_to_complex(DType::kF64, reinterpret_cast<const std::byte*>(pairs.data()),
                           DType::kC64, reinterpret_cast<std::byte*>(back.data()), 2);
  EXPECT_EQ(back, values);
  EXPECT_THROW(convert_complex_to_pairs(DType::kF32, nullptr, DType::kF32, nullptr, 0), Error);
}

TEST(ConvertElements, DecodesPackedSources) {
  std::vector<float> values(320);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 8) - 4.0f;
  std::vector<std::byte> packed(static_cast<size_t>(storage_bytes(DType::kQ4_0, 320)));
  encode_row(DType::kQ4_0, values.data(), 320, packed.data());
  std::vector<int8_t> result(320);
  convert_elements(DType::kQ4_0, packed.data(), DType::kI8,
                   reinterpret_cast<std::byte*>(result.data()), 320);
  for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(result[i], static_cast<int>(values[i]));
  // The index in the error counts from the start of the row, not of a block.
  packed[packed.size() - 16] = std::byte{0xff};
  packed[packed.size() - 17] = std::byte{0x7b};  // the scale of the last block is 65504 or so
  try {
    convert_elements(DType::kQ4_0, packed.data(), DType::kI8,
                     reinterpret_cast<std::byte*>(result.data()), 320);
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("Element 288"));
  }
  EXPECT_THROW(convert_elements(DType::kQ4_0, packed.data(), DType::kF32, nullptr, 33), Error);
  EXPECT_THROW(convert_elements(DType::kF32, nullptr, DType::kQ4_0, nullptr, 32), Error);
  EXPECT_THROW(convert_elements(DType::kF32, nullptr, DType::kF64, nullptr, -1), Error);
}

}  // namespace
}  // namespace rlx
