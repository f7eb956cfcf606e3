// A height for every section, raised over ranges, with the highest known at all times: a tree, so
// that both take time in the logarithm of the number of sections.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace rlx::memory {

class SectionHeights {
 public:
  struct Highest {
    int64_t height;
    int32_t section;
  };

  void assign(const std::vector<int64_t>& heights) {
    num_leaves_ = 1;
    while (num_leaves_ < heights.size()) num_leaves_ *= 2;
    highest_.assign(2 * num_leaves_, 0);
    added_.assign(2 * num_leaves_, 0);
    std::copy(heights.begin(), heights.end(), highest_.begin() + num_leaves_);
    for (size_t n = num_leaves_; --n > 0;) {
      highest_[n] = std::max(highest_[2 * n], highest_[2 * n + 1]);
    }
  }

  // Adds `blocks` to the sections [first, last), of which there is at least one, and returns the
  // highest of them.
  Highest raise(int32_t first, int32_t last, int64_t blocks) {
    return raise(1, 0, static_cast<int32_t>(num_leaves_), first, last, blocks);
  }

 private:
  Highest raise(size_t node, int32_t begin, int32_t end, int32_t first, int32_t last,
                int64_t blocks) {
    if (first <= begin && end <= last) {
      highest_[node] += blocks;
      added_[node] += blocks;
      return {highest_[node], find_highest(node)};
    }
    const int32_t middle = begin + (end - begin) / 2;
    Highest highest{-1, -1};
    if (first < middle) highest = raise(2 * node, begin, middle, first, last, blocks);
    if (last > middle) {
      const Highest right = raise(2 * node + 1, middle, end, first, last, blocks);
      if (right.height > highest.height) highest = right;
    }
    highest_[node] = std::max(highest_[2 * node], highest_[2 * node + 1]) + added_[node];
    highest.height += added_[node];
    return highest;
  }

  int32_t find_highest(size_t node) const {
    while (node < num_leaves_) {
      node = highest_[2 * node] + added_[node] == highest_[node] ? 2 * node : 2 * node + 1;
    }
    return static_cast<int32_t>(node - num_leaves_);
  }

  size_t num_leaves_ = 1;
  std::vector<int64_t> highest_;  // below a node, with all that was added at or below it
  std::vector<int64_t> added_;  // to all sections below a node, apart from what is in its children
};

}  // namespace rlx::memory
