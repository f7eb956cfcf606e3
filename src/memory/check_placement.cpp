#include "memory/check_placement.h"

#include <algorithm>
#include <limits>
#include <map>

#include "base/error.h"

namespace rlx::memory {
namespace {

struct Occupant {
  int64_t end_byte;
  int32_t unit;
  int32_t piece;      // the last to enter, for the message
  int32_t num_users;  // pieces of the unit that cover these bytes now
};

// Bytes in use at the current step: disjoint, keyed by the first byte.
using Occupied = std::map<int64_t, Occupant>;

int64_t checked_end(int64_t offset, int64_t bytes, size_t unit) {
  int64_t end;
  if (__builtin_add_overflow(offset, bytes, &end)) {
    throw_error(ErrorCode::kOutOfRange,
                "Unit {} at offset {} with {} bytes ends beyond what 64 bits can count.", unit,
                offset, bytes);
  }
  return end;
}

[[noreturn]] void throw_overlap(const Problem& problem, const Placement& placement, int32_t unit,
                                int32_t piece, int32_t other_unit, int32_t other_piece) {
  const Piece& a = problem.units[other_unit].pieces[other_piece];
  const Piece& b = problem.units[unit].pieces[piece];
  const int64_t offset_a = placement.offsets[other_unit], offset_b = placement.offsets[unit];
  throw_error(ErrorCode::kInternal,
              "Units {} and {} overlap: unit {} occupies bytes {} to {} during steps {} to {}, and "
              "unit {} occupies bytes {} to {} during steps {} to {}.",
              other_unit, unit, other_unit, offset_a + a.low, offset_a + a.high, a.start, a.end,
              unit, offset_b + b.low, offset_b + b.high, b.start, b.end);
}

// Makes `byte` the first of an occupant if it lies inside one.
void split(Occupied& occupied, int64_t byte) {
  auto after = occupied.lower_bound(byte);
  if (after == occupied.begin()) return;
  auto before = std::prev(after);
  if (before->second.end_byte <= byte) return;
  Occupant upper = before->second;
  before->second.end_byte = byte;
  occupied.emplace_hint(after, byte, upper);
}

class Sweep {
 public:
  Sweep(const Problem& problem, const Placement& placement)
      : problem_(problem), placement_(placement) {}

  void enter(int32_t unit, int32_t piece_index) {
    const Piece& piece = problem_.units[unit].pieces[piece_index];
    const int64_t low = placement_.offsets[unit] + piece.low;
    const int64_t high = placement_.offsets[unit] + piece.high;
    auto it = occupied_.upper_bound(low);
    if (it != occupied_.begin() && std::prev(it)->second.end_byte > low) --it;
    for (auto other = it; other != occupied_.end() && other->first < high; ++other) {
      if (other->second.unit != unit) {
        throw_overlap(problem_, placement_, unit, piece_index, other->second.unit,
                      other->second.piece);
      }
    }
    split(occupied_, low);
    split(occupied_, high);
    int64_t byte = low;
    while (byte < high) {
      auto next = occupied_.lower_bound(byte);
      if (next != occupied_.end() && next->first == byte) {
        ++next->second.num_users;
        next->second.piece = piece_index;
        byte = next->second.end_byte;
        continue;
      }
      const int64_t end = next == occupied_.end() ? high : std::min(high, next->first);
      occupied_.emplace_hint(next, byte, Occupant{end, unit, piece_index, 1});
      byte = end;
    }
  }

  void leave(int32_t unit, int32_t piece_index) {
    const Piece& piece = problem_.units[unit].pieces[piece_index];
    const int64_t high = placement_.offsets[unit] + piece.high;
    auto it = occupied_.lower_bound(placement_.offsets[unit] + piece.low);
    while (it != occupied_.end() && it->first < high) {
      it = --it->second.num_users == 0 ? occupied_.erase(it) : std::next(it);
    }
  }

 private:
  const Problem& problem_;
  const Placement& placement_;
  Occupied occupied_;
};

void check_offsets(const Problem& problem, const Placement& placement) {
  int64_t highest_end = 0;
  int64_t smallest_alignment = std::numeric_limits<int64_t>::max();
  for (size_t i = 0; i < problem.units.size(); ++i) {
    const Unit& unit = problem.units[i];
    const int64_t offset = placement.offsets[i];
    if (offset < 0) {
      throw_error(ErrorCode::kInternal, "Unit {} is at offset {}, but an offset is at least 0.", i,
                  offset);
    }
    if (unit.alignment <= 0 || offset % unit.alignment != 0) {
      throw_error(ErrorCode::kInternal,
                  "Unit {} is at offset {}, which is not a multiple of its alignment {}.", i,
                  offset, unit.alignment);
    }
    if (unit.pinned_offset >= 0 && offset != unit.pinned_offset) {
      throw_error(ErrorCode::kInternal, "Unit {} is at offset {}, but it is pinned at {}.", i,
                  offset, unit.pinned_offset);
    }
    for (const Piece& piece : unit.pieces) {
      if (piece.low < 0 || piece.low > piece.high || piece.high > unit.size_bytes) {
        throw_error(ErrorCode::kInvalidArgument,
                    "A piece of unit {} covers bytes {} to {}, but the unit has bytes 0 to {}.", i,
                    piece.low, piece.high, unit.size_bytes);
      }
    }
    const int64_t end = checked_end(offset, unit.size_bytes, i);
    if (unit.size_bytes <= 0) continue;
    if (end > placement.height_bytes) {
      throw_error(ErrorCode::kInternal,
                  "Unit {} occupies bytes {} to {}, but the height of the plan is {}.", i, offset,
                  end, placement.height_bytes);
    }
    highest_end = std::max(highest_end, end);
    smallest_alignment = std::min(smallest_alignment, unit.alignment);
  }
  const int64_t slack = placement.height_bytes - highest_end;
  if (highest_end == 0 ? slack != 0 : slack >= smallest_alignment) {
    throw_error(ErrorCode::kInternal,
                "The height of the plan is {} bytes, but the highest unit ends at {}.",
                placement.height_bytes, highest_end);
  }
}

}  // namespace

void check_placement(const Problem& problem, const Placement& placement) {
  if (placement.offsets.size() != problem.units.size()) {
    throw_error(ErrorCode::kInternal, "The plan has {} offsets, but the problem has {} units.",
                placement.offsets.size(), problem.units.size());
  }
  check_offsets(problem, placement);

  struct Event {
    int64_t step;
    int32_t enters;  // leaving comes first: a lifetime is half open
    int32_t unit, piece;
  };
  std::vector<Event> events;
  for (size_t i = 0; i < problem.units.size(); ++i) {
    const std::vector<Piece>& pieces = problem.units[i].pieces;
    for (size_t k = 0; k < pieces.size(); ++k) {
      if (pieces[k].start >= pieces[k].end || pieces[k].low >= pieces[k].high) continue;
      const int32_t unit = static_cast<int32_t>(i), piece = static_cast<int32_t>(k);
      events.push_back({pieces[k].start, 1, unit, piece});
      events.push_back({pieces[k].end, 0, unit, piece});
    }
  }
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    if (a.step != b.step) return a.step < b.step;
    if (a.enters != b.enters) return a.enters < b.enters;
    return a.unit != b.unit ? a.unit < b.unit : a.piece < b.piece;
  });
  Sweep sweep(problem, placement);
  for (const Event& event : events) {
    if (event.enters) {
      sweep.enter(event.unit, event.piece);
    } else {
      sweep.leave(event.unit, event.piece);
    }
  }
}

}  // namespace rlx::memory
