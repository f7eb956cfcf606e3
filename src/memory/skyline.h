// Filling a skyline from its lowest valley: the fast rule of the portfolio, good enough to reach
// the bound on most networks and cheap enough for tens of thousands of items.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <queue>
#include <span>
#include <utility>
#include <vector>

#include "memory/normal_form.h"
#include "memory/section_heights.h"

namespace rlx::memory {

// Takes the lowest segment of the skyline over the sections; among the unplaced items whose
// lifetime lies inside that valley it places the one that comes first in the order, and when there
// is none it raises the valley to its lower neighbor. A tree over (first, last) finds that item in
// about the square root of the number of items.
//
// The height that a section will have is known long before the end: the sum of all items alive in
// it plus the blocks lost under raised valleys. A fault is a raise that brings a section over the
// goal, and it has culprits: the items of that section that were still unplaced, since one of them
// had to go where the loss is.
class Skyline {
 public:
  struct Fault {
    int32_t section;
    int32_t num_placed;  // items placed when it happened
  };

  static constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

  // Keeps a reference to `part`. Precondition: no item is pinned.
  explicit Skyline(const Part& part);

  // Places all items and returns true, or returns false as soon as some section must reach `limit`.
  // `order` names every item once. Heights are in blocks from the base of the part; with kNoLimit
  // for both, faults are not looked for, which is faster.
  bool place(std::span<const int32_t> order, int64_t goal, int64_t limit);

  // Of the last run: offsets in blocks from the base, complete if place() returned true; the first
  // faults; and when each item was placed, counted from 0, kUnplaced if it was not.
  static constexpr int32_t kUnplaced = std::numeric_limits<int32_t>::max();
  const std::vector<int64_t>& offsets() const { return offsets_; }
  const std::vector<Fault>& faults() const { return faults_; }
  const std::vector<int32_t>& turns() const { return turns_; }

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
  void put(int32_t index, int32_t valley);
  int32_t raise(int32_t valley);
  void make_segment(int32_t first, int32_t end, int32_t previous, int64_t height);

  const Part& part_;
  std::vector<int32_t> points_;    // items in the order of the tree's leaves
  std::vector<int32_t> position_;  // of an item in points_
  std::vector<Node> nodes_;
  std::vector<int32_t> rank_;      // of an item in the order; kNone once placed
  std::vector<Segment> segments_;  // by first section
  std::vector<uint8_t> is_segment_;
  using Entry = std::pair<int64_t, int32_t>;  // height, first section
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> lowest_;

  std::vector<int64_t> totals_;  // per section
  SectionHeights heights_;       // totals and losses
  std::vector<int64_t> offsets_;
  std::vector<Fault> faults_;
  std::vector<int32_t> turns_;
};

}  // namespace rlx::memory
