#include "tensor/packed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/mapped_file.h"
#include "tensor/half.h"
#include "tensor/storage.h"

namespace rlx {
namespace {

using ::testing::HasSubstr;

// Where a tensor lies in the reference file. The test cannot use the safetensors reader, which
// builds on this folder, so it looks its two offsets up in the text.
struct Range {
  size_t begin;
  size_t end;
};

class ReferenceBlocks {
 public:
  ReferenceBlocks() : file_("tests/data/gguf-blocks/blocks.safetensors") {
    uint64_t header_bytes = 0;
    std::memcpy(&header_bytes, file_.bytes().data(), sizeof(header_bytes));
    header_ = {reinterpret_cast<const char*>(file_.bytes().data()) + 8, header_bytes};
  }

  // Nothing when there is no such tensor.
  std::span<const std::byte> find(const std::string& name) const {
    const size_t entry = header_.find("\"" + name + "\"");
    if (entry == std::string_view::npos) return {};
    const size_t offsets = header_.find("\"data_offsets\"", entry);
    const size_t open = header_.find('[', offsets);
    const size_t comma = header_.find(',', open);
    const size_t begin = std::stoull(std::string(header_.substr(open + 1, comma - open - 1)));
    const size_t end = std::stoull(std::string(header_.substr(comma + 1, 20)));
    return file_.bytes().subspan(8 + header_.size() + begin, end - begin);
  }

