// Random packed weights for tests: every bit pattern of the codes, and scales of sensible size.
#pragma once

#include <random>
#include <vector>

#include "backends/cpu/kernels/matmul_test_call.h"

namespace rlx::cpu {

// Where the f16 scales of a block lie; other bytes may be any.
inline std::vector<int> find_f16_scales(DType dtype) {
  switch (dtype) {
    case DType::kQ4_1:
    case DType::kQ5_1:
    case DType::kQ8_1:
      return {0, 2};
    case DType::kQ2_K:
      return {80, 82};
    case DType::kQ3_K:
      return {108};
    case DType::kQ4_K:
    case DType::kQ5_K:
      return {0, 2};
    case DType::kQ6_K:
      return {208};
    case DType::kTQ1_0:
      return {52};
    case DType::kTQ2_0:
      return {64};
    case DType::kQ8_K:
    case DType::kIQ1_M:
    case DType::kMXFP4:
    case DType::kNVFP4:
      return {};
    default:
      return {0};
  }
}

inline TestTensor random_packed(std::mt19937& random, DType dtype, std::vector<int64_t> extents) {
  TestTensor tensor = make_tensor(dtype, std::move(extents));
  const auto size = static_cast<size_t>(bytes_per_block(dtype));
  std::uniform_real_distribution<float> scale(0.01f, 0.05f);
  for (std::byte& byte : tensor.bytes) byte = static_cast<std::byte>(random());
  for (size_t block = 0; block + size <= tensor.bytes.size(); block += size) {
    std::byte* bytes = tensor.bytes.data() + block;
    for (const int offset : find_f16_scales(dtype)) {
      const uint16_t bits = f32_to_f16(random() % 2 == 0 ? scale(random) : -scale(random));
      std::memcpy(bytes + offset, &bits, 2);
    }
    if (dtype == DType::kQ8_K) {
      const float value = scale(random);
      std::memcpy(bytes, &value, 4);
    } else if (dtype == DType::kMXFP4) {
      bytes[0] = static_cast<std::byte>(120 + random() % 4);
    } else if (dtype == DType::kNVFP4) {
      for (int i = 0; i < 4; ++i) bytes[i] = static_cast<std::byte>(random() % 0x40);
    } else if (dtype == DType::kIQ1_M) {
      // The f16 is spread over the top nibbles of four words from byte 48 on.
      const uint16_t bits = f32_to_f16(scale(random));
      for (int i = 0; i < 4; ++i) {
        const int nibble = bits >> (4 * i) & 15;
        bytes[49 + 2 * i] =
            static_cast<std::byte>((std::to_integer<int>(bytes[49 + 2 * i]) & 15) | nibble << 4);
      }
    }
  }
  return tensor;
}

}  // namespace rlx::cpu
