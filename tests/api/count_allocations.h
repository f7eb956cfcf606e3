// Counts what the whole process takes from the heap: malloc and its relatives are replaced by ones
// that count and hand on to the C library's, so that operator new and every thread are seen too.
#pragma once

#include <cstdint>

namespace rlx {

// Allocations of all threads while the scope lives. One scope at a time.
class CountAllocations {
 public:
  CountAllocations();
  ~CountAllocations();
  CountAllocations(const CountAllocations&) = delete;
  CountAllocations& operator=(const CountAllocations&) = delete;

  int64_t count() const;
};

}  // namespace rlx
