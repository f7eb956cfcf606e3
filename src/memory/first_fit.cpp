#include "memory/first_fit.h"

#include <algorithm>

#include "base/error.h"

namespace rlx::memory {
namespace {

struct PlacedSlab {
  int64_t low, high;  // from the base of the part
  int32_t first, last;
  int32_t unit;
};

int64_t align_blocks(int64_t offset, int64_t alignment) {
  return (offset + alignment - 1) & ~(alignment - 1);
}

class FirstFit {
 public:
  explicit FirstFit(const Part& part) : part_(part) { placed_.reserve(part.slabs.size()); }

  void add(const Item& item, int64_t offset) {
    for (int32_t s = item.slab_begin; s < item.slab_end; ++s) {
      const Slab& slab = part_.slabs[s];
      const PlacedSlab entry{offset + slab.low, offset + slab.high, slab.first, slab.last,
                             item.unit};
      auto it = std::upper_bound(placed_.begin(), placed_.end(), entry.low,
                                 [](int64_t low, const PlacedSlab& p) { return low < p.low; });
      placed_.insert(it, entry);
    }
  }

  void check_free(const Item& item, int64_t offset) const {
    for (int32_t s = item.slab_begin; s < item.slab_end; ++s) {
      const Slab& slab = part_.slabs[s];
      for (const PlacedSlab& p : placed_) {
        if (p.first < slab.last && slab.first < p.last && p.low < offset + slab.high &&
            offset + slab.low < p.high) {
          throw_error(ErrorCode::kInvalidArgument,
                      "Units {} and {} are pinned to bytes that overlap while both are alive.",
                      p.unit, item.unit);
        }
      }
    }
  }

  int64_t find_offset(const Item& item) {
    return item.slab_end - item.slab_begin == 1 ? find_for_one(item) : find_for_many(item);
  }

 private:
  // Slabs rise by `low`, so the gap below the next that is alive is all there is to look at.
  int64_t find_for_one(const Item& item) const {
    const Slab& slab = part_.slabs[item.slab_begin];
    int64_t offset = 0;
    for (const PlacedSlab& p : placed_) {
      if (p.first >= slab.last || slab.first >= p.last) continue;
      if (offset + slab.high <= p.low) break;
      offset =
          std::max(offset, align_blocks(std::max<int64_t>(p.high - slab.low, 0), item.alignment));
    }
    return offset;
  }

  // Every pair of slabs alive together forbids an open interval of offsets.
  int64_t find_for_many(const Item& item) {
    forbidden_.clear();
    for (int32_t s = item.slab_begin; s < item.slab_end; ++s) {
      const Slab& slab = part_.slabs[s];
      for (const PlacedSlab& p : placed_) {
        if (p.first >= slab.last || slab.first >= p.last) continue;
        forbidden_.emplace_back(p.low - slab.high, p.high - slab.low);
      }
    }
    std::sort(forbidden_.begin(), forbidden_.end());
    int64_t offset = 0;
    for (const auto& [low, high] : forbidden_) {
      if (offset <= low) break;
      if (offset < high) offset = align_blocks(high, item.alignment);
    }
    return offset;
  }

  const Part& part_;
  std::vector<PlacedSlab> placed_;
  std::vector<std::pair<int64_t, int64_t>> forbidden_;
};

}  // namespace

std::vector<int64_t> place_first_fit(const Part& part, std::span<const int32_t> order) {
  FirstFit rule(part);
  std::vector<int64_t> offsets(part.items.size(), 0);
  for (size_t i = 0; i < part.items.size(); ++i) {
    const Item& item = part.items[i];
    if (item.pin < 0) continue;
    rule.check_free(item, item.pin);
    offsets[i] = item.pin;
    rule.add(item, item.pin);
  }
  for (int32_t index : order) {
    const Item& item = part.items[index];
    if (item.pin >= 0) continue;
    offsets[index] = rule.find_offset(item);
    rule.add(item, offsets[index]);
  }
  return offsets;
}

}  // namespace rlx::memory
