#include "memory/solve_part.h"

#include <algorithm>
#include <array>
#include <functional>

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
constexpr int kLastRound = 8;

// So few items are searched to the end at once.
constexpr size_t kMaxDirectItems = 12;

// One height is tried with every learned order so many times in a row, and each time this share of
// the items moves.
constexpr int kLearnedRuns = 4;
constexpr std::array kBlamedShares = {0.1, 0.05, 0.2};

// Heights tried between the goal and the best plan, in eighths of the way.
constexpr std::array kCapEighths = {7, 6, 5, 4};

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

// Moves the `share` of the items that are blamed most halfway to the front.
void move_blamed(const std::vector<int64_t>& blame, double share, std::vector<int32_t>& order) {
  std::vector<int64_t> sorted = blame;
  const auto last =
      sorted.begin() + static_cast<int64_t>(share * static_cast<double>(sorted.size()));
  std::nth_element(sorted.begin(), last, sorted.end(), std::greater<>());
  const int64_t least = std::max<int64_t>(1, *last);
  move_forward(order, [&](int32_t item) { return blame[item] >= least; });
}

class Searcher {
 public:
  Searcher(const Part& part, Effort& effort, PartPlan& plan)
      : part_(part), search_(part), effort_(effort), plan_(plan) {}

  bool is_complete() const { return search_.is_complete(); }

  // Runs every member of the portfolio for one height. Round 0 is short and later rounds are
  // longer.
  SearchResult run_round(int64_t cap, int round) { return run_members(cap, limit_of(round), 0); }

  // What run_round spends at most.
  int64_t cost_of(int round) const {
    return static_cast<int64_t>(kMembers.size()) * limit_of(round);
  }

  // Runs the portfolio with disturbed orders, for no longer than round 0: times have heavy tails,
  // and many short runs beat one long run.
  SearchResult run_disturbed(int64_t cap) { return run_members(cap, limit_of(0), ++seed_); }

  // Runs with orders that learn: after each run, the items that sections had no room for move
  // towards the front.
  SearchResult run_learned(int64_t cap) {
    if (learned_.empty()) learned_ = make_learning_orders(part_);
    const int64_t num_items = static_cast<int64_t>(part_.items.size());
    const int64_t limit = 2 * num_items * (1 + num_items / 256);
    for (std::vector<int32_t>& order : learned_) {
      for (int k = 0; k < kLearnedRuns && !effort_.is_spent(); ++k) {
        std::vector<int32_t> ranks(order.size());
        for (size_t i = 0; i < order.size(); ++i) ranks[order[i]] = static_cast<int32_t>(i);
        SearchOptions options;
        options.cap = cap - part_.base;
        options.node_limit = allow(limit);
        options.ranks = ranks;
        const SearchResult result = run(options, "tree search, learned");
        if (result != SearchResult::kLimit) return result;
        move_blamed(search_.blame(), kBlamedShares[num_learned_++ % kBlamedShares.size()], order);
      }
    }
    return SearchResult::kLimit;
  }

 private:
  SearchResult run(const SearchOptions& options, const char* method) {
    const SearchResult result = search_.run(options);
    effort_.num_nodes -= search_.num_nodes();
    if (result == SearchResult::kFound) {
      std::vector<int64_t> offsets = search_.offsets();
      const int64_t height = find_height(part_, offsets);
      if (height < plan_.height) plan_ = {std::move(offsets), height, method};
    }
    return result;
  }

  int64_t allow(int64_t limit) const {
    return effort_.may_continue ? limit : std::min(limit, effort_.num_nodes);
  }

  int64_t limit_of(int round) const {
    const int64_t num_items = static_cast<int64_t>(part_.items.size());
    int64_t limit = std::max<int64_t>(kFirstNodeLimit, 2 * num_items) * (1 + num_items / 256);
    for (int r = 0; r < std::min(round, kLastRound); ++r) limit *= kNodeGrowth;
    return limit;
  }

  SearchResult run_members(int64_t cap, int64_t limit, uint64_t seed) {
    for (const Member& member : kMembers) {
      if (effort_.is_spent()) break;
      SearchOptions options;
      options.cap = cap - part_.base;
      options.node_limit = allow(limit);
      options.order = member.order;
      options.counts_steps = member.counts_steps;
      options.reorders = member.reorders;
      options.seed = seed;
      const SearchResult result = run(options, "tree search");
      if (result != SearchResult::kLimit) return result;
    }
    return SearchResult::kLimit;
  }

  const Part& part_;
  TreeSearch search_;
  Effort& effort_;
  PartPlan& plan_;
  uint64_t seed_ = 0;
  std::vector<std::vector<int32_t>> learned_;
  size_t num_learned_ = 0;
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
  const auto take = [&](SearchResult result) {
    while (result == SearchResult::kInfeasible) {
      bound = ++goal;
      if (plan.height <= goal) return;
      result = searcher.run_round(goal, 0);
    }
  };
  const auto is_open = [&] { return plan.height > goal && !effort.is_spent(); };
  take(searcher.run_round(goal, 0));
  if (part.items.size() <= kMaxDirectItems) {
    while (is_open()) take(searcher.run_round(goal, kLastRound));
  }
  if (is_open()) take(searcher.run_round(goal, 1));
  if (is_open()) improve_by_learning(part, goal, effort, plan);
  int64_t spent_on_rounds = 0;
  const int64_t start = effort.num_nodes;
  for (int round = 2; is_open();) {
    take(searcher.run_learned(goal));
    if (is_open()) take(searcher.run_disturbed(goal));
    // How long a height takes says nothing about a lower one, so heights between are tried as well,
    // from above.
    for (size_t k = 0; k < kCapEighths.size() && is_open();) {
      const int64_t cap = goal + (plan.height - goal) * kCapEighths[k] / 8;
      if (cap <= goal || cap >= plan.height) {
        ++k;
        continue;
      }
      SearchResult result = searcher.run_learned(cap);
      if (result == SearchResult::kLimit) result = searcher.run_disturbed(cap);
      if (result == SearchResult::kInfeasible) bound = goal = cap + 1;
      if (result != SearchResult::kFound) ++k;
    }
    // Long runs, which can also prove, get a quarter of the effort.
    if (is_open() && spent_on_rounds + searcher.cost_of(round) <= start - effort.num_nodes) {
      const int64_t before = effort.num_nodes;
      take(searcher.run_round(goal, round++));
      spent_on_rounds += 4 * (before - effort.num_nodes);
    }
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
