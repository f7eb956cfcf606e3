#include "program/slots.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/error.h"

namespace rlx {

std::vector<PlanSlot> list_slots(const Program& program) {
  const int32_t last = std::max<int32_t>(0, static_cast<int32_t>(program.instructions.size()) - 1);
  std::vector<PlanSlot> slots;
  // Values that share a storage have the same place and steps; the first stands for all.
  std::map<std::tuple<Segment, int64_t, int64_t, int32_t, int32_t>, bool> seen;
  for (const ProgramValue& value : program.values) {
    if (value.segment == Segment::kWeights || value.size_bytes == 0) continue;
    const bool reused = value.segment == Segment::kWork;
    PlanSlot slot{value.name,
                  value.source,
                  value.op,
                  to_string(value.type),
                  value.segment,
                  value.offset_bytes,
                  value.size_bytes,
                  reused ? value.first_step : 0,
                  reused ? value.last_step : last};
    // From the whole's first step on, a part's bytes are the whole's.
    if (value.part_of >= 0) {
      slot.last_step = std::min(slot.last_step, program.values[value.part_of].first_step - 1);
      if (!reused || slot.last_step < slot.first_step) continue;
    }
    const auto place = std::make_tuple(slot.segment, slot.offset_bytes, slot.size_bytes,
                                       slot.first_step, slot.last_step);
    if (seen.emplace(place, true).second) slots.push_back(std::move(slot));
  }
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    const Instruction& instruction = program.instructions[i];
    if (instruction.scratch_bytes == 0) continue;
    const int32_t step = static_cast<int32_t>(i);
    slots.push_back({"scratch of " + instruction.kernel, instruction.source, "scratch", "",
                     Segment::kWork, instruction.scratch_offset_bytes, instruction.scratch_bytes,
                     step, step});
  }
  std::stable_sort(slots.begin(), slots.end(), [](const PlanSlot& a, const PlanSlot& b) {
    return std::tie(a.segment, a.first_step) < std::tie(b.segment, b.first_step);
  });
  return slots;
}

std::vector<SlotGroup> list_largest_groups(const std::vector<PlanSlot>& slots, size_t most,
                                           int32_t at_step) {
  std::map<std::pair<std::string, std::string>, SlotGroup> groups;
  for (const PlanSlot& slot : slots) {
    if (slot.segment != Segment::kWork) continue;
    if (at_step >= 0 && (at_step < slot.first_step || at_step > slot.last_step)) continue;
    SlotGroup& group = groups[{slot.op, slot.type}];
    group.op = slot.op;
    group.type = slot.type;
    ++group.count;
    group.bytes += slot.size_bytes;
  }
  std::vector<SlotGroup> sorted;
  for (auto& [key, group] : groups) sorted.push_back(std::move(group));
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const SlotGroup& a, const SlotGroup& b) { return a.bytes > b.bytes; });
  if (sorted.size() > most) sorted.resize(most);
  return sorted;
}

void check_slots(const std::vector<PlanSlot>& slots) {
  // A sweep over steps: places that begin or end, with those alive kept by offset. Two neighbours
  // in that order overlap if any two do.
  struct Event {
    int64_t step;
    bool begins;
    const PlanSlot* slot;
  };
  std::vector<Event> events;
  for (const PlanSlot& slot : slots) {
    if (slot.size_bytes < 0 || slot.offset_bytes < 0 || slot.last_step < slot.first_step) {
      throw_error(ErrorCode::kCorruptData,
                  "'{}' has {} bytes at offset {} in steps {} to {}, which is no place.", slot.name,
                  slot.size_bytes, slot.offset_bytes, slot.first_step, slot.last_step);
    }
    if (slot.segment != Segment::kWork || slot.size_bytes == 0) continue;
    events.push_back({slot.first_step, true, &slot});
    events.push_back({int64_t{slot.last_step} + 1, false, &slot});
  }
  std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return std::tie(a.step, a.begins) < std::tie(b.step, b.begins);  // ends come first
  });
  std::map<int64_t, const PlanSlot*> alive;  // by offset
  const auto check_pair = [](const PlanSlot& low, const PlanSlot& high) {
    if (low.offset_bytes + low.size_bytes <= high.offset_bytes) return;
    throw_error(ErrorCode::kCorruptData,
                "'{}' (bytes {} to {}, steps {} to {}) and '{}' (bytes {} to {}, steps {} to {}) "
                "overlap.",
                low.name, low.offset_bytes, low.offset_bytes + low.size_bytes, low.first_step,
                low.last_step, high.name, high.offset_bytes, high.offset_bytes + high.size_bytes,
                high.first_step, high.last_step);
  };
  for (const Event& event : events) {
    if (!event.begins) {
      alive.erase(event.slot->offset_bytes);
      continue;
    }
    const auto [place, added] = alive.emplace(event.slot->offset_bytes, event.slot);
    if (!added) check_pair(*place->second, *event.slot);
    if (place != alive.begin()) check_pair(*std::prev(place)->second, *event.slot);
    if (std::next(place) != alive.end()) check_pair(*event.slot, *std::next(place)->second);
  }
}

}  // namespace rlx
