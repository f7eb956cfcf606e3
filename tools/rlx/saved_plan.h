// A plan as JSON: what `rlx plan --json` prints, `--check` proves again and `--diff` compares with.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "program/slots.h"
#include "rlx/plan.h"

namespace rlx::cli {

struct SavedPlan {
  PlanReport report;
  std::vector<PlanSlot> slots;
};

nlohmann::ordered_json to_json(const SavedPlan& plan);

// Throws kCorruptData naming the file and the key.
SavedPlan read_saved_plan(const std::string& path);

// Proves a saved plan again: places inside their segments, none overlapping while both are alive,
// the stated sizes and lower bound equal to what follows from the places. Throws kCorruptData.
void check_saved_plan(const SavedPlan& plan);

// Segments that changed, and groups of values that grew or shrank, a line each; empty when equal.
std::string describe_difference(const SavedPlan& old_plan, const SavedPlan& new_plan);

}  // namespace rlx::cli
