#include "runtime/arena.h"

#include <sys/mman.h>

#include "base/error.h"

namespace rlx {

Arena::Arena(const MemoryPlan& plan)
    : size_bytes_(plan.arena_bytes),
      state_bytes_(static_cast<size_t>(plan.segment(Segment::kState).size_bytes)),
      base_bytes_(plan.base_bytes) {
  if (size_bytes_ == 0) return;
  void* mapping = ::mmap(nullptr, static_cast<size_t>(size_bytes_), PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) {
    throw_error(ErrorCode::kOutOfMemory,
                "The arena of {} bytes (state {}, io {}, work {}) cannot be allocated.",
                size_bytes_, plan.segment(Segment::kState).size_bytes,
                plan.segment(Segment::kIo).size_bytes, plan.segment(Segment::kWork).size_bytes);
  }
  // Huge pages nearly double what one thread can read; a refusal only costs speed.
  ::madvise(mapping, static_cast<size_t>(size_bytes_), MADV_HUGEPAGE);
  data_ = static_cast<std::byte*>(mapping);
}

Arena::~Arena() {
  if (data_ != nullptr) ::munmap(data_, static_cast<size_t>(size_bytes_));
}

}  // namespace rlx
