#include "memory/solve_part.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "memory/first_fit.h"
#include "memory/skyline.h"
#include "memory/tree_search.h"

namespace rlx::memory {
namespace {

// Orders of placement. `T` is the largest total of a section in the item's lifetime, `W` its length
// in steps, `A` the area, `S` the size; larger comes first.
enum class RuleOrder { kArea, kTwa, kTaw, kSize, kLateSize, kWidth, kSectionsSize, kEndWidth };
constexpr std::array kRuleOrders = {
    RuleOrder::kArea,     RuleOrder::kTwa,   RuleOrder::kTaw,          RuleOrder::kSize,
    RuleOrder::kLateSize, RuleOrder::kWidth, RuleOrder::kSectionsSize, RuleOrder::kEndWidth};

// Above these the complete search takes too much memory.
constexpr size_t kMaxSearchItems = 4000;
constexpr int64_t kMaxSearchPairs = 8'000'000;

// The first round gives every member of the portfolio this many nodes, each further round
// kNodeGrowth times more.
constexpr int64_t kFirstNodeLimit = 600;
constexpr int64_t kNodeGrowth = 4;
constexpr int kNoisyRuns = 2;

int64_t find_height(const Part& part, const std::vector<int64_t>& offsets) {
  int64_t height = 0;
  for (size_t i = 0; i < part.items.size(); ++i) {
    height = std::max(height, offsets[i] + part.items[i].size);
  }
  return height + part.base;
}

std::vector<int64_t> find_totals(const Part& part) {
  std::vector<int64_t> totals(part.num_sections, 0);
  for (const Slab& slab : part.slabs) {
    for (int32_t s = slab.first; s < slab.last; ++s) totals[s] += slab.high - slab.low;
  }
  return totals;
}

// The largest of `values` in any range, after n log n work.
class RangeMaximum {
 public:
  explicit RangeMaximum(std::vector<int64_t> values) {
    levels_.push_back(std::move(values));
    for (size_t width = 2; width <= levels_[0].size(); width *= 2) {
      const std::vector<int64_t>& below = levels_.back();
      std::vector<int64_t> level(levels_[0].size() - width + 1);
      for (size_t i = 0; i < level.size(); ++i) level[i] = std::max(below[i], below[i + width / 2]);
      levels_.push_back(std::move(level));
    }
  }

  int64_t find(int32_t first, int32_t last) const {
    size_t level = 0;
    while ((int64_t{2} << level) <= last - first) ++level;
    return std::max(levels_[level][first], levels_[level][last - (int64_t{1} << level)]);
  }

 private:
  std::vector<std::vector<int64_t>> levels_;
};

std::vector<int32_t> make_order(const Part& part, const std::vector<int64_t>& peak_total,
                                RuleOrder order) {
  using Key = std::array<__int128, 3>;
  std::vector<Key> keys;
  keys.reserve(part.items.size());
  for (size_t i = 0; i < part.items.size(); ++i) {
    const Item& item = part.items[i];
    const __int128 size = item.size, width = item.num_steps, area = size * width;
    const __int128 total = peak_total[i];
    switch (order) {
      case RuleOrder::kArea:
        keys.push_back({area, width, 0});
        break;
      case RuleOrder::kTwa:
        keys.push_back({total, width, area});
        break;
      case RuleOrder::kTaw:
        keys.push_back({total, area, width});
        break;
      case RuleOrder::kSize:
        keys.push_back({size, width, 0});
        break;
      case RuleOrder::kLateSize:
        keys.push_back({-item.first, size, width});
        break;
      case RuleOrder::kWidth:
        keys.push_back({width, size, 0});
        break;
      case RuleOrder::kSectionsSize:
        keys.push_back({item.last - item.first, size, total});
        break;
      case RuleOrder::kEndWidth:
        keys.push_back({item.last, width, size});
        break;
    }
  }
  std::vector<int32_t> result(part.items.size());
  std::iota(result.begin(), result.end(), 0);
  std::sort(result.begin(), result.end(),
            [&](int32_t a, int32_t b) { return keys[a] != keys[b] ? keys[a] > keys[b] : a < b; });
  return result;
}

int64_t count_pairs(const Part& part) {
  std::vector<int64_t> starts(part.num_sections, 0);
  std::vector<int64_t> alive(part.num_sections + 1, 0);
  for (const Item& item : part.items) {
    ++starts[item.first];
    ++alive[item.first];
    --alive[item.last];
  }
  int64_t pairs = 0, live = 0;
  for (int32_t s = 0; s < part.num_sections; ++s) {
    live += alive[s];
    pairs += starts[s] * live;  // counts pairs that start together twice, which does not matter
  }
  return pairs;
}

struct Member {
  SearchOrder order;
  bool counts_steps, reorders;
};

// In the order of how often they were the first to succeed.
constexpr std::array<Member, 5> kMembers = {{{SearchOrder::kTwa, true, true},
                                             {SearchOrder::kTwa, false, true},
                                             {SearchOrder::kWat, false, true},
                                             {SearchOrder::kAtw, false, true},
                                             {SearchOrder::kTwa, true, false}}};

class Searcher {
 public:
  Searcher(const Part& part, Effort& effort, PartPlan& plan)
      : part_(part), search_(part), effort_(effort), plan_(plan) {}

