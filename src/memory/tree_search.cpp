#include "memory/tree_search.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "base/error.h"

namespace rlx::memory {
namespace {

// A node over many items costs as several.
constexpr int64_t kItemsPerNode = 256;

// splitmix64, so that noise is the same on every machine.
uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace

class TreeSearch::Engine {
 public:
  virtual ~Engine() = default;
  virtual SearchResult run(const SearchOptions& options) = 0;
  virtual std::vector<int64_t> offsets() const = 0;

  bool is_complete = true;
  int64_t num_nodes = 0;
  std::vector<int64_t> blame;
};

namespace {

// `Blocks` is int32_t where heights fit, which makes the section bound twice as fast.
template <typename Blocks>
class EngineOf final : public TreeSearch::Engine {
 public:
  EngineOf(const Part& part, int64_t sum);

  SearchResult run(const SearchOptions& options) override;
  std::vector<int64_t> offsets() const override { return {offset_.begin(), offset_.end()}; }

 private:
  // Items that are searched together, as a range of `stack_`.
  struct Range {
    size_t begin, end;
  };
  struct Neighbor {
    int32_t item;
    Blocks rise;  // least offset of the neighbor above the offset of the item
  };
  struct Saved {
    int32_t item;
    Blocks floor, least;
  };
  struct Candidate {
    Blocks offset;
    int32_t rank, item;
  };
  static constexpr Blocks kMax = std::numeric_limits<Blocks>::max();

  Blocks find_rise(int32_t below, int32_t above) const;
  void find_neighbors();
  void compute_ranks(Range items);
  void sort_by_least(Range items);
  bool passes_section_bound(Range items);
  void blame_items(Range counted, int32_t item, Blocks room);
  Range push_candidates(Range items);
  bool search(Range items);
  bool search_rest(Range items, int32_t placed);
  bool search_components(Range rest);
  bool place(int32_t item, Blocks offset);
  bool lift(int32_t item);
  void undo(size_t trail_size, size_t num_placed);
  bool are_equal(int32_t a, int32_t b) const;

  void save(int32_t item) { trail_.push_back({item, floor_[item], least_[item]}); }
  Blocks align(int32_t item, Blocks offset) const {
    const Blocks mask = alignment_[item] - 1;
    return (offset + mask) & ~mask;
  }

  const Part& part_;
  const int64_t sum_;  // no plan needs more
  int32_t num_items_;
  std::vector<Blocks> size_, alignment_, pin_;
  std::vector<int32_t> first_, last_, rank_;
  std::vector<uint8_t> is_rectangle_, is_placed_;
  std::vector<int32_t> neighbor_begin_;
  std::vector<Neighbor> neighbors_;

  std::vector<Blocks> floor_;  // the least offset above everything placed
  std::vector<Blocks> least_;  // at or above floor_; raised by lifts
  std::vector<Blocks> offset_;
  std::vector<int32_t> crossing_;  // per section: unplaced items alive also in the next
  std::vector<Blocks> load_;       // per section: scratch of the section bound
  std::vector<int64_t> total_;     // per section: scratch of the order
  std::vector<int32_t> stack_;     // items of the ranges being searched
  std::vector<Candidate> candidates_;
  std::vector<Saved> trail_;
  std::vector<int32_t> placed_;

