// The one allocation of a session: state, io and work at the offsets that the plan gave them. On
// the CPU it is host memory; device arenas keep the same contract.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "program/program.h"

namespace rlx {

class Arena {
 public:
  // Reserves the plan's bytes, zero-filled. Throws kOutOfMemory with the plan's figures.
  explicit Arena(const MemoryPlan& plan);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  int64_t size_bytes() const { return size_bytes_; }
  // The first byte of a segment; not kWeights, which lies elsewhere.
  std::byte* segment(Segment segment) const {
    return data_ + base_bytes_[static_cast<int>(segment)];
  }
  // All bytes of the state segment: what a saved session holds.
  std::span<std::byte> state() const { return {segment(Segment::kState), state_bytes_}; }

 private:
  std::byte* data_ = nullptr;
  int64_t size_bytes_ = 0;
  size_t state_bytes_ = 0;
  std::array<int64_t, kNumSegments> base_bytes_{};
};

}  // namespace rlx
