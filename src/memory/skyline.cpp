#include "memory/skyline.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <queue>

#include "base/error.h"

namespace rlx::memory {
namespace {

constexpr int32_t kNone = std::numeric_limits<int32_t>::max();
constexpr int32_t kLeafSize = 8;

}  // namespace

Skyline::Skyline(const Part& part) : part_(part) {
  const int32_t num_items = static_cast<int32_t>(part.items.size());
  points_.resize(num_items);
  std::iota(points_.begin(), points_.end(), 0);
  rank_.assign(num_items, kNone);
  build(0, 0, num_items, true);
  position_.resize(num_items);
  for (int32_t i = 0; i < num_items; ++i) position_[points_[i]] = i;
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

std::vector<int64_t> Skyline::place(std::span<const int32_t> order) {
  const int32_t num_items = static_cast<int32_t>(part_.items.size());
  std::vector<int64_t> offsets(num_items, 0);
  for (int32_t i = 0; i < num_items; ++i) rank_[order[i]] = i;
  refresh(0, 0, num_items);

  segments_.assign(part_.num_sections, {0, -1, 0});
  std::vector<uint8_t> is_segment(part_.num_sections, 0);
  using Entry = std::pair<int64_t, int32_t>;  // height, first section
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> lowest;
  const auto make_segment = [&](int32_t first, int32_t end, int32_t previous, int64_t height) {
    segments_[first] = {end, previous, height};
    is_segment[first] = 1;
    if (end < part_.num_sections) segments_[end].previous = first;
    lowest.emplace(height, first);
  };
  make_segment(0, part_.num_sections, -1, 0);

  int32_t num_placed = 0;
  while (num_placed < num_items) {
    RLX_CHECK(!lowest.empty());
    const auto [height, valley] = lowest.top();
    if (!is_segment[valley] || segments_[valley].height != height) {
      lowest.pop();
      continue;
    }
    const Segment segment = segments_[valley];
    int32_t best = kNone;
    find_best(0, 0, num_items, valley, segment.end, best);
    if (best == kNone) {
      // Joins the lower neighbor, or both when they are level.
      const bool has_left = segment.previous >= 0, has_right = segment.end < part_.num_sections;
      const int64_t left =
          has_left ? segments_[segment.previous].height : std::numeric_limits<int64_t>::max();
      const int64_t right =
          has_right ? segments_[segment.end].height : std::numeric_limits<int64_t>::max();
      RLX_CHECK(has_left || has_right);
      const int64_t raised = std::min(left, right);
      const int32_t first = left == raised ? segment.previous : valley;
      const int32_t end = right == raised ? segments_[segment.end].end : segment.end;
      const int32_t previous = segments_[first].previous;
      if (right == raised) is_segment[segment.end] = 0;
      if (left == raised) is_segment[valley] = 0;
      make_segment(first, end, previous, raised);
      continue;
    }

    const int32_t index = order[best];
    const Item& item = part_.items[index];
    rank_[index] = kNone;
    remove(0, 0, num_items, position_[index]);
    ++num_placed;
    int64_t offset = height;
    int64_t top = height;
    if (item.slab_end - item.slab_begin == 1) {
      const Slab& slab = part_.slabs[item.slab_begin];
      offset = std::max<int64_t>(0, height - slab.low);
      offset = (offset + item.alignment - 1) & ~(item.alignment - 1);
      top = offset + slab.high;
    } else {
      int64_t low = std::numeric_limits<int64_t>::max();
      for (int32_t s = item.slab_begin; s < item.slab_end; ++s)
        low = std::min(low, part_.slabs[s].low);
      offset = std::max<int64_t>(0, height - low);
      offset = (offset + item.alignment - 1) & ~(item.alignment - 1);
      top = offset + item.size;
    }
    offsets[index] = offset;
    int32_t previous = segment.previous;
    is_segment[valley] = 0;
    if (valley < item.first) {
      make_segment(valley, item.first, previous, height);
      previous = valley;
    }
    make_segment(item.first, item.last, previous, top);
    if (item.last < segment.end) make_segment(item.last, segment.end, item.first, height);
  }
  return offsets;
}

}  // namespace rlx::memory
