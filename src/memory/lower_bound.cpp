#include "memory/lower_bound.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "base/checked.h"
#include "memory/flatten_pieces.h"

namespace rlx::memory {

int64_t find_block_bytes(const Problem& problem) {
  int64_t block = std::numeric_limits<int64_t>::max();
  for (const Unit& unit : problem.units) {
    if (unit.size_bytes > 0) block = std::min(block, unit.alignment);
  }
  return block == std::numeric_limits<int64_t>::max() ? 1 : block;
}

LowerBound find_lower_bound(const Problem& problem) {
  check_problem(problem);
  const int64_t block = find_block_bytes(problem);
  struct Event {
    int64_t step;
    int64_t blocks;  // negative: freed
  };
  std::vector<Event> events;
  std::vector<Piece> rounded;
  for (const Unit& unit : problem.units) {
    // A unit owns the blocks whose first byte it covers: no two units can own the same block, so
    // this never counts too much, even where a piece begins inside a block.
    rounded.clear();
    for (const Piece& piece : unit.pieces) {
      rounded.push_back({piece.start, piece.end, align_up(piece.low, block) / block,
                         align_up(piece.high, block) / block});
    }
    for (const Piece& piece : flatten_pieces(rounded)) {
      events.push_back({piece.start, piece.high - piece.low});
      events.push_back({piece.end, piece.low - piece.high});
    }
  }
  // Frees first: a lifetime is half open.
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return a.step != b.step ? a.step < b.step : a.blocks < b.blocks;
  });
  LowerBound bound{0, 0};
  int64_t live = 0;
  for (const Event& event : events) {
    live = checked_add(live, event.blocks);
    const int64_t bytes = checked_mul(live, block);
    if (bytes > bound.bytes) bound = {bytes, event.step};
  }
  return bound;
}

}  // namespace rlx::memory
