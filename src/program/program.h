// What really runs, as plain data: a flat list of instructions over values with fixed places. A
// value is a (segment, offset) with a type and strides; an instruction names a kernel and its
// operands. Extents may depend on symbols; everything else is decided before the first run.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/op.h"
#include "tensor/shape.h"

namespace rlx {

// Where bytes live. Weights are read-only and shared by all programs of a model (on the CPU: the
// mapped file itself). State stays from run to run. Io holds inputs and outputs. Work is reused by
// lifetime. State, io and work lie one after the other in a single allocation, the arena.
enum class Segment : uint8_t { kWeights, kState, kIo, kWork };
inline constexpr int kNumSegments = 4;
std::string_view to_string(Segment segment);

// A value of the program. Several values may share bytes: views, in-place results, and values of
// disjoint lifetimes.
struct ProgramValue {
  std::string name;    // from the graph; "%12" when it has none there
  std::string source;  // what the model calls the place it comes from
  std::string op;      // the op that makes it
  TensorType type;
  Layout layout;  // strides and offset in elements, relative to offset_bytes
  Segment segment = Segment::kWork;
  int64_t offset_bytes =
      0;                   // of the storage within its segment; -1 for a weight that the file holds
  int64_t size_bytes = 0;  // of the storage, at the symbols' upper bounds
  std::string weight;      // for a weight that the file holds: its name there
  // Steps [first_step, last_step] at which the storage is occupied; for work only.
  int32_t first_step = 0;
  int32_t last_step = 0;
  // >= 0: the value whose bytes these are a part of, when a concatenation is computed in place.
  int32_t part_of = -1;
};

struct Instruction {
  std::string kernel;
  Op op;
  std::vector<int32_t> inputs;  // indices of Program::values
  std::vector<int32_t> outputs;
  int64_t scratch_offset_bytes = 0;  // within work
  int64_t scratch_bytes = 0;
  std::string source;
  // False when no earlier instruction since the last barrier touches the bytes of this one in a way
  // that conflicts: threads may go on without waiting for each other.
  bool needs_barrier = true;
};

struct NamedValue {
  std::string name;
  int32_t value;
};

// Bytes of one segment, and what is proven about them.
struct SegmentPlan {
  int64_t size_bytes = 0;
  int64_t lower_bound_bytes =
      0;  // no plan can be smaller; equals size_bytes where nothing is reused
  bool optimal = true;
};

// An allocation that a device with a largest allocation makes for a part of a segment: bytes
// [begin_bytes, begin_bytes + size_bytes) of it. No value lies in two.
struct BlockPlan {
  Segment segment;
  int64_t begin_bytes = 0;
  int64_t size_bytes = 0;
};

// A value alive at the peak of the work segment.
struct PeakValue {
  std::string name;
  std::string source;
  int64_t size_bytes = 0;
};

struct MemoryPlan {
  std::array<SegmentPlan, kNumSegments> segments;
  int64_t arena_bytes = 0;  // state, io and work with the alignment between them: one allocation
  std::array<int64_t, kNumSegments> base_bytes{};  // of state, io and work within the arena
  std::vector<BlockPlan> blocks;    // of state, io and work; one of each when nothing limits them
  int64_t mapped_weight_bytes = 0;  // of the weights segment: used where the file lies
  int64_t constant_bytes = 0;       // of the weights segment: held in the program
  // The least work that the model's own order of nodes needs, every concatenation copied. The
  // compiler's order and places need no more.
  int64_t unordered_bound_bytes = 0;
  int32_t peak_step = 0;
  std::string peak_source;
  std::vector<PeakValue> peak_values;  // largest first

  const SegmentPlan& segment(Segment which) const { return segments[static_cast<int>(which)]; }
  SegmentPlan& segment(Segment which) { return segments[static_cast<int>(which)]; }
};

// An instruction that copies only because a consumer does not accept the strides it would get.
struct MaterializedView {
  std::string value;
  std::string consumer;
  std::string reason;
  int64_t size_bytes = 0;
};

struct Program {
  std::string name;
  SymbolTable symbols;
  std::vector<ProgramValue> values;
  std::vector<Instruction> instructions;
  std::vector<NamedValue> inputs, outputs, states, weights;
  std::vector<std::byte> constants;  // the part of the weights segment that is not in a file
  MemoryPlan plan;
  std::vector<MaterializedView> materialized;
};

// The listing: symbols, segments, then step, kernel, operands as segment+offset with types,
// scratch.
std::string to_string(const Program& program);

}  // namespace rlx
