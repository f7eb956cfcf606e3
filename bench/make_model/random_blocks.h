// Random weights straight in a packed format: the codes are random bits and the scales are chosen
// so that the decoded values have mean 0 and the wanted spread. Every block is one that a quantiser
// could have written, and no float is ever rounded, so a gigabyte takes about a second.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "rlx/dtype.h"

namespace rlx::bench {

// A fast stream of bits (xorshift128+); the same seed gives the same file everywhere.
class RandomBits {
 public:
  explicit RandomBits(uint64_t seed);
  uint64_t next();
  // In [0, bound); bound >= 1.
  uint64_t below(uint64_t bound) { return next() % bound; }
  // In [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  uint64_t a_, b_;
};

// Fills whole blocks of `dtype` with values of mean 0 and root mean square about `spread` (within a
// factor of 1.5). Takes f32, f16, bf16, q8_0, q4_0, q4_1, q5_0, q5_1, q2_k to q6_k, iq4_nl, iq4_xs
// and mxfp4; throws kUnsupported for others.
void fill_random_blocks(DType dtype, double spread, RandomBits& random, std::span<std::byte> bytes);

}  // namespace rlx::bench
