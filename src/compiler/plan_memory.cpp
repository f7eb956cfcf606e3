#include "compiler/plan_memory.h"

#include <algorithm>
#include <map>

#include "base/checked.h"
#include "memory/check_placement.h"
#include "memory/lower_bound.h"
#include "memory/place_in_blocks.h"

namespace rlx {
namespace {

// The storages of work in their order, then the scratch of the instructions that have some.
memory::Joined make_work_problem(const Lowered& lowered, int64_t alignment_bytes) {
  std::vector<memory::Value> values;
  std::vector<int64_t> index_of_storage(lowered.storages.size(), -1);
  int64_t count = 0;
  for (size_t i = 0; i < lowered.storages.size(); ++i) {
    if (lowered.storages[i].segment == Segment::kWork) index_of_storage[i] = count++;
  }
  for (const Storage& storage : lowered.storages) {
    if (storage.segment != Segment::kWork) continue;
    memory::Value value;
    value.size_bytes = align_up(storage.size_bytes, alignment_bytes);
    value.alignment = alignment_bytes;
    // What no instruction touches occupies nothing.
    value.start = std::max(storage.first_step, 0);
    value.end = storage.first_step < 0 ? value.start : storage.last_step + 1;
    if (storage.part_of >= 0 && storage.size_bytes > 0) {
      value.alias_of = index_of_storage[storage.part_of];
      value.alias_delta_bytes = storage.part_offset_bytes;
    }
    values.push_back(value);
  }
  for (size_t i = 0; i < lowered.program.instructions.size(); ++i) {
    const int64_t size = lowered.program.instructions[i].scratch_bytes;
    if (size == 0) continue;
    const auto step = static_cast<int64_t>(i);
    values.push_back({align_up(size, alignment_bytes), alignment_bytes, step, step + 1});
  }
  return memory::join_aliases(values);
}

class Planner {
 public:
  Planner(Lowered lowered, const Target& target, int64_t effort_nodes)
      : lowered_(std::move(lowered)),
        alignment_(target.alignment_bytes()),
        max_block_(target.max_block_bytes()),
        effort_(effort_nodes) {}

  Program run() {
    check_sizes();
    plan_weights();
    stack(Segment::kState);
    stack(Segment::kIo);
    plan_work();
    lay_out_arena();
    write_values();
    place_barriers();
    return std::move(lowered_.program);
  }

 private:
  Program& program() { return lowered_.program; }
  MemoryPlan& plan() { return lowered_.program.plan; }

  void plan_weights() {
    for (const NamedValue& weight : program().weights) {
      const Storage& storage = lowered_.storages[lowered_.storage_of_value[weight.value]];
      plan().mapped_weight_bytes = checked_add(plan().mapped_weight_bytes, storage.size_bytes);
    }
    plan().constant_bytes = static_cast<int64_t>(program().constants.size());
    SegmentPlan& segment = plan().segment(Segment::kWeights);
    segment.size_bytes = checked_add(plan().mapped_weight_bytes, plan().constant_bytes);
    segment.lower_bound_bytes = segment.size_bytes;
  }

  // Every value has to fit into a block.
  void check_sizes() {
    const std::vector<int32_t> first_value = find_first_values();
    for (size_t i = 0; i < lowered_.storages.size(); ++i) {
      const Storage& storage = lowered_.storages[i];
      if (storage.segment == Segment::kWeights || storage.size_bytes <= max_block_) continue;
      const ProgramValue& value = program().values[first_value[i]];
      fail_too_large(value.name, value.source, storage.size_bytes);
    }
    for (const Instruction& instruction : program().instructions) {
      if (instruction.scratch_bytes <= max_block_) continue;
      fail_too_large("scratch of " + instruction.kernel, instruction.source,
                     instruction.scratch_bytes);
    }
  }

  [[noreturn]] void fail_too_large(const std::string& name, const std::string& source,
                                   int64_t size_bytes) const {
    throw_error(ErrorCode::kOutOfMemory,
                "'{}'{} has {} bytes, but the largest allocation is {} bytes.", name,
                source.empty() ? "" : " (" + source + ")", size_bytes, max_block_);
  }

