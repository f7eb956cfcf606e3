#include "memory/problem.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/checked.h"
#include "base/error.h"
#include "memory/flatten_pieces.h"

namespace rlx::memory {
namespace {

constexpr int64_t kNone = -1;

bool is_power_of_two(int64_t value) {
  return value > 0 && std::has_single_bit(static_cast<uint64_t>(value));
}

void check_unit(const Unit& unit, size_t index) {
  if (unit.size_bytes < 0) {
    throw_error(ErrorCode::kInvalidArgument, "Unit {} has {} bytes, but a size is at least 0.",
                index, unit.size_bytes);
  }
  if (!is_power_of_two(unit.alignment)) {
    throw_error(ErrorCode::kInvalidArgument,
                "Unit {} has alignment {}, but an alignment is a power of two.", index,
                unit.alignment);
  }
  if (unit.pinned_offset < -1) {
    throw_error(ErrorCode::kInvalidArgument,
                "Unit {} is pinned at {}, but an offset is at least 0 (-1: free).", index,
                unit.pinned_offset);
  }
  if (unit.pinned_offset > 0 && unit.pinned_offset % unit.alignment != 0) {
    throw_error(ErrorCode::kInvalidArgument,
                "Unit {} is pinned at {}, which is not a multiple of its alignment {}.", index,
                unit.pinned_offset, unit.alignment);
  }
  checked_add(checked_add(unit.size_bytes, std::max<int64_t>(unit.pinned_offset, 0)),
              unit.alignment);
  for (const Piece& piece : unit.pieces) {
    if (piece.start > piece.end) {
      throw_error(ErrorCode::kInvalidArgument,
                  "A piece of unit {} lives from step {} to step {}, but a lifetime cannot end "
                  "before it starts.",
                  index, piece.start, piece.end);
    }
    if (piece.low < 0 || piece.low > piece.high || piece.high > unit.size_bytes) {
      throw_error(ErrorCode::kInvalidArgument,
                  "A piece of unit {} covers bytes {} to {}, but the unit has bytes 0 to {}.",
                  index, piece.low, piece.high, unit.size_bytes);
    }
  }
}

void check_value(const Value& value, size_t index, size_t num_values) {
  if (value.size_bytes < 0) {
    throw_error(ErrorCode::kInvalidArgument, "Value {} has {} bytes, but a size is at least 0.",
                index, value.size_bytes);
  }
  if (!is_power_of_two(value.alignment)) {
    throw_error(ErrorCode::kInvalidArgument,
                "Value {} has alignment {}, but an alignment is a power of two.", index,
                value.alignment);
  }
  if (value.start > value.end) {
    throw_error(
        ErrorCode::kInvalidArgument,
        "Value {} lives from step {} to step {}, but a lifetime cannot end before it starts.",
        index, value.start, value.end);
  }
  if (value.alias_of < -1 || value.alias_of >= static_cast<int64_t>(num_values)) {
    throw_error(ErrorCode::kInvalidArgument,
                "Value {} is an alias of value {}, but the values are 0 to {} (-1: none).", index,
                value.alias_of, static_cast<int64_t>(num_values) - 1);
  }
  if (value.pinned_offset < -1) {
    throw_error(ErrorCode::kInvalidArgument,
                "Value {} is pinned at {}, but an offset is at least 0 (-1: free).", index,
                value.pinned_offset);
  }
}

int64_t checked_sub(int64_t a, int64_t b) {
  int64_t result;
  if (__builtin_sub_overflow(a, b, &result)) {
    throw_error(ErrorCode::kOutOfRange, "The difference {} - {} does not fit in 64 bits.", a, b);
  }
  return result;
}

// Sets of values with the position of each, in bytes from the start of its set's root.
class ValueSets {
 public:
  explicit ValueSets(size_t size) : parent_(size), position_(size, 0), rank_(size, 0) {
    for (size_t i = 0; i < size; ++i) parent_[i] = static_cast<int32_t>(i);
  }

  int32_t find_root(int32_t value) {
    path_.clear();
    while (parent_[value] != value) {
      path_.push_back(value);
      value = parent_[value];
    }
    // From the root outwards, so that each parent's position is already counted from the root.
    for (size_t i = path_.size(); i-- > 0;) {
      const int32_t node = path_[i];
      if (parent_[node] != value) {
        position_[node] = checked_add(position_[node], position_[parent_[node]]);
        parent_[node] = value;
      }
    }
    return value;
  }

  int64_t position(int32_t value) {
    find_root(value);
    return position_[value];
  }

