// What a step asks of the machine: the bytes that it must read and write and the floating-point
// operations of its formula, from the op's meaning and the actual extents. Profiles set them beside
// measured times. A broadcast element counts once, and of a table, a cache or a bank of experts
// only the part that is used.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/op.h"
#include "tensor/shape.h"

namespace rlx {

struct OpWork {
  std::vector<int64_t> read_bytes;     // by input
  std::vector<int64_t> written_bytes;  // by output
  int64_t flops = 0;  // two for each multiply-add of a product or of attention, one
                      // for each step of a formula; other ops count none
};

// Reads no data: for grouped_matmul it takes as many experts as there are choices, which is exact
// for one token and an upper bound for more.
OpWork count_work(const Op& op, std::span<const TensorView* const> inputs,
                  std::span<const TensorView* const> outputs);

}  // namespace rlx