 private:
  MappedFile file_;
  std::string_view header_;
};

std::string reference_name(DType dtype) {
  std::string name(to_string(dtype));
  if (name.ends_with("_k")) name.back() = 'K';
  return name;
}

TEST(DecodeRow, MatchesTheReferenceBitByBit) {
  const ReferenceBlocks blocks;
  int num_formats = 0;
  for (int number = 0; number < kNumDTypes; ++number) {
    const auto dtype = static_cast<DType>(number);
    const auto packed = blocks.find(reference_name(dtype) + ".packed");
    const auto values = blocks.find(reference_name(dtype) + ".values");
    if (packed.empty()) continue;
    ++num_formats;
    const int64_t elements = static_cast<int64_t>(values.size()) / 4;
    ASSERT_EQ(storage_bytes(dtype, elements), static_cast<int64_t>(packed.size()));
    std::vector<uint32_t> expected(static_cast<size_t>(elements));
    std::memcpy(expected.data(), values.data(), values.size());
    std::vector<float> decoded(static_cast<size_t>(elements), -77.0f);
    decode_row(dtype, packed.data(), elements, decoded.data());
    int num_differences = 0;
    for (size_t i = 0; i < decoded.size(); ++i) {
      if (std::bit_cast<uint32_t>(decoded[i]) != expected[i] && ++num_differences < 5) {
        ADD_FAILURE() << to_string(dtype) << " element " << i << " is " << decoded[i]
                      << ", but expected " << std::bit_cast<float>(expected[i]);
      }
    }
    EXPECT_EQ(num_differences, 0) << to_string(dtype);
  }
  EXPECT_EQ(num_formats, 25);  // all but q8_1 and q8_k, which hold activations
}

TEST(DecodeRow, ReadsTheTwoFormatsOfActivations) {
  std::vector<std::byte> block(36);
  const uint16_t scale = f32_to_f16(0.25f);
  std::memcpy(block.data(), &scale, 2);
  for (int i = 0; i < 32; ++i) block[static_cast<size_t>(4 + i)] = static_cast<std::byte>(i - 16);
  std::vector<float> out(256);
  decode_row(DType::kQ8_1, block.data(), 32, out.data());
  for (int i = 0; i < 32; ++i) {
    EXPECT_EQ(out[static_cast<size_t>(i)], 0.25f * static_cast<float>(i - 16));
  }

  std::vector<std::byte> large(292);
  const float wide_scale = 1e-20f;
  std::memcpy(large.data(), &wide_scale, 4);
  for (int i = 0; i < 256; ++i) {
    large[static_cast<size_t>(4 + i)] = static_cast<std::byte>(i - 128);
  }
  decode_row(DType::kQ8_K, large.data(), 256, out.data());
  EXPECT_EQ(out[0], -128 * 1e-20f);
  EXPECT_EQ(out[255], 127 * 1e-20f);
}

TEST(DecodeRow, TakesAnyBytesOfEveryFormat) {
  std::mt19937 random(3);
  for (int number = 0; number < kNumDTypes; ++number) {
    const auto dtype = static_cast<DType>(number);
    if (!is_packed(dtype)) continue;
    const int64_t elements = 16 * elements_per_block(dtype);
    std::vector<std::byte> packed(static_cast<size_t>(storage_bytes(dtype, elements)));
    std::vector<float> out(static_cast<size_t>(elements));
    for (std::byte& byte : packed) byte = static_cast<std::byte>(random());
    decode_row(dtype, packed.data(), elements, out.data());
    decode_row(dtype, packed.data(), 0, nullptr);
  }
}

TEST(DecodeRow, RefusesPartialBlocksAndOtherDTypes) {
  float out[32];
  const std::byte packed[64] = {};
  EXPECT_THROW(decode_row(DType::kQ4_0, packed, 31, out), Error);
  EXPECT_THROW(decode_row(DType::kI32, packed, 4, out), Error);
}

std::vector<float> random_values(size_t count) {
  std::mt19937 random(4);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

std::string hex_of(const std::vector<std::byte>& bytes) {
  std::string text;
  for (const std::byte byte : bytes) {
    text += "0123456789abcdef"[static_cast<int>(byte) >> 4];
    text += "0123456789abcdef"[static_cast<int>(byte) & 15];
  }
  return text;
}

TEST(EncodeRow, WritesTheBytesThatTheReferenceWrites) {
  // The expected bytes come from quantize() of the Python package gguf.
  std::vector<float> values(64);
  for (int i = 0; i < 64; ++i) {
    values[static_cast<size_t>(i)] =
        static_cast<float>((i * 37) % 101 - 50) * 0.03125f * (i < 32 ? 1.0f : -3.0f);
  }
  values[5] += 0.001f;
  std::vector<std::byte> packed(68);
  encode_row(DType::kQ8_0, values.data(), 64, packed.data());
  EXPECT_EQ(hex_of(packed),
            "4d2281df3d9af856b41270cd2b89e745"
            "a2005ebb1977d53390ee4caa0866c321"
            "7fdca128c46a0aaa50f09136d77c1dbd"
            "6203a349e9892fcf7515b55bfb9b41e1"
            "8127c76d");
  packed.resize(36);
  encode_row(DType::kQ4_0, values.data(), 64, packed.data());
  EXPECT_EQ(hex_of(packed),
            "4032e046acf258bd1379df358be046ac"
            "f2689838740fb953fd9731eb852fca64"
            "0ea842fd");
}

TEST(EncodeRow, RoundsAsTheReferenceDoes) {
  std::vector<float> values(32, 0.0f);
  values[0] = -127.0f;  // the scale is 1
  values[1] = 2.5f;
  values[2] = -2.5f;
  values[3] = 2.4f;
  std::vector<std::byte> block(34);
  encode_row(DType::kQ8_0, values.data(), 32, block.data());
  EXPECT_EQ(static_cast<int8_t>(block[2]), -127);
  EXPECT_EQ(static_cast<int8_t>(block[3]), 3);
  EXPECT_EQ(static_cast<int8_t>(block[4]), -3);
  EXPECT_EQ(static_cast<int8_t>(block[5]), 2);

  values.assign(32, 0.0f);
  values[0] = -8.0f;  // the scale is 1
  values[1] = 7.0f;
  values[2] = 7.9f;
  values[16] = -0.5f;
  std::vector<std::byte> nibbles(18);
  encode_row(DType::kQ4_0, values.data(), 32, nibbles.data());
  EXPECT_EQ(static_cast<int>(nibbles[2]), 0x80);
  EXPECT_EQ(static_cast<int>(nibbles[3]), 0x8f);
  EXPECT_EQ(static_cast<int>(nibbles[4]), 0x8f);
}

TEST(EncodeRow, StaysWithinHalfAStep) {
  const std::vector<float> values = random_values(4096);
  for (const DType dtype : {DType::kQ8_0, DType::kQ4_0, DType::kF16, DType::kBF16, DType::kF32}) {
    std::vector<std::byte> packed(static_cast<size_t>(storage_bytes(dtype, 4096)));
    std::vector<float> decoded(4096);
    encode_row(dtype, values.data(), 4096, packed.data());
    decode_row(dtype, packed.data(), 4096, decoded.data());
    const float step = dtype == DType::kQ4_0 ? 0.6f : 0.03f;
    for (size_t i = 0; i < 4096; ++i) ASSERT_NEAR(decoded[i], values[i], step) << to_string(dtype);
  }
}

TEST(EncodeRow, TakesZerosAndTinyValues) {
  for (const float value : {0.0f, -0.0f, 1e-45f, -1e-40f, 1e-36f}) {
    const std::vector<float> values(32, value);
    for (const DType dtype : {DType::kQ8_0, DType::kQ4_0}) {
      std::vector<std::byte> block(34);
      std::vector<float> decoded(32);
      encode_row(dtype, values.data(), 32, block.data());
      decode_row(dtype, block.data(), 32, decoded.data());
      for (const float result : decoded) EXPECT_EQ(result, 0.0f);
    }
  }
}

TEST(EncodeRow, NamesValuesThatTheFormatCannotHold) {
  std::vector<float> values(64, 1.0f);
  std::vector<std::byte> packed(68);
  for (const float bad : {std::nanf(""), INFINITY, -1e9f}) {
    values[40] = bad;
    for (const DType dtype : {DType::kQ8_0, DType::kQ4_0}) {
      try {
        encode_row(dtype, values.data(), 64, packed.data());
        FAIL() << "expected an error";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kOutOfRange);
        EXPECT_THAT(error.what(), HasSubstr("Element 40"));
      }
    }
  }
  EXPECT_THROW(encode_row(DType::kQ4_K, values.data(), 0, packed.data()), Error);
}

}  // namespace
}  // namespace rlx
