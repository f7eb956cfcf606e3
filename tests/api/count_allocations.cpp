#include "count_allocations.h"

#include <atomic>
#include <cerrno>
#include <cstddef>

namespace {

std::atomic<bool> is_counting{false};
std::atomic<int64_t> num_allocations{0};

void note() {
  if (is_counting.load(std::memory_order_relaxed)) {
    num_allocations.fetch_add(1, std::memory_order_relaxed);
  }
}

}  // namespace

extern "C" {

// The C library's own, under the names that it exports for this.
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* block, size_t size);
void* __libc_memalign(size_t alignment, size_t size);

void* malloc(size_t size) {
  note();
  return __libc_malloc(size);
}

void* calloc(size_t count, size_t size) {
  note();
  return __libc_calloc(count, size);
}

void* realloc(void* block, size_t size) {
  note();
  return __libc_realloc(block, size);
}

void* memalign(size_t alignment, size_t size) {
  note();
  return __libc_memalign(alignment, size);
}

void* aligned_alloc(size_t alignment, size_t size) {
  note();
  return __libc_memalign(alignment, size);
}

int posix_memalign(void** block, size_t alignment, size_t size) {
  note();
  *block = __libc_memalign(alignment, size);
  return *block == nullptr ? ENOMEM : 0;
}
}

namespace rlx {

CountAllocations::CountAllocations() {
  num_allocations.store(0);
  is_counting.store(true);
}

CountAllocations::~CountAllocations() { is_counting.store(false); }

int64_t CountAllocations::count() const { return num_allocations.load(); }

}  // namespace rlx
