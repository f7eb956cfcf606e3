// What this machine can do right now, measured beside the kernels: virtual machines share memory
// and processors with strangers, so a rate means nothing without the ceiling of the same minute.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace rlx::bench {

// Runs `count` times 10 independent f32 vector multiply-adds; returns the floating-point operations
// done (two for each lane).
int64_t run_multiply_adds(int64_t count);

// Reads all bytes once, as four interleaved streams of whole vectors; returns something that
// depends on all of them.
float read_all(std::span<const std::byte> bytes);

}  // namespace rlx::bench
