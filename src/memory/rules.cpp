#include "memory/rules.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "memory/first_fit.h"
#include "memory/skyline.h"

namespace rlx::memory {
namespace {

// Orders of placement. `T` is the largest total of a section in the item's lifetime, `W` its length
// in steps, `A` the area, `S` the size; larger comes first.
enum class RuleOrder {
  kArea,
  kTwa,
  kTaw,
  kTsw,
  kSize,
  kLateSize,
  kWidth,
  kSectionsSize,
  kEndWidth
};
constexpr std::array kRuleOrders = {
    RuleOrder::kArea,     RuleOrder::kTwa,   RuleOrder::kTaw,          RuleOrder::kSize,
    RuleOrder::kLateSize, RuleOrder::kWidth, RuleOrder::kSectionsSize, RuleOrder::kEndWidth};

// The orders that gain most from learning, and how often each learns.
constexpr std::array kLearningOrders = {
    RuleOrder::kTwa,   RuleOrder::kTsw,      RuleOrder::kSectionsSize, RuleOrder::kTaw,
    RuleOrder::kWidth, RuleOrder::kLateSize, RuleOrder::kArea,         RuleOrder::kSize};
constexpr int kLearningRuns = 32;
// A skyline over so many items costs as a node of the search.
constexpr int64_t kItemsPerNode = 8;

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
      case RuleOrder::kTsw:
        keys.push_back({total, size, width});
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

// The peak total in the lifetime of every item.
std::vector<int64_t> find_peak_totals(const Part& part) {
  const RangeMaximum maximum(find_section_totals(part));
  std::vector<int64_t> result;
  result.reserve(part.items.size());
  for (const Item& item : part.items) result.push_back(maximum.find(item.first, item.last));
  return result;
}

bool has_pins(const Part& part) {
  return std::any_of(part.items.begin(), part.items.end(),
                     [](const Item& item) { return item.pin >= 0; });
}

bool has_pieces(const Part& part) {
  return std::any_of(part.items.begin(), part.items.end(),
                     [](const Item& item) { return item.slab_end - item.slab_begin > 1; });
}

}  // namespace

PartPlan place_by_rules(const Part& part, int64_t goal) {
  const std::vector<int64_t> peak_totals = find_peak_totals(part);
  PartPlan best;
  best.height = std::numeric_limits<int64_t>::max();
  const auto keep = [&](const std::vector<int64_t>& offsets, const char* method) {
    const int64_t height = find_height(part, offsets);
    if (height < best.height) best = {offsets, height, method};
  };
  if (!has_pins(part)) {
    Skyline skyline(part);
    for (RuleOrder order : kRuleOrders) {
      const int64_t limit = best.offsets.empty() ? Skyline::kNoLimit : best.height - part.base;
      if (skyline.place(make_order(part, peak_totals, order), Skyline::kNoLimit, limit)) {
        keep(skyline.offsets(), "skyline");
      }
      if (best.height <= goal) return best;
    }
  }
  if (has_pins(part) || has_pieces(part)) {
    for (RuleOrder order : kRuleOrders) {
      keep(place_first_fit(part, make_order(part, peak_totals, order)), "first fit");
      if (best.height <= goal) return best;
    }
  }
  return best;
}

namespace {

// Whether an item was still unplaced when a section that it lives in came over the goal.
bool is_culprit(const Part& part, const Skyline& skyline, int32_t index) {
  const Item& item = part.items[index];
  const int32_t turn = skyline.turns()[index];
  return std::any_of(
      skyline.faults().begin(), skyline.faults().end(), [&](const Skyline::Fault& fault) {
        return turn >= fault.num_placed && item.first <= fault.section && fault.section < item.last;
      });
}

}  // namespace

std::vector<std::vector<int32_t>> make_learning_orders(const Part& part) {
  const std::vector<int64_t> peak_totals = find_peak_totals(part);
  std::vector<std::vector<int32_t>> orders;
  for (RuleOrder kind : {RuleOrder::kTwa, RuleOrder::kWidth, RuleOrder::kTaw, RuleOrder::kArea}) {
    orders.push_back(make_order(part, peak_totals, kind));
  }
  return orders;
}

void improve_by_learning(const Part& part, int64_t goal, Effort& effort, PartPlan& plan) {
  if (has_pins(part)) return;
  const std::vector<int64_t> peak_totals = find_peak_totals(part);
  const int64_t cost = 1 + static_cast<int64_t>(part.items.size()) / kItemsPerNode;
  int64_t allowance = effort.num_nodes / 2;
  Skyline skyline(part);
  for (RuleOrder kind : kLearningOrders) {
    std::vector<int32_t> order = make_order(part, peak_totals, kind);
    for (int run = 0; run < kLearningRuns; ++run) {
      if (allowance < cost || effort.is_spent()) return;
      allowance -= cost;
      effort.num_nodes -= cost;
      if (skyline.place(order, goal - part.base, plan.height - part.base)) {
        const int64_t height = find_height(part, skyline.offsets());
        if (height < plan.height) plan = {skyline.offsets(), height, "skyline, learned"};
        if (plan.height <= goal) return;
      }
      if (!move_forward(order, [&](int32_t i) { return is_culprit(part, skyline, i); })) break;
    }
  }
}

}  // namespace rlx::memory
