// What this machine can do right now, measured beside the kernels: virtual machines share memory
// and processors with strangers, so a rate means nothing without the ceiling of the same minute.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/thread_pool.h"

namespace rlx::cpu {

// Runs `count` times 10 independent f32 vector multiply-adds; returns the floating-point operations
// done (two for each lane).
int64_t run_multiply_adds(int64_t count);

// Reads all bytes once, as four interleaved streams of whole vectors; returns something that
// depends on all of them.
float read_all(std::span<const std::byte> bytes);

struct MachinePeak {
  double read_gb_s = 0;  // bytes read by all threads together, from memory
  double gflop_s = 0;    // f32 multiply-adds of all threads together, two operations each
};

// Holds memory, larger than any cache, to read from.
class MachineProbe {
 public:
  // Throws kOutOfMemory.
  MachineProbe();
  ~MachineProbe();
  MachineProbe(const MachineProbe&) = delete;
  MachineProbe& operator=(const MachineProbe&) = delete;

  // Reads it all once and multiplies for a few milliseconds on all threads of the pool, and keeps
  // the better of the result and what `best` holds.
  void measure(ThreadPool& pool, MachinePeak& best) const;

 private:
  static constexpr size_t kBytes = size_t{256} << 20;
  std::byte* data_;
};

}  // namespace rlx::cpu