  SearchOptions options_;
  Blocks cap_ = 0;
  bool is_out_of_nodes_ = false;
};

template <typename Blocks>
EngineOf<Blocks>::EngineOf(const Part& part, int64_t sum)
    : part_(part), sum_(sum), num_items_(static_cast<int32_t>(part.items.size())) {
  for (const Item& item : part.items) {
    const Slab& slab = part.slabs[item.slab_begin];
    const bool is_rectangle =
        item.slab_end - item.slab_begin == 1 && slab.low == 0 && slab.high == item.size;
    size_.push_back(static_cast<Blocks>(item.size));
    alignment_.push_back(static_cast<Blocks>(item.alignment));
    pin_.push_back(static_cast<Blocks>(item.pin));
    first_.push_back(item.first);
    last_.push_back(item.last);
    is_rectangle_.push_back(is_rectangle);
    is_complete &= is_rectangle;
  }
  find_neighbors();
}

// How far the tops of one item reach over the bottoms of another; kMax when they never meet.
template <typename Blocks>
Blocks EngineOf<Blocks>::find_rise(int32_t below, int32_t above) const {
  if (is_rectangle_[below] && is_rectangle_[above]) return size_[below];
  const Item &a = part_.items[below], &b = part_.items[above];
  bool meets = false;
  int64_t rise = std::numeric_limits<int64_t>::min();
  for (int32_t s = a.slab_begin; s < a.slab_end; ++s) {
    for (int32_t t = b.slab_begin; t < b.slab_end; ++t) {
      const Slab &x = part_.slabs[s], &y = part_.slabs[t];
      if (x.first >= y.last || y.first >= x.last) continue;
      rise = std::max(rise, x.high - y.low);
      meets = true;
    }
  }
  return meets ? static_cast<Blocks>(rise) : kMax;
}

template <typename Blocks>
void EngineOf<Blocks>::find_neighbors() {
  std::vector<std::vector<Neighbor>> lists(num_items_);
  std::vector<int32_t> order(num_items_);
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return first_[a] != first_[b] ? first_[a] < first_[b] : a < b;
  });
  std::vector<int32_t> alive;
  for (int32_t item : order) {
    std::erase_if(alive, [&](int32_t other) { return last_[other] <= first_[item]; });
    for (int32_t other : alive) {
      const Blocks up = find_rise(other, item);
      if (up == kMax) continue;
      lists[other].push_back({item, up});
      lists[item].push_back({other, find_rise(item, other)});
    }
    alive.push_back(item);
  }
  neighbor_begin_.assign(1, 0);
  for (const std::vector<Neighbor>& list : lists) {
    neighbors_.insert(neighbors_.end(), list.begin(), list.end());
    neighbor_begin_.push_back(static_cast<int32_t>(neighbors_.size()));
  }
}

template <typename Blocks>
SearchResult EngineOf<Blocks>::run(const SearchOptions& options) {
  options_ = options;
  num_nodes = 0;
  blame.assign(num_items_, 0);
  is_out_of_nodes_ = false;
  for (const Item& item : part_.items) {
    if (std::max<int64_t>(item.pin, 0) + item.size > options.cap) return SearchResult::kInfeasible;
  }
  cap_ = static_cast<Blocks>(std::min(options.cap, sum_));
  floor_.assign(num_items_, 0);
  least_.assign(num_items_, 0);
  offset_.assign(num_items_, 0);
  rank_.assign(num_items_, 0);
  is_placed_.assign(num_items_, 0);
  crossing_.assign(part_.num_sections, 0);
  load_.assign(part_.num_sections, 0);
  total_.assign(part_.num_sections, 0);
  stack_.clear();
  candidates_.clear();
  trail_.clear();
  placed_.clear();
  for (int32_t i = 0; i < num_items_; ++i) {
    stack_.push_back(i);
    if (pin_[i] >= 0) least_[i] = pin_[i];
    for (int32_t s = first_[i]; s + 1 < last_[i]; ++s) ++crossing_[s];
  }
  const Range all{0, stack_.size()};
  if (options.ranks.empty()) {
    compute_ranks(all);
  } else {
    rank_.assign(options.ranks.begin(), options.ranks.end());
    options_.reorders = false;
  }
  if (search(all)) return SearchResult::kFound;
  return is_out_of_nodes_ || !is_complete ? SearchResult::kLimit : SearchResult::kInfeasible;
}

template <typename Blocks>
void EngineOf<Blocks>::compute_ranks(Range items) {
  struct Key {
    std::array<__int128, 3> figures;
    int32_t item;
  };
  for (size_t i = items.begin; i < items.end; ++i) {
    const int32_t item = stack_[i];
    std::fill(total_.begin() + first_[item], total_.begin() + last_[item], 0);
  }
  for (size_t i = items.begin; i < items.end; ++i) {
    const int32_t item = stack_[i];
    for (int32_t s = first_[item]; s < last_[item]; ++s) total_[s] += size_[item];
  }
  std::vector<Key> keys;
  keys.reserve(items.end - items.begin);
  for (size_t i = items.begin; i < items.end; ++i) {
    const int32_t item = stack_[i];
    const __int128 total =
        *std::max_element(total_.begin() + first_[item], total_.begin() + last_[item]);
    const int64_t length =
        options_.counts_steps ? part_.items[item].num_steps : last_[item] - first_[item];
    __int128 width = length;
    __int128 area = width * size_[item];
    if (options_.seed != 0) {
      const uint64_t noise = mix(options_.seed ^ (static_cast<uint64_t>(item) << 24));
      width *= 192 + noise % 129;  // three quarters to five quarters
      area *= 192 + (noise >> 32) % 129;
    }
    switch (options_.order) {
      case SearchOrder::kTwa:
        keys.push_back({{total, width, area}, item});
        break;
      case SearchOrder::kTaw:
        keys.push_back({{total, area, width}, item});
        break;
      case SearchOrder::kWat:
        keys.push_back({{width, area, total}, item});
        break;
      case SearchOrder::kAtw:
        keys.push_back({{area, total, width}, item});
        break;
    }
  }
  std::sort(keys.begin(), keys.end(), [](const Key& a, const Key& b) {
    return a.figures != b.figures ? a.figures > b.figures : a.item < b.item;
  });
  for (size_t i = 0; i < keys.size(); ++i) rank_[keys[i].item] = static_cast<int32_t>(i);
}

// Ranges stay nearly sorted from node to node, so insertion is cheap.
template <typename Blocks>
void EngineOf<Blocks>::sort_by_least(Range items) {
  for (size_t i = items.begin + 1; i < items.end; ++i) {
    const int32_t item = stack_[i];
    const Blocks least = least_[item];
    size_t k = i;
    for (; k > items.begin && least_[stack_[k - 1]] > least; --k) stack_[k] = stack_[k - 1];
    stack_[k] = item;
  }
}

// Counts from the highest least offset downwards: when an item joins, everything counted in its
// sections begins at or above its own least offset.
template <typename Blocks>
bool EngineOf<Blocks>::passes_section_bound(Range items) {
  sort_by_least(items);
  for (size_t i = items.begin; i < items.end; ++i) {
    const int32_t item = stack_[i];
    std::fill(load_.begin() + first_[item], load_.begin() + last_[item], 0);
  }
  for (size_t i = items.end; i-- > items.begin;) {
    const int32_t item = stack_[i];
    const Blocks room = cap_ - least_[item];
    Blocks over = 0;
    if (is_rectangle_[item]) {
      const Blocks size = size_[item];
      for (int32_t s = first_[item]; s < last_[item]; ++s) {
        load_[s] += size;
        over |= room - load_[s];
      }
    } else {
      for (int32_t k = part_.items[item].slab_begin; k < part_.items[item].slab_end; ++k) {
        const Slab& slab = part_.slabs[k];
        for (int32_t s = slab.first; s < slab.last; ++s) {
          load_[s] += static_cast<Blocks>(slab.high - slab.low);
          over |= room - load_[s];
        }
      }
    }
    if (over < 0) {
      blame_items({i, items.end}, item, room);
      return false;
    }
  }
  return true;
}

// Blames what is counted in the fullest section of `item`, when more than `room` is.
template <typename Blocks>
void EngineOf<Blocks>::blame_items(Range counted, int32_t item, Blocks room) {
  const auto begin = load_.begin() + first_[item], end = load_.begin() + last_[item];
  const auto fullest = std::max_element(begin, end);
  if (*fullest <= room) return;  // of several slabs: full where `item` is not
  const int32_t section = static_cast<int32_t>(fullest - load_.begin());
  for (size_t i = counted.begin; i < counted.end; ++i) {
    const int32_t other = stack_[i];
    if (first_[other] <= section && section < last_[other]) ++blame[other];
  }
}

template <typename Blocks>
typename EngineOf<Blocks>::Range EngineOf<Blocks>::push_candidates(Range items) {
  Blocks lowest_end = kMax;
  for (size_t i = items.begin; i < items.end; ++i) {
    const int32_t item = stack_[i];
    if (pin_[item] < 0) lowest_end = std::min<Blocks>(lowest_end, floor_[item] + size_[item]);
  }
  const Range range{candidates_.size(), candidates_.size()};
  for (size_t i = items.begin; i < items.end; ++i) {
    const int32_t item = stack_[i];
    const Blocks offset = pin_[item] >= 0 ? pin_[item] : floor_[item];
    if (offset < lowest_end && least_[item] <= offset) {
      candidates_.push_back({offset, rank_[item], item});
    }
  }
  std::sort(candidates_.begin() + range.begin, candidates_.end(),
            [](const Candidate& a, const Candidate& b) {
              return a.offset != b.offset ? a.offset < b.offset : a.rank < b.rank;
            });
  return {range.begin, candidates_.size()};
}

template <typename Blocks>
bool EngineOf<Blocks>::place(int32_t item, Blocks offset) {
  is_placed_[item] = 1;
  offset_[item] = offset;
  placed_.push_back(item);
  for (int32_t s = first_[item]; s + 1 < last_[item]; ++s) --crossing_[s];
  for (int32_t k = neighbor_begin_[item]; k < neighbor_begin_[item + 1]; ++k) {
    const int32_t other = neighbors_[k].item;
    const Blocks floor = offset + neighbors_[k].rise;
    if (is_placed_[other] || floor <= floor_[other]) continue;
    if (pin_[other] >= 0) {
      if (floor > pin_[other]) return false;
      continue;
    }
    save(other);
    floor_[other] = align(other, floor);
    least_[other] = std::max(least_[other], floor_[other]);
    if (least_[other] > cap_ - size_[other]) return false;
  }
  return true;
}

template <typename Blocks>
bool EngineOf<Blocks>::lift(int32_t item) {
  if (pin_[item] >= 0) return false;
  Blocks least = kMax;
  for (int32_t k = neighbor_begin_[item]; k < neighbor_begin_[item + 1]; ++k) {
    const int32_t other = neighbors_[k].item;
    if (is_placed_[other]) continue;
    // Items of several slabs may interlock, and then rest as little as one block higher.
    const bool is_plain = is_rectangle_[item] && is_rectangle_[other];
    least = std::min<Blocks>(least, least_[other] + (is_plain ? size_[other] : 1));
  }
  if (least > cap_ - size_[item]) return false;
  least = align(item, std::max<Blocks>(least, floor_[item] + 1));
  if (least > cap_ - size_[item]) return false;
  if (least > least_[item]) {
    save(item);
    least_[item] = least;
  }
  return true;
}

template <typename Blocks>
void EngineOf<Blocks>::undo(size_t trail_size, size_t num_placed) {
  while (trail_.size() > trail_size) {
    const Saved& saved = trail_.back();
    floor_[saved.item] = saved.floor;
    least_[saved.item] = saved.least;
    trail_.pop_back();
  }
  while (placed_.size() > num_placed) {
    const int32_t item = placed_.back();
    is_placed_[item] = 0;
    for (int32_t s = first_[item]; s + 1 < last_[item]; ++s) ++crossing_[s];
    placed_.pop_back();
  }
}

template <typename Blocks>
bool EngineOf<Blocks>::are_equal(int32_t a, int32_t b) const {
  return is_rectangle_[a] && is_rectangle_[b] && size_[a] == size_[b] && first_[a] == first_[b] &&
         last_[a] == last_[b] && alignment_[a] == alignment_[b] && pin_[a] < 0 && pin_[b] < 0;
}

template <typename Blocks>
bool EngineOf<Blocks>::search_rest(Range items, int32_t placed) {
  const size_t begin = stack_.size();
  for (size_t i = items.begin; i < items.end; ++i) {
    const int32_t item = stack_[i];
    if (item != placed) stack_.push_back(item);
  }
  const Range rest{begin, stack_.size()};
  bool is_found = true;
  if (rest.begin < rest.end) {
    // A split can only appear within the lifetime of what was placed.
    bool is_split = false;
    for (int32_t s = first_[placed]; s + 1 < last_[placed]; ++s) is_split |= crossing_[s] == 0;
    is_found = is_split ? search_components(rest) : search(rest);
  }
  stack_.resize(begin);
  return is_found;
}

template <typename Blocks>
bool EngineOf<Blocks>::search_components(Range rest) {
  std::sort(stack_.begin() + rest.begin, stack_.begin() + rest.end, [&](int32_t a, int32_t b) {
    return first_[a] != first_[b] ? first_[a] < first_[b] : a < b;
  });
  std::vector<Range> components;
  int32_t end = std::numeric_limits<int32_t>::min();
  for (size_t i = rest.begin; i < rest.end; ++i) {
    const int32_t item = stack_[i];
    if (first_[item] >= end) components.push_back({i, i});
    components.back().end = i + 1;
    end = std::max(end, last_[item]);
  }
  // The smallest first: what fails there fails cheaply.
  std::stable_sort(components.begin(), components.end(), [](const Range& a, const Range& b) {
    return a.end - a.begin < b.end - b.begin;
  });
  for (const Range& component : components) {
    if (options_.reorders && components.size() > 1) compute_ranks(component);
    if (!search(component)) return false;
  }
  return true;
}

template <typename Blocks>
bool EngineOf<Blocks>::search(Range items) {
  num_nodes += 1 + static_cast<int64_t>(items.end - items.begin) / kItemsPerNode;
  if (num_nodes > options_.node_limit) {
    is_out_of_nodes_ = true;
    return false;
  }
  if (!passes_section_bound(items)) return false;
  const Range candidates = push_candidates(items);
  const size_t entry_trail = trail_.size(), num_placed = placed_.size();
  bool is_found = false;
  for (size_t c = candidates.begin; c < candidates.end; ++c) {
    const Candidate candidate = candidates_[c];
    bool is_refuted = false;
    for (size_t b = candidates.begin; b < c && !is_refuted; ++b) {
      is_refuted = are_equal(candidates_[b].item, candidate.item);
    }
    if (!is_refuted) {
      const size_t trail_size = trail_.size();
      is_found = place(candidate.item, candidate.offset) && search_rest(items, candidate.item);
      if (is_found) break;
      undo(trail_size, num_placed);
      if (is_out_of_nodes_) break;
    }
    if (!lift(candidate.item) || !passes_section_bound(items)) break;
  }
  candidates_.resize(candidates.begin);
  if (!is_found) undo(entry_trail, num_placed);
  return is_found;
}

}  // namespace

TreeSearch::TreeSearch(const Part& part) {
  // No least offset or load exceeds twice the sum of everything.
  int64_t sum = 0;
  for (const Item& item : part.items) {
    sum += item.size + item.alignment + std::max<int64_t>(item.pin, 0);
  }
  if (sum < std::numeric_limits<int32_t>::max() / 8) {
    engine_ = std::make_unique<EngineOf<int32_t>>(part, sum);
  } else {
    engine_ = std::make_unique<EngineOf<int64_t>>(part, sum);
  }
}

TreeSearch::~TreeSearch() = default;
bool TreeSearch::is_complete() const { return engine_->is_complete; }
SearchResult TreeSearch::run(const SearchOptions& options) { return engine_->run(options); }
const std::vector<int64_t>& TreeSearch::blame() const { return engine_->blame; }
int64_t TreeSearch::num_nodes() const { return engine_->num_nodes; }
std::vector<int64_t> TreeSearch::offsets() const { return engine_->offsets(); }

}  // namespace rlx::memory
