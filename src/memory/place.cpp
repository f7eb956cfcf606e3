#include "memory/place.h"

#include <algorithm>
#include <numeric>

#include "base/checked.h"
#include "memory/first_fit.h"
#include "memory/lower_bound.h"
#include "memory/normal_form.h"

namespace rlx::memory {
namespace {

int64_t find_height(const Part& part, const std::vector<int64_t>& offsets) {
  int64_t height = 0;
  for (size_t i = 0; i < part.items.size(); ++i) {
    height = std::max(height, offsets[i] + part.items[i].size);
  }
  return height + part.base;
}

// Orders of placement: each a key by which items come first, larger keys earlier.
enum class Order { kSize, kArea, kDuration, kStart, kCount };

std::vector<int32_t> make_order(const Part& part, Order order) {
  struct Key {
    __int128 major, minor;
  };
  std::vector<Key> keys;
  for (const Item& item : part.items) {
    const __int128 size = item.size, width = item.last - item.first;
    switch (order) {
      case Order::kSize:
        keys.push_back({size, width});
        break;
      case Order::kArea:
        keys.push_back({size * width, size});
        break;
      case Order::kDuration:
        keys.push_back({width, size});
        break;
      default:
        keys.push_back({-item.first, size});
        break;
    }
  }
  std::vector<int32_t> result(part.items.size());
  std::iota(result.begin(), result.end(), 0);
  std::sort(result.begin(), result.end(), [&](int32_t a, int32_t b) {
    if (keys[a].major != keys[b].major) return keys[a].major > keys[b].major;
    if (keys[a].minor != keys[b].minor) return keys[a].minor > keys[b].minor;
    return a < b;
  });
  return result;
}

std::vector<int64_t> solve_part(const Part& part, int64_t goal) {
  std::vector<int64_t> best;
  int64_t best_height = 0;
  for (int i = 0; i < static_cast<int>(Order::kCount); ++i) {
    std::vector<int64_t> offsets = place_first_fit(part, make_order(part, static_cast<Order>(i)));
    const int64_t height = find_height(part, offsets);
    if (best.empty() || height < best_height) {
      best_height = height;
      best = std::move(offsets);
    }
    if (best_height <= goal) break;
  }
  return best;
}

}  // namespace

Placement place(const Problem& problem, const PlaceOptions& options) {
  check_problem(problem);
  const LowerBound bound = find_lower_bound(problem);
  const int64_t granule = find_block_bytes(problem);
  NormalForm form = make_normal_form(problem);

  Placement placement;
  placement.peak_step = bound.step;
  placement.lower_bound_bytes = bound.bytes;
  placement.method = "first fit";
  for (const Unit& unit : problem.units) {
    if (unit.size_bytes == 0) continue;
    const int64_t end =
        align_up(checked_add(std::max<int64_t>(unit.pinned_offset, 0), unit.size_bytes), granule);
    placement.lower_bound_bytes = std::max(placement.lower_bound_bytes, end);
  }
  const int64_t block = form.block_bytes;
  const int64_t bound_blocks =
      placement.lower_bound_bytes / block + (placement.lower_bound_bytes % block == 0 ? 0 : 1);
  const int64_t goal = std::max(bound_blocks, options.capacity_bytes / block);

  for (const Part& part : form.parts) {
    const std::vector<int64_t> offsets = solve_part(part, goal);
    for (size_t i = 0; i < part.items.size(); ++i) {
      form.offsets[part.items[i].unit] = part.base + offsets[i];
    }
  }
  for (size_t i = 0; i < problem.units.size(); ++i) {
    const Unit& unit = problem.units[i];
    int64_t offset = checked_mul(form.offsets[i], block);
    if (unit.pinned_offset >= 0) offset = unit.pinned_offset;
    placement.offsets.push_back(offset);
    if (unit.size_bytes == 0) continue;
    placement.height_bytes =
        std::max(placement.height_bytes, align_up(checked_add(offset, unit.size_bytes), granule));
  }
  placement.optimal = placement.height_bytes == placement.lower_bound_bytes;
  return placement;
}

}  // namespace rlx::memory
