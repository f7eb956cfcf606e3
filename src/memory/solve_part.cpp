#include "memory/solve_part.h"

#include <algorithm>
#include <array>

#include "memory/pair_search.h"
#include "memory/rules.h"
#include "memory/tree_search.h"

namespace rlx::memory {
namespace {

// Above these the complete search takes too much memory.
constexpr size_t kMaxSearchItems = 4000;
constexpr int64_t kMaxSearchPairs = 8'000'000;

// The first round gives every member of the portfolio this many nodes, each further round
// kNodeGrowth times more.
constexpr int64_t kFirstNodeLimit = 600;
constexpr int64_t kNodeGrowth = 4;
constexpr int kNoisyRuns = 2;

// Heights tried between the goal and the best plan, in eighths of the way.
constexpr std::array kCapEighths = {7, 5, 3, 1};

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
  SearchOptions make_options(const Member& member, int64_t cap, int64_t limit,
                             uint64_t seed) const {
    SearchOptions options;
    options.cap = cap - part_.base;
    options.node_limit = limit;
    options.order = member.order;
    options.counts_steps = member.counts_steps;
    options.reorders = member.reorders;
    options.seed = seed;
    return options;
  }

  void keep_lower(const char* method) {
    std::vector<int64_t> offsets = search_.offsets();
    const int64_t height = find_height(part_, offsets);
    if (height < plan_.height) plan_ = {std::move(offsets), height, method};
  }

  int64_t limit_of(int round) const {
    const int64_t num_items = static_cast<int64_t>(part_.items.size());
    int64_t limit = std::max<int64_t>(kFirstNodeLimit, 2 * num_items) * (1 + num_items / 256);
    for (int r = 0; r < std::min(round, 8); ++r) limit *= kNodeGrowth;
    return limit;
  }

  SearchResult run_members(int64_t cap, int64_t limit, uint64_t seed) {
    for (const Member& member : kMembers) {
      if (effort_.is_spent()) break;
      const int64_t allowed = effort_.may_continue ? limit : std::min(limit, effort_.num_nodes);
      const SearchResult result = search_.run(make_options(member, cap, allowed, seed));
      effort_.num_nodes -= search_.num_nodes();
      if (result == SearchResult::kFound) keep_lower("tree search");
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

int64_t find_height(const Part& part, const std::vector<int64_t>& offsets) {
  int64_t height = 0;
  for (size_t i = 0; i < part.items.size(); ++i) {
    height = std::max(height, offsets[i] + part.items[i].size);
  }
  return height + part.base;
}

namespace {

// Searches with the complete search for rectangles. Returns a height that it has proven, or 0.
int64_t search_tree(const Part& part, int64_t goal, Effort& effort, PartPlan& plan) {
  Searcher searcher(part, effort, plan);
  int64_t bound = 0;
  // Proves goals impossible from below until one is open.
  const auto search_goal = [&](int round) {
    SearchResult result = searcher.run_round(goal, round);
    while (result == SearchResult::kInfeasible && plan.height > goal) {
      bound = ++goal;
      result = plan.height > goal ? searcher.run_round(goal, 0) : SearchResult::kLimit;
    }
  };
  search_goal(0);
  if (plan.height > goal) improve_by_learning(part, goal, effort, plan);
  for (int round = 0; plan.height > goal && !effort.is_spent(); ++round) {
    // How long a height takes says nothing about a lower one, so heights between are tried as well,
    // from above.
    for (size_t k = 0; k < kCapEighths.size() && plan.height > goal && !effort.is_spent();) {
      const int64_t cap = goal + (plan.height - goal) * kCapEighths[k] / 8;
      if (cap <= goal || cap >= plan.height) {
        ++k;
        continue;
      }
      const SearchResult result = searcher.run_round(cap, round);
      if (result == SearchResult::kInfeasible) bound = goal = cap + 1;
      if (result != SearchResult::kFound) ++k;
    }
    search_goal(round + 1);
  }
  return bound;
}

}  // namespace

int64_t improve(const Part& part, int64_t goal, Effort& effort, PartPlan& plan) {
  int64_t bound = 0;
  if (is_for_pair_search(part)) {
    bound = search_pairs(part, goal, effort.num_nodes / 2, effort, plan);
    if (plan.height <= std::max(goal, bound)) return bound;
  }
  if (part.items.size() <= kMaxSearchItems && count_pairs(part) <= kMaxSearchPairs) {
    bound = search_tree(part, goal, effort, plan);
  } else {
    improve_by_learning(part, goal, effort, plan);
  }
  return part.is_exact ? bound : 0;
}

}  // namespace rlx::memory
