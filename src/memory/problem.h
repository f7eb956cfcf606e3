// The memory problem as plain intervals: units of bytes with fixed lifetimes that need offsets in
// one address space. It exists so that planning knows no tensors: whoever has values, views and
// in-place results turns them into units with `join_aliases`, and the planner sees only integers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace rlx::memory {

// Bytes [low, high), counted from the unit's offset, are occupied during steps [start, end).
struct Piece {
  int64_t start, end;  // steps
  int64_t low, high;   // bytes
};

// What gets one offset. Pieces lie within [0, size_bytes); they may overlap one another and may
// leave holes, in bytes as in steps, that other units may use. A unit without pieces conflicts with
// nothing, but lies inside the plan like any other.
struct Unit {
  int64_t size_bytes = 0;
  int64_t alignment = 1;  // a power of two; the offset is a multiple of it
  std::vector<Piece> pieces;
  int64_t pinned_offset = -1;  // the only offset allowed, in bytes; -1: free
};

struct Problem {
  std::vector<Unit> units;
};

// Throws rlx::Error, naming the unit, when a unit contradicts the rules above or when its numbers
// do not fit in 64 bits.
void check_problem(const Problem& problem);

// A value before aliasing. It lives in steps [start, end). `alias_of` >= 0 says that it shares its
// bytes with that value (views, in-place results, parts of a concatenation) and begins
// `alias_delta_bytes` after its start.
struct Value {
  int64_t size_bytes = 0;
  int64_t alignment = 64;
  int64_t start = 0, end = 0;
  int64_t alias_of = -1;
  int64_t alias_delta_bytes = 0;
  int64_t pinned_offset = -1;
};

struct Joined {
  Problem problem;
  std::vector<int32_t> unit_of_value;
  std::vector<int64_t> delta_of_value;  // offset of a value = offset of its unit + delta, in bytes
};

// Makes one unit of every set of values that share bytes. A unit holds the bytes of all its values,
// and at each step only the bytes of the values alive then count as occupied.
//   - The alignment of a unit is that of the value which aliases no other: an aliasing value lies
//     where its delta puts it, and its own alignment is not looked at.
//   - A pinned value pins its unit.
//   - A value of zero bytes gets a unit of zero bytes of its own.
// Throws rlx::Error for an alias out of range, deltas or pins that contradict one another, a
// lifetime that ends before it starts, negative sizes, alignments that are not powers of two, and
// overflow.
Joined join_aliases(std::span<const Value> values);

}  // namespace rlx::memory
