#include "memory/place_in_blocks.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

#include "base/checked.h"
#include "base/error.h"
#include "memory/lower_bound.h"

namespace rlx::memory {
namespace {

struct Placed {
  int64_t low, high;
  int64_t start, end;  // steps
};

// The steps from a unit's first piece to its last.
Placed find_lifetime(const Unit& unit) {
  Placed placed{0, unit.size_bytes, std::numeric_limits<int64_t>::max(), 0};
  for (const Piece& piece : unit.pieces) {
    placed.start = std::min(placed.start, piece.start);
    placed.end = std::max(placed.end, piece.end);
  }
  return placed;
}

std::optional<size_t> find_crossing(const Problem& problem, const Placement& placement,
                                    int64_t block_bytes) {
  for (size_t i = 0; i < problem.units.size(); ++i) {
    const int64_t size = problem.units[i].size_bytes;
    const int64_t offset = placement.offsets[i];
    if (size > 0 && offset / block_bytes != (offset + size - 1) / block_bytes) return i;
  }
  return std::nullopt;
}

// The lowest free bytes for the unit. `placed` is sorted by `low`.
int64_t find_offset(const std::vector<Placed>& placed, const Placed& unit, int64_t alignment,
                    int64_t block_bytes) {
  int64_t offset = 0;
  const auto leave_block_end = [&] {
    offset = align_up(offset, alignment);
    const int64_t in_block = offset % block_bytes;
    if (in_block + unit.high > block_bytes) offset = checked_add(offset, block_bytes - in_block);
  };
  for (const Placed& other : placed) {
    if (other.end <= unit.start || unit.end <= other.start) continue;
    if (offset + unit.high <= other.low) break;
    if (other.high <= offset) continue;
    offset = other.high;
    leave_block_end();
  }
  return offset;
}

}  // namespace

Placement place_in_blocks(const Problem& problem, int64_t block_bytes,
                          const PlaceOptions& options) {
  RLX_CHECK(block_bytes > 0);
  for (size_t i = 0; i < problem.units.size(); ++i) {
    const Unit& unit = problem.units[i];
    RLX_CHECK(block_bytes % unit.alignment == 0);
    if (unit.size_bytes > block_bytes) {
      throw_error(ErrorCode::kOutOfMemory,
                  "Unit {} has {} bytes, but the largest allocation is {} bytes.", i,
                  unit.size_bytes, block_bytes);
    }
    if (unit.pinned_offset >= 0) {
      throw_error(ErrorCode::kInvalidArgument,
                  "Unit {} is pinned at {}, which is not supported with several blocks.", i,
                  unit.pinned_offset);
    }
  }
  Placement placement = place(problem, options);
  if (!find_crossing(problem, placement, block_bytes)) return placement;

  std::vector<size_t> order(problem.units.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return problem.units[a].size_bytes > problem.units[b].size_bytes;
  });
  std::vector<Placed> placed;
  int64_t end = 0;
  for (const size_t i : order) {
    const Unit& unit = problem.units[i];
    placement.offsets[i] = 0;
    if (unit.size_bytes == 0) continue;
    Placed entry = find_lifetime(unit);
    const int64_t offset = find_offset(placed, entry, unit.alignment, block_bytes);
    placement.offsets[i] = offset;
    entry.low = offset;
    entry.high = checked_add(offset, unit.size_bytes);
    end = std::max(end, entry.high);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), entry,
                                   [](const Placed& a, const Placed& b) { return a.low < b.low; }),
                  entry);
  }
  placement.height_bytes = align_up(end, find_block_bytes(problem));
  placement.optimal = placement.height_bytes == placement.lower_bound_bytes;
  placement.method = "first fit in blocks";
  return placement;
}

void check_blocks(const Problem& problem, const Placement& placement, int64_t block_bytes) {
  if (const std::optional<size_t> unit = find_crossing(problem, placement, block_bytes)) {
    throw_error(ErrorCode::kInternal, "Unit {} lies at bytes {} to {}, across a block of {} bytes.",
                *unit, placement.offsets[*unit],
                placement.offsets[*unit] + problem.units[*unit].size_bytes, block_bytes);
  }
}

}  // namespace rlx::memory
