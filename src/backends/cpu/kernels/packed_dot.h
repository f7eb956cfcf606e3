// Products of packed weights with activations quantised to int8, the inner loops of a quantised
// model. A weight block of 32 has a scale, an activation block of 32 has a scale, and the sum of
// the products of their codes is an exact integer, so that an output is
//
//   sum over blocks of (w scale * x scale) * integer [+ w minimum * (x scale * sum of x codes)]
//
// Block b is added to partial sum b mod 8, in order, with one fused multiply-add a term; the eight
// are added as a fixed tree. The kernels for one row and for many rows follow this to the bit, so a
// token's result does not depend on how many tokens stand beside it. (The portable kernels round
// once more, since there is no fused multiply-add everywhere.)
#pragma once

#include <cstddef>
#include <cstdint>

#include "rlx/dtype.h"

namespace rlx::cpu {

// Elements of a block of activations. All packed formats here have 32 or 256 elements a block.
inline constexpr int64_t kQuantBlock = 32;
// Blocks that are taken together; activations are padded with zeros to whole groups.
inline constexpr int64_t kQuantGroup = 8;
// Columns of a decoded strip.
inline constexpr int64_t kStripColumns = 16;

// One quantised row of activations: x[i] = codes[i] * scales[i / 32].
struct QuantizedRow {
  int8_t* codes;         // in [-127, 127]
  float* scales;         // largest magnitude of the block / 127
  float* scaled_sums;    // scale * sum of the block's codes
  int32_t* offset_sums;  // sum of the block's codes * the offset of the weight's codes
  int16_t* half_sums;    // sums of 16 codes
  int16_t* wide_codes;   // the codes again, for kernels that multiply 16 bits; else null
};

struct QuantizedLayout {
  int64_t padded_blocks;
  bool has_wide_codes;

  QuantizedLayout(int64_t depth, bool wide)
      : padded_blocks((depth + kQuantBlock * kQuantGroup - 1) / (kQuantBlock * kQuantGroup) *
                      kQuantGroup),
        has_wide_codes(wide) {}
  // A multiple of 64.
  int64_t row_bytes() const {
    return padded_blocks * (kQuantBlock + 4 + 4 + 4 + 4 + (has_wide_codes ? 2 * kQuantBlock : 0));
  }
  // The parts of a row that begins at `base`, which is aligned to 32 bytes.
  QuantizedRow row(std::byte* base) const {
    QuantizedRow row;
    std::byte* next = base;
    const auto take = [&](int64_t bytes) {
      std::byte* taken = next;
      next += bytes;
      return taken;
    };
    row.codes = reinterpret_cast<int8_t*>(take(padded_blocks * kQuantBlock));
    row.scales = reinterpret_cast<float*>(take(padded_blocks * 4));
    row.scaled_sums = reinterpret_cast<float*>(take(padded_blocks * 4));
    row.offset_sums = reinterpret_cast<int32_t*>(take(padded_blocks * 4));
    row.half_sums = reinterpret_cast<int16_t*>(take(padded_blocks * 4));
    row.wide_codes = has_wide_codes ? reinterpret_cast<int16_t*>(next) : nullptr;
    return row;
  }
};

// The kernels of one packed format. `depth` is a whole number of the format's blocks; weights need
// no alignment, and no byte after the last block of a row is read.
struct PackedKernels {
  bool wants_wide_codes;  // in multiply_strip
  // Bytes of a strip for each group of 8 blocks.
  int64_t strip_group_bytes;

  // Fills the row, padding included, for this format's offset. A NaN or an infinity makes its whole
  // block NaN.
  void (*quantize)(const float* x, int64_t depth, const QuantizedRow& row);
  // out[c] for columns of w that lie w_stride bytes apart, read as they are packed.
  void (*dot)(const std::byte* w, int64_t w_stride, int64_t columns, int64_t depth,
              const QuantizedRow& row, float* out);
  // Unpacks up to kStripColumns columns for multiply_strip; absent columns give zeros. `strip` is
  // aligned to 32 bytes and holds strip_group_bytes for each group.
  void (*decode_strip)(const std::byte* w, int64_t w_stride, int64_t columns, int64_t depth,
                       std::byte* strip);
  // out[r * out_stride + c] for c < kStripColumns.
  void (*multiply_strip)(const std::byte* strip, int64_t depth, const QuantizedRow* rows,
                         int64_t num_rows, float* out, int64_t out_stride);
};

// The kernels for the processor at hand; null for formats that have none (their tiles are decoded
// to f32 instead).
const PackedKernels* find_packed_kernels(DType dtype);

// By instruction set, for the above and for tests. The AVX2 ones may only be called where the
// processor has AVX2, FMA and F16C.
const PackedKernels* find_portable_packed_kernels(DType dtype);
const PackedKernels* find_avx2_packed_kernels(DType dtype);

}  // namespace rlx::cpu
