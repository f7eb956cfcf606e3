// The places of a program, one by one: each run of bytes that a value (with its views and in-place
// results) or a kernel's scratch occupies, and when. What reports, pictures and checks of a plan
// are made from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "program/program.h"

namespace rlx {

struct PlanSlot {
  std::string name;    // of the value that opens the place; "scratch of KERNEL"
  std::string source;  // where the model has it
  std::string op;
  std::string type;  // "f32[1, tokens, 768]"; empty for scratch
  Segment segment = Segment::kWork;
  int64_t offset_bytes = 0;
  int64_t size_bytes = 0;
  int32_t first_step = 0, last_step = 0;  // inclusive; all steps outside work
};

// Places of more than zero bytes in state, io and work, in order of segment, then of first step.
std::vector<PlanSlot> list_slots(const Program& program);

// Places of one op and type, added up: what a model's memory consists of.
struct SlotGroup {
  std::string op, type;
  int64_t count = 0, bytes = 0;
};

// The `most` largest groups among the places of work; with `at_step` >= 0 only of those alive then.
std::vector<SlotGroup> list_largest_groups(const std::vector<PlanSlot>& slots, size_t most,
                                           int32_t at_step = -1);

// The work segment's places as a saved plan, and the proof of one: no two places that are alive at
// one step share a byte. Throws kCorruptData naming the two.
void check_slots(const std::vector<PlanSlot>& slots);

}  // namespace rlx
