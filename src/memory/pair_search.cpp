#include "memory/pair_search.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace rlx::memory {
namespace {

constexpr size_t kMaxPairs = 2000;
// A node looks at all pairs; so many cost as a node of the tree search.
constexpr int64_t kPairsPerNode = 64;

// No sum of two offsets comes near.
constexpr int64_t kFar = std::numeric_limits<int64_t>::max() / 4;

// The difference "offset of b less offset of a" may lie in [low, high].
struct Gap {
  int64_t low, high;
};

struct Pair {
  int32_t a, b;
  std::vector<Gap> gaps;  // rising; the first begins at -kFar and the last ends at kFar
};

std::vector<Gap> find_gaps(const Part& part, const Item& a, const Item& b) {
  std::vector<Gap> forbidden;  // open intervals
  for (int32_t s = a.slab_begin; s < a.slab_end; ++s) {
    for (int32_t t = b.slab_begin; t < b.slab_end; ++t) {
      const Slab &x = part.slabs[s], &y = part.slabs[t];
      if (x.first >= y.last || y.first >= x.last) continue;
      forbidden.push_back({x.low - y.high, x.high - y.low});
    }
  }
  std::sort(forbidden.begin(), forbidden.end(),
            [](const Gap& x, const Gap& y) { return x.low < y.low; });
  std::vector<Gap> gaps{{-kFar, kFar}};
  int64_t end = -kFar;  // of the interval that the last gap follows
  for (const Gap& interval : forbidden) {
    if (interval.low >= end) {
      gaps.back().high = interval.low;
      gaps.push_back({interval.high, kFar});
    } else if (interval.high > end) {
      gaps.back().low = interval.high;
    }
    end = std::max(end, interval.high);
  }
  return gaps;
}

std::vector<Pair> find_pairs(const Part& part) {
  std::vector<Pair> pairs;
  const int32_t num_items = static_cast<int32_t>(part.items.size());
  for (int32_t a = 0; a < num_items; ++a) {
    for (int32_t b = a + 1; b < num_items; ++b) {
      const Item &x = part.items[a], &y = part.items[b];
      if (x.first >= y.last || y.first >= x.last) continue;
      std::vector<Gap> gaps = find_gaps(part, x, y);
      if (gaps.size() > 1) pairs.push_back({a, b, std::move(gaps)});
      if (pairs.size() > kMaxPairs) return pairs;
    }
  }
  return pairs;
}

class PairSearch {
 public:
  PairSearch(const Part& part, int64_t goal, int64_t num_nodes, Effort& effort, PartPlan& plan)
      : part_(part),
        goal_(goal),
        num_nodes_(num_nodes),
        effort_(effort),
        plan_(plan),
        pairs_(find_pairs(part)),
        gap_of_pair_(pairs_.size(), kOpen),
        pairs_of_item_(part.items.size()) {
    for (size_t p = 0; p < pairs_.size(); ++p) {
      pairs_of_item_[pairs_[p].a].push_back(static_cast<int32_t>(p));
      pairs_of_item_[pairs_[p].b].push_back(static_cast<int32_t>(p));
    }
  }

  // Returns whether every way has been tried.
  bool run() {
    std::vector<int64_t> least(part_.items.size(), 0);
    for (size_t i = 0; i < least.size(); ++i) least[i] = std::max<int64_t>(part_.items[i].pin, 0);
    descend(std::move(least));
    return !is_out_of_nodes_;
  }

 private:
  static constexpr int32_t kOpen = -1;

  // The highest offset of an item in a plan lower than the best.
  int64_t find_most(int32_t index) const {
    const Item& item = part_.items[index];
    const int64_t most = plan_.height - 1 - part_.base - item.size;
    return item.pin < 0 ? most : std::min(most, item.pin);
  }

  bool is_within(const Pair& pair, const Gap& gap, const std::vector<int64_t>& least) const {
    return least[pair.a] + gap.low <= find_most(pair.b) &&
           least[pair.b] - gap.high <= find_most(pair.a);
  }

  // Raises `least` to what the decided pairs ask for. Returns false when that is too high.
  bool propagate(std::vector<int64_t>& least, std::vector<int32_t>& pending) const {
    const auto raise = [&](int32_t index, int64_t offset) {
      if (offset <= least[index]) return;
      const int64_t mask = part_.items[index].alignment - 1;
      least[index] = (offset + mask) & ~mask;
      pending.push_back(index);
    };
    while (!pending.empty()) {
      const int32_t index = pending.back();
      pending.pop_back();
      if (least[index] > find_most(index)) return false;
      for (int32_t p : pairs_of_item_[index]) {
        if (gap_of_pair_[p] == kOpen) continue;
        const Pair& pair = pairs_[p];
        const Gap& gap = pair.gaps[gap_of_pair_[p]];
        if (index == pair.a) raise(pair.b, least[pair.a] + gap.low);
        if (index == pair.b) raise(pair.a, least[pair.b] - gap.high);
      }
    }
    return true;
  }

