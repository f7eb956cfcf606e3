#include "memory/skyline.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/error.h"

namespace rlx::memory {
namespace {

constexpr int32_t kNone = std::numeric_limits<int32_t>::max();
constexpr int32_t kLeafSize = 8;

// More culprits would only move together.
constexpr size_t kMaxFaults = 16;

}  // namespace

Skyline::Skyline(const Part& part) : part_(part) {
  const int32_t num_items = static_cast<int32_t>(part.items.size());
  points_.resize(num_items);
  std::iota(points_.begin(), points_.end(), 0);
  rank_.assign(num_items, kNone);
  build(0, 0, num_items, true);
  position_.resize(num_items);
  for (int32_t i = 0; i < num_items; ++i) position_[points_[i]] = i;
  totals_ = find_section_totals(part);
}

// Node k has children 2k + 1 and 2k + 2 and halves its range of points.
int32_t Skyline::build(int32_t node, int32_t begin, int32_t end, bool splits_by_first) {
  if (static_cast<size_t>(node) >= nodes_.size()) nodes_.resize(node + 1);
  Node box{kNone, -1, kNone, -1, kNone};
  for (int32_t i = begin; i < end; ++i) {
    const Item& item = part_.items[points_[i]];
    box.min_first = std::min(box.min_first, item.first);
    box.max_first = std::max(box.max_first, item.first);
    box.min_last = std::min(box.min_last, item.last);
    box.max_last = std::max(box.max_last, item.last);
  }
  nodes_[node] = box;
  if (end - begin <= kLeafSize) return kNone;
  const int32_t middle = begin + (end - begin) / 2;
  std::nth_element(points_.begin() + begin, points_.begin() + middle, points_.begin() + end,
                   [&](int32_t a, int32_t b) {
                     const Item &x = part_.items[a], &y = part_.items[b];
                     const int32_t u = splits_by_first ? x.first : x.last;
                     const int32_t v = splits_by_first ? y.first : y.last;
                     return u != v ? u < v : a < b;
                   });
  build(2 * node + 1, begin, middle, !splits_by_first);
  build(2 * node + 2, middle, end, !splits_by_first);
  return kNone;
}

int32_t Skyline::refresh(int32_t node, int32_t begin, int32_t end) {
  int32_t best = kNone;
  if (end - begin <= kLeafSize) {
    for (int32_t i = begin; i < end; ++i) best = std::min(best, rank_[points_[i]]);
  } else {
    const int32_t middle = begin + (end - begin) / 2;
    best = std::min(refresh(2 * node + 1, begin, middle), refresh(2 * node + 2, middle, end));
  }
  return nodes_[node].best = best;
}

void Skyline::find_best(int32_t node, int32_t begin, int32_t end, int32_t low, int32_t high,
                        int32_t& best) const {
  const Node& box = nodes_[node];
  if (box.best >= best || box.max_first < low || box.min_last > high) return;
  if (box.min_first >= low && box.max_last <= high) {
    best = box.best;
    return;
  }
  if (end - begin <= kLeafSize) {
    for (int32_t i = begin; i < end; ++i) {
      const Item& item = part_.items[points_[i]];
      if (item.first >= low && item.last <= high) best = std::min(best, rank_[points_[i]]);
    }
    return;
  }
  const int32_t middle = begin + (end - begin) / 2;
  find_best(2 * node + 1, begin, middle, low, high, best);
  find_best(2 * node + 2, middle, end, low, high, best);
}

void Skyline::remove(int32_t node, int32_t begin, int32_t end, int32_t position) {
  if (end - begin <= kLeafSize) {
    int32_t best = kNone;
    for (int32_t i = begin; i < end; ++i) best = std::min(best, rank_[points_[i]]);
    nodes_[node].best = best;
    return;
  }
  const int32_t middle = begin + (end - begin) / 2;
  if (position < middle) {
    remove(2 * node + 1, begin, middle, position);
  } else {
    remove(2 * node + 2, middle, end, position);
  }
  nodes_[node].best = std::min(nodes_[2 * node + 1].best, nodes_[2 * node + 2].best);
}

void Skyline::make_segment(int32_t first, int32_t end, int32_t previous, int64_t height) {
  segments_[first] = {end, previous, height};
  is_segment_[first] = 1;
  if (end < part_.num_sections) segments_[end].previous = first;
  lowest_.emplace(height, first);
}

// Puts an item that lies inside `valley` on its ground.
void Skyline::put(int32_t index, int32_t valley) {
  const Item& item = part_.items[index];
  const Segment segment = segments_[valley];
  int64_t low = std::numeric_limits<int64_t>::max();
  int64_t high = 0;
  for (int32_t s = item.slab_begin; s < item.slab_end; ++s) {
    low = std::min(low, part_.slabs[s].low);
    high = std::max(high, part_.slabs[s].high);
  }
  int64_t offset = std::max<int64_t>(0, segment.height - low);
  offset = (offset + item.alignment - 1) & ~(item.alignment - 1);
  offsets_[index] = offset;
  int32_t previous = segment.previous;
  is_segment_[valley] = 0;
  if (valley < item.first) {
    make_segment(valley, item.first, previous, segment.height);
    previous = valley;
  }
  make_segment(item.first, item.last, previous, offset + high);
  if (item.last < segment.end) make_segment(item.last, segment.end, item.first, segment.height);
}

// Joins a valley to its lower neighbor, or to both when they are level. Returns where the segment
// that it becomes begins.
int32_t Skyline::raise(int32_t valley) {
  const Segment segment = segments_[valley];
  const bool has_left = segment.previous >= 0, has_right = segment.end < part_.num_sections;
  constexpr int64_t kHighest = std::numeric_limits<int64_t>::max();
  const int64_t left = has_left ? segments_[segment.previous].height : kHighest;
  const int64_t right = has_right ? segments_[segment.end].height : kHighest;
  RLX_CHECK(has_left || has_right);
  const int64_t raised = std::min(left, right);
  const int32_t first = left == raised ? segment.previous : valley;
  const int32_t end = right == raised ? segments_[segment.end].end : segment.end;
  const int32_t previous = segments_[first].previous;
  if (right == raised) is_segment_[segment.end] = 0;
  if (left == raised) is_segment_[valley] = 0;
  make_segment(first, end, previous, raised);
  return first;
}

bool Skyline::place(std::span<const int32_t> order, int64_t goal, int64_t limit) {
  const int32_t num_items = static_cast<int32_t>(part_.items.size());
  for (int32_t i = 0; i < num_items; ++i) rank_[order[i]] = i;
  refresh(0, 0, num_items);
  offsets_.assign(num_items, 0);
  turns_.assign(num_items, kUnplaced);
  faults_.clear();
  const bool is_watched = goal < kNoLimit || limit < kNoLimit;
  if (is_watched) heights_.assign(totals_);
  segments_.assign(part_.num_sections, {0, -1, 0});
  is_segment_.assign(part_.num_sections, 0);
  lowest_ = {};
  make_segment(0, part_.num_sections, -1, 0);

  int32_t num_placed = 0;
  while (num_placed < num_items) {
    RLX_CHECK(!lowest_.empty());
    const auto [height, valley] = lowest_.top();
    if (!is_segment_[valley] || segments_[valley].height != height) {
      lowest_.pop();
      continue;
    }
    const int32_t end = segments_[valley].end;
    int32_t best = kNone;
    find_best(0, 0, num_items, valley, end, best);
    if (best == kNone) {
      const int64_t lost = segments_[raise(valley)].height - height;
      if (!is_watched) continue;
      const SectionHeights::Highest highest = heights_.raise(valley, end, lost);
      if (highest.height > goal && faults_.size() < kMaxFaults) {
        faults_.push_back({highest.section, num_placed});
      }
      if (highest.height >= limit) return false;
      continue;
    }
    const int32_t index = order[best];
    put(index, valley);
    turns_[index] = num_placed++;
    rank_[index] = kNone;
    remove(0, 0, num_items, position_[index]);
  }
  return true;
}

}  // namespace rlx::memory