  bool is_complete() const { return search_.is_complete(); }

  // Runs every member of the portfolio for one height. Round 0 is short and later rounds are
  // longer; each also repeats the length of the round before with disturbed orders, because times
  // have heavy tails and many short runs beat one long run.
  SearchResult run_round(int64_t cap, int round) {
    SearchResult result = run_members(cap, limit_of(round), 0);
    for (int k = 0; k < kNoisyRuns && round > 0 && result == SearchResult::kLimit; ++k) {
      result = run_members(cap, limit_of(round - 1), ++seed_);
    }
    return result;
  }

 private:
  int64_t limit_of(int round) const {
    const int64_t num_items = static_cast<int64_t>(part_.items.size());
    int64_t limit = std::max<int64_t>(kFirstNodeLimit, 2 * num_items) * (1 + num_items / 256);
    for (int r = 0; r < std::min(round, 8); ++r) limit *= kNodeGrowth;
    return limit;
  }

  SearchResult run_members(int64_t cap, int64_t limit, uint64_t seed) {
    for (const Member& member : kMembers) {
      if (effort_.is_spent()) break;
      SearchOptions options;
      options.cap = cap - part_.base;
      options.node_limit = effort_.may_continue ? limit : std::min(limit, effort_.num_nodes);
      options.order = member.order;
      options.counts_steps = member.counts_steps;
      options.reorders = member.reorders;
      options.seed = seed;
      const SearchResult result = search_.run(options);
      effort_.num_nodes -= search_.num_nodes();
      if (result == SearchResult::kFound) {
        plan_.offsets = search_.offsets();
        plan_.height = find_height(part_, plan_.offsets);
        plan_.method = "tree search";
      }
      if (result != SearchResult::kLimit) return result;
    }
    return SearchResult::kLimit;
  }

  const Part& part_;
  TreeSearch search_;
  Effort& effort_;
  PartPlan& plan_;
  uint64_t seed_ = 0;
};

}  // namespace

PartPlan place_by_rules(const Part& part, int64_t goal) {
  const std::vector<int64_t> totals = find_totals(part);
  const RangeMaximum maximum(totals);
  std::vector<int64_t> peak_total;
  bool has_pins = false, has_pieces = false;
  for (const Item& item : part.items) {
    peak_total.push_back(maximum.find(item.first, item.last));
    has_pins |= item.pin >= 0;
    has_pieces |= item.slab_end - item.slab_begin > 1;
  }
  PartPlan best;
  const auto keep = [&](std::vector<int64_t> offsets, const char* method) {
    const int64_t height = find_height(part, offsets);
    if (!best.offsets.empty() && height >= best.height) return;
    best = {std::move(offsets), height, method};
  };
  if (!has_pins) {
    Skyline skyline(part);
    for (RuleOrder order : kRuleOrders) {
      keep(skyline.place(make_order(part, peak_total, order)), "skyline");
      if (best.height <= goal) return best;
    }
  }
  if (has_pins || has_pieces) {
    for (RuleOrder order : kRuleOrders) {
      keep(place_first_fit(part, make_order(part, peak_total, order)), "first fit");
      if (best.height <= goal) return best;
    }
  }
  return best;
}

int64_t improve_by_search(const Part& part, int64_t goal, Effort& effort, PartPlan& plan) {
  if (part.items.size() > kMaxSearchItems || count_pairs(part) > kMaxSearchPairs) return 0;
  Searcher searcher(part, effort, plan);
  int64_t bound = 0;
  for (int round = 0; plan.height > goal && !effort.is_spent(); ++round) {
    const SearchResult result = searcher.run_round(goal, round);
    if (result == SearchResult::kFound) break;
    if (result == SearchResult::kInfeasible) {
      bound = ++goal;
      round = -1;
      continue;
    }
    // The goal may be out of reach, and how long a height takes says nothing about a lower one: try
    // heights between.
    for (int quarter = 1; round > 0 && quarter < 4 && !effort.is_spent();) {
      const int64_t cap = goal + (plan.height - goal) * quarter / 4;
      if (cap <= goal || cap >= plan.height) {
        ++quarter;
        continue;
      }
      const SearchResult between = searcher.run_round(cap, round - 1);
      if (between == SearchResult::kInfeasible) bound = goal = cap + 1;
      quarter = between == SearchResult::kFound ? 1 : quarter + 1;
    }
  }
  return bound;
}

}  // namespace rlx::memory