  // States that `value` begins `delta` bytes after `other`.
  void join(int32_t value, int32_t other, int64_t delta) {
    int32_t root = find_root(value);
    int32_t other_root = find_root(other);
    const int64_t stated = checked_add(position_[other], delta);
    if (root == other_root) {
      const int64_t known = position_[value];
      if (known != stated) {
        throw_error(
            ErrorCode::kInvalidArgument,
            "Value {} is said to begin {} bytes after value {}, but other aliases put it {} "
            "bytes after.",
            value, delta, other, known - position_[other]);
      }
      return;
    }
    int64_t shift = checked_sub(stated, position_[value]);  // of `root`, from `other_root`
    if (rank_[root] > rank_[other_root]) {
      std::swap(root, other_root);
      shift = checked_sub(0, shift);
    }
    parent_[root] = other_root;
    position_[root] = shift;
    if (rank_[root] == rank_[other_root]) ++rank_[other_root];
  }

 private:
  std::vector<int32_t> parent_;
  std::vector<int64_t> position_;  // from the parent
  std::vector<int8_t> rank_;
  std::vector<int32_t> path_;
};

// Makes the unit of `members` (values with bytes) and writes their deltas.
Unit make_unit(std::span<const Value> values, std::span<const int32_t> members, ValueSets& sets,
               std::vector<int64_t>& delta_of_value) {
  int32_t owner = members[0];
  int64_t first = std::numeric_limits<int64_t>::max();
  for (int32_t member : members) {
    if (values[member].alias_of < 0) owner = member;
    first = std::min(first, sets.position(member));
  }
  Unit unit;
  unit.alignment = values[owner].alignment;
  // The offset of the unit keeps the owner aligned, so it lies whole alignments before the owner.
  const int64_t before_owner = checked_sub(sets.position(owner), first);
  const int64_t origin = checked_sub(sets.position(owner), align_up(before_owner, unit.alignment));
  int32_t pinned_by = kNone;
  for (int32_t member : members) {
    const Value& value = values[member];
    const int64_t delta = checked_sub(sets.position(member), origin);
    const int64_t high = checked_add(delta, value.size_bytes);
    delta_of_value[member] = delta;
    unit.size_bytes = std::max(unit.size_bytes, high);
    if (value.start < value.end) unit.pieces.push_back({value.start, value.end, delta, high});
    if (value.pinned_offset < 0) continue;
    const int64_t pin = checked_sub(value.pinned_offset, delta);
    if (pin < 0 || pin % unit.alignment != 0) {
      throw_error(ErrorCode::kInvalidArgument,
                  "Value {} is pinned at {}, which would put the bytes it shares at offset {}, but "
                  "they need an offset of at least 0 that is a multiple of {}.",
                  member, value.pinned_offset, pin, unit.alignment);
    }
    if (pinned_by != kNone && pin != unit.pinned_offset) {
      throw_error(
          ErrorCode::kInvalidArgument,
          "Values {} and {} share bytes, but their pins {} and {} contradict their aliases.",
          pinned_by, member, values[pinned_by].pinned_offset, value.pinned_offset);
    }
    unit.pinned_offset = pin;
    pinned_by = member;
  }
  unit.pieces = flatten_pieces(unit.pieces);
  return unit;
}

}  // namespace

void check_problem(const Problem& problem) {
  if (problem.units.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max())) {
    throw_error(ErrorCode::kOutOfRange, "The problem has {} units, but at most {} can be planned.",
                problem.units.size(), std::numeric_limits<int32_t>::max());
  }
  for (size_t i = 0; i < problem.units.size(); ++i) check_unit(problem.units[i], i);
}

Joined join_aliases(std::span<const Value> values) {
  if (values.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max())) {
    throw_error(ErrorCode::kOutOfRange, "There are {} values, but at most {} can be planned.",
                values.size(), std::numeric_limits<int32_t>::max());
  }
  const int32_t num_values = static_cast<int32_t>(values.size());
  ValueSets sets(values.size());
  for (int32_t i = 0; i < num_values; ++i) {
    check_value(values[i], i, values.size());
    if (values[i].alias_of >= 0) {
      sets.join(i, static_cast<int32_t>(values[i].alias_of), values[i].alias_delta_bytes);
    }
  }

  Joined joined;
  joined.unit_of_value.assign(values.size(), 0);
  joined.delta_of_value.assign(values.size(), 0);
  std::vector<int32_t> unit_of_root(values.size(), kNone);
  std::vector<std::vector<int32_t>> members;  // per unit
  for (int32_t i = 0; i < num_values; ++i) {
    const int32_t next_unit = static_cast<int32_t>(members.size());
    int32_t& unit =
        values[i].size_bytes == 0 ? joined.unit_of_value[i] : unit_of_root[sets.find_root(i)];
    if (values[i].size_bytes == 0 || unit == kNone) {
      unit = next_unit;
      members.emplace_back();
    }
    joined.unit_of_value[i] = unit;
    members[unit].push_back(i);
  }
  joined.problem.units.reserve(members.size());
  for (const std::vector<int32_t>& unit : members) {
    joined.problem.units.push_back(make_unit(values, unit, sets, joined.delta_of_value));
  }
  check_problem(joined.problem);
  return joined;
}

}  // namespace rlx::memory