  // Decides pairs that have one gap left. Returns false when a pair has none.
  bool decide_forced(std::vector<int64_t>& least, std::vector<int32_t>& decided) {
    std::vector<int32_t> pending(part_.items.size());
    for (size_t i = 0; i < pending.size(); ++i) pending[i] = static_cast<int32_t>(i);
    bool has_changed = true;
    while (has_changed) {
      if (!propagate(least, pending)) return false;
      has_changed = false;
      for (size_t p = 0; p < pairs_.size(); ++p) {
        if (gap_of_pair_[p] != kOpen) continue;
        const Pair& pair = pairs_[p];
        int32_t num_within = 0, within = 0;
        for (size_t g = 0; g < pair.gaps.size(); ++g) {
          if (!is_within(pair, pair.gaps[g], least)) continue;
          ++num_within;
          within = static_cast<int32_t>(g);
        }
        if (num_within == 0) return false;
        if (num_within > 1) continue;
        gap_of_pair_[p] = within;
        decided.push_back(static_cast<int32_t>(p));
        pending.push_back(pair.a);
        pending.push_back(pair.b);
        has_changed = true;
      }
    }
    return true;
  }

  // The open pair whose overlap at the least offsets is largest; kOpen when none overlaps.
  int32_t find_overlap(const std::vector<int64_t>& least) const {
    int32_t worst = kOpen;
    int64_t most = 0;
    for (size_t p = 0; p < pairs_.size(); ++p) {
      if (gap_of_pair_[p] != kOpen) continue;
      const int64_t difference = least[pairs_[p].b] - least[pairs_[p].a];
      int64_t overlap = kFar;
      for (const Gap& gap : pairs_[p].gaps) {
        overlap = std::min(overlap, std::max(gap.low - difference, difference - gap.high));
      }
      if (overlap > most) {
        most = overlap;
        worst = static_cast<int32_t>(p);
      }
    }
    return worst;
  }

  void descend(std::vector<int64_t> least) {
    const int64_t cost = 1 + static_cast<int64_t>(pairs_.size()) / kPairsPerNode;
    effort_.num_nodes -= cost;
    num_nodes_ -= cost;
    if (num_nodes_ < 0 || effort_.is_spent()) {
      is_out_of_nodes_ = true;
      return;
    }
    std::vector<int32_t> decided;
    if (decide_forced(least, decided)) branch(least);
    for (int32_t p : decided) gap_of_pair_[p] = kOpen;
  }

  void branch(const std::vector<int64_t>& least) {
    const int32_t p = find_overlap(least);
    if (p == kOpen) {
      plan_ = {least, find_height(part_, least), "pair search"};
      return;
    }
    const Pair& pair = pairs_[p];
    for (size_t g = 0; g < pair.gaps.size(); ++g) {
      if (plan_.height <= goal_ || is_out_of_nodes_) break;
      if (!is_within(pair, pair.gaps[g], least)) continue;
      gap_of_pair_[p] = static_cast<int32_t>(g);
      descend(least);
    }
    gap_of_pair_[p] = kOpen;
  }

  const Part& part_;
  const int64_t goal_;
  int64_t num_nodes_;
  Effort& effort_;
  PartPlan& plan_;
  const std::vector<Pair> pairs_;
  std::vector<int32_t> gap_of_pair_;
  std::vector<std::vector<int32_t>> pairs_of_item_;
  bool is_out_of_nodes_ = false;
};

}  // namespace

bool is_for_pair_search(const Part& part) {
  return std::any_of(part.items.begin(), part.items.end(),
                     [&](const Item& item) { return !is_rectangle(part, item); }) &&
         find_pairs(part).size() <= kMaxPairs;
}

int64_t search_pairs(const Part& part, int64_t goal, int64_t num_nodes, Effort& effort,
                     PartPlan& plan) {
  const bool is_done = PairSearch(part, goal, num_nodes, effort, plan).run();
  return is_done && part.is_exact && plan.height > goal ? plan.height : 0;
}

}  // namespace rlx::memory