  // Values that are never reused lie one after the other; none crosses from one block to the next.
  void stack(Segment which) {
    int64_t end = 0;
    for (Storage& storage : lowered_.storages) {
      if (storage.segment != which || storage.part_of >= 0) continue;
      storage.offset_bytes = align_up(end, alignment_);
      const int64_t in_block = storage.offset_bytes % max_block_;
      if (in_block + storage.size_bytes > max_block_) {
        storage.offset_bytes = checked_add(storage.offset_bytes, max_block_ - in_block);
      }
      end = checked_add(storage.offset_bytes, storage.size_bytes);
    }
    SegmentPlan& segment = plan().segment(which);
    segment.size_bytes = end;
    segment.lower_bound_bytes = end;
    for (Storage& storage : lowered_.storages) {
      if (storage.segment != which) continue;
      int64_t offset = 0;
      const Storage* whole = &storage;
      for (; whole->part_of >= 0; whole = &lowered_.storages[whole->part_of]) {
        offset += whole->part_offset_bytes;
      }
      storage.offset_bytes = whole->offset_bytes + offset;
    }
  }

  void plan_work() {
    const memory::Joined work = make_work_problem(lowered_, alignment_);
    // A node of the search costs time in proportion to the units, so many units get fewer nodes.
    constexpr int64_t kUnitsOfFullEffort = 500;
    const int64_t units = std::max(std::ssize(work.problem.units), kUnitsOfFullEffort);
    const memory::Placement placement = memory::place_in_blocks(
        work.problem, max_block_, {.effort_nodes = effort_ / units * kUnitsOfFullEffort});
    memory::check_placement(work.problem, placement);
    memory::check_blocks(work.problem, placement, max_block_);

    std::vector<PeakValue> owners;
    std::vector<std::pair<int32_t, int32_t>> steps;
    const std::vector<int32_t> first_value = find_first_values();
    size_t next = 0;
    auto take_offset = [&] {
      const int64_t unit = work.unit_of_value[next];
      return placement.offsets[unit] + work.delta_of_value[next++];
    };
    for (size_t i = 0; i < lowered_.storages.size(); ++i) {
      Storage& storage = lowered_.storages[i];
      if (storage.segment != Segment::kWork) continue;
      storage.offset_bytes = take_offset();
      const ProgramValue& value = program().values[first_value[i]];
      owners.push_back({value.name, value.source, storage.size_bytes});
      // From the whole's first step on, a part's bytes are the whole's.
      const int32_t last = storage.part_of < 0 ? storage.last_step
                                               : lowered_.storages[storage.part_of].first_step - 1;
      steps.emplace_back(storage.first_step, std::min(storage.last_step, last));
    }
    for (size_t i = 0; i < program().instructions.size(); ++i) {
      Instruction& instruction = program().instructions[i];
      if (instruction.scratch_bytes == 0) continue;
      instruction.scratch_offset_bytes = take_offset();
      owners.push_back(
          {"scratch of " + instruction.kernel, instruction.source, instruction.scratch_bytes});
      steps.emplace_back(static_cast<int32_t>(i), static_cast<int32_t>(i));
    }

    SegmentPlan& segment = plan().segment(Segment::kWork);
    segment.size_bytes = placement.height_bytes;
    segment.lower_bound_bytes = placement.lower_bound_bytes;
    segment.optimal = placement.optimal;
    describe_peak(static_cast<int32_t>(placement.peak_step), owners, steps);
  }

  void describe_peak(int32_t peak, const std::vector<PeakValue>& owners,
                     const std::vector<std::pair<int32_t, int32_t>>& steps) {
    plan().peak_step = peak;
    if (peak < static_cast<int32_t>(program().instructions.size())) {
      plan().peak_source = program().instructions[peak].source;
    }
    for (size_t i = 0; i < owners.size(); ++i) {
      if (steps[i].first <= peak && peak <= steps[i].second && owners[i].size_bytes > 0) {
        plan().peak_values.push_back(owners[i]);
      }
    }
    std::stable_sort(
        plan().peak_values.begin(), plan().peak_values.end(),
        [](const PeakValue& a, const PeakValue& b) { return a.size_bytes > b.size_bytes; });
  }

  std::vector<int32_t> find_first_values() const {
    std::vector<int32_t> first(lowered_.storages.size(), -1);
    for (size_t i = lowered_.storage_of_value.size(); i-- > 0;) {
      first[lowered_.storage_of_value[i]] = static_cast<int32_t>(i);
    }
    return first;
  }

