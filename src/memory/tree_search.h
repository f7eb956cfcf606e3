// Complete search for a plan under a height: finds one, or proves that there is none. Exact
// planning is affordable because plans are searched in one form only, in which nothing can be moved
// down.
//
// Items are placed in non-decreasing offset, each at the least offset that those placed below
// allow. Four rules cut the tree, and none of them loses a plan in which nothing can be moved down:
//   - Dominance: an item is not placed at or above the place where another, still unplaced, would
//     end; that other one could be moved down there.
//   - Skip and lift: when an item has been tried at its least offset in vain, it can only rest on
//   an
//     item that is placed later, so its least offset rises to the lowest end of those.
//   - Section bound: in every section, for every height, the items whose least offset is at or
//   above
//     it must fit between it and the cap.
//   - Decomposition: where no unplaced item crosses from one section to the next, both sides are
//     searched on their own.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "memory/normal_form.h"

namespace rlx::memory {

enum class SearchResult {
  kFound,
  kInfeasible,  // no plan of this height exists
  kLimit,       // the node limit ended the search, or the search is not complete for this part
};

// Candidates of equal offset are tried in the order of three figures, larger first: the largest
// total of a section in the item's lifetime (T), the length of the lifetime (W), and the area (A).
enum class SearchOrder { kTwa, kTaw, kWat, kAtw };

struct SearchOptions {
  int64_t cap = 0;  // blocks above the base of the part
  int64_t node_limit = 0;
  SearchOrder order = SearchOrder::kTwa;
  bool counts_steps = true;  // lifetimes in steps; otherwise in sections
  bool reorders = true;      // computes the order anew for each component
  uint64_t seed = 0;         // not 0: disturbs W and A, so that restarts differ
  // Not empty: the rank of every item in the order, in place of all of the above.
  std::span<const int32_t> ranks;
};

class TreeSearch {
 public:
  // Keeps a reference to `part`. Takes memory for every pair of items alive together.
  explicit TreeSearch(const Part& part);
  ~TreeSearch();

  // Whether kInfeasible can be an answer: when every item is one rectangle. For others the search
  // covers only plans whose items can be stacked in the order of their offsets.
  bool is_complete() const;

  SearchResult run(const SearchOptions& options);

  // Of the last run: nodes visited (one over many items counts as several), and offsets in blocks
  // from the base of the part if it found any.
  int64_t num_nodes() const;
  std::vector<int64_t> offsets() const;

  // Of the last run, per item: how often the section bound failed in a section over items that
  // include it. These are the items that a section had no room for, which tells a later run what to
  // place sooner.
  const std::vector<int64_t>& blame() const;

  class Engine;

 private:
  std::unique_ptr<Engine> engine_;
};

}  // namespace rlx::memory
