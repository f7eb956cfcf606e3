// Filling a skyline from its lowest valley: the fast rule of the portfolio, good enough to reach
// the bound on most networks and cheap enough for tens of thousands of items.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "memory/normal_form.h"

namespace rlx::memory {

// Takes the lowest segment of the skyline over the sections; among the unplaced items whose
// lifetime lies inside that valley it places the one that comes first in the order, and when there
// is none it raises the valley to its lower neighbor. A tree over (first, last) finds that item in
// about the square root of the number of items.
class Skyline {
 public:
  // Keeps a reference to `part`. Precondition: no item is pinned.
  explicit Skyline(const Part& part);

  // Returns the offset of every item, in blocks from the base. `order` names every item once.
  std::vector<int64_t> place(std::span<const int32_t> order);

 private:
  struct Node {
    int32_t min_first, max_first, min_last, max_last;
    int32_t best;  // the least rank of an unplaced item below; kNone without any
  };
  struct Segment {
    int32_t end, previous;  // sections; `previous` is where the segment before begins, -1: none
    int64_t height;
  };

  int32_t build(int32_t node, int32_t begin, int32_t end, bool splits_by_first);
  int32_t refresh(int32_t node, int32_t begin, int32_t end);
  void find_best(int32_t node, int32_t begin, int32_t end, int32_t low, int32_t high,
                 int32_t& best) const;
  void remove(int32_t node, int32_t begin, int32_t end, int32_t position);
  void place_on(int32_t item, int32_t valley);

  const Part& part_;
  std::vector<int32_t> points_;    // items in the order of the tree's leaves
  std::vector<int32_t> position_;  // of an item in points_
  std::vector<Node> nodes_;
  std::vector<int32_t> rank_;      // of an item in the order; kNone once placed
  std::vector<Segment> segments_;  // by first section
};

}  // namespace rlx::memory