  void lay_out_arena() {
    int64_t end = 0;
    for (Segment segment : {Segment::kState, Segment::kIo, Segment::kWork}) {
      plan().base_bytes[static_cast<int>(segment)] = end;
      end = align_up(checked_add(end, plan().segment(segment).size_bytes), kPageBytes);
    }
    plan().arena_bytes = end;
    list_blocks();
  }

  // A block ends with the last byte in it that something lies in.
  void list_blocks() {
    std::map<std::pair<Segment, int64_t>, int64_t> ends;
    const auto add = [&](Segment segment, int64_t offset, int64_t size) {
      if (size == 0 || segment == Segment::kWeights) return;
      int64_t& end = ends[{segment, offset / max_block_}];
      end = std::max(end, offset + size);
    };
    for (const Storage& storage : lowered_.storages) {
      add(storage.segment, storage.offset_bytes, storage.size_bytes);
    }
    for (const Instruction& instruction : program().instructions) {
      add(Segment::kWork, instruction.scratch_offset_bytes, instruction.scratch_bytes);
    }
    for (const auto& [key, end] : ends) {
      const auto& [segment, index] = key;
      plan().blocks.push_back({segment, index * max_block_, end - index * max_block_});
    }
  }

  void write_values() {
    const std::vector<int32_t> first_value = find_first_values();
    for (size_t i = 0; i < program().values.size(); ++i) {
      ProgramValue& value = program().values[i];
      const Storage& storage = lowered_.storages[lowered_.storage_of_value[i]];
      value.segment = storage.segment;
      value.offset_bytes = storage.offset_bytes;
      value.size_bytes = storage.size_bytes;
      value.first_step = storage.first_step;
      value.last_step = storage.last_step;
      if (storage.part_of >= 0) value.part_of = first_value[storage.part_of];
    }
  }

  struct ByteRange {
    Segment segment;
    int64_t begin, end;
    bool overlaps(const ByteRange& other) const {
      return segment == other.segment && begin < other.end && other.begin < end;
    }
  };

  ByteRange range_of(int32_t value) const {
    const Storage& storage = lowered_.storages[lowered_.storage_of_value[value]];
    return {storage.segment, storage.offset_bytes, storage.offset_bytes + storage.size_bytes};
  }

  // A barrier stands before an instruction only when it reads what was written since the last one,
  // or writes what was read or written since.
  void place_barriers() {
    std::vector<ByteRange> reads, writes;
    auto touches = [](const std::vector<ByteRange>& ranges, const ByteRange& range) {
      return std::any_of(ranges.begin(), ranges.end(),
                         [&](const ByteRange& other) { return other.overlaps(range); });
    };
    for (Instruction& instruction : program().instructions) {
      std::vector<ByteRange> new_reads, new_writes;
      for (int32_t input : instruction.inputs) {
        if (range_of(input).segment != Segment::kWeights) new_reads.push_back(range_of(input));
      }
      for (int32_t output : instruction.outputs) new_writes.push_back(range_of(output));
      if (instruction.scratch_bytes > 0) {
        const int64_t begin = instruction.scratch_offset_bytes;
        new_writes.push_back({Segment::kWork, begin, begin + instruction.scratch_bytes});
      }
      bool conflict = false;
      for (const ByteRange& range : new_reads) conflict = conflict || touches(writes, range);
      for (const ByteRange& range : new_writes) {
        conflict = conflict || touches(writes, range) || touches(reads, range);
      }
      instruction.needs_barrier = conflict;
      if (conflict) {
        reads.clear();
        writes.clear();
      }
      reads.insert(reads.end(), new_reads.begin(), new_reads.end());
      writes.insert(writes.end(), new_writes.begin(), new_writes.end());
    }
  }

  Lowered lowered_;
  const int64_t alignment_;
  const int64_t max_block_;
  const int64_t effort_;
};

}  // namespace

int64_t find_work_bound(const Lowered& lowered, int64_t alignment_bytes) {
  return memory::find_lower_bound(make_work_problem(lowered, alignment_bytes).problem).bytes;
}

Program plan_memory(Lowered lowered, const Target& target, int64_t effort_nodes) {
  return Planner(std::move(lowered), target, effort_nodes).run();
}

}  // namespace rlx
