#include "saved_plan.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/group_digits.h"
#include "base/mapped_file.h"

namespace rlx::cli {

using nlohmann::json;
using nlohmann::ordered_json;

ordered_json to_json(const SavedPlan& plan) {
  const PlanReport& report = plan.report;
  ordered_json out;
  for (const PlanSegment& segment : report.segments) {
    out["segments"][segment.name] = {{"bytes", segment.size_bytes},
                                     {"lower_bound", segment.lower_bound_bytes},
                                     {"optimal", segment.optimal}};
  }
  out["arena_bytes"] = report.arena_bytes;
  out["blocks"] = ordered_json::array();
  for (const PlanBlock& block : report.blocks) {
    out["blocks"].push_back(
        {{"segment", block.segment}, {"begin", block.begin_bytes}, {"bytes", block.size_bytes}});
  }
  out["mapped_weight_bytes"] = report.mapped_weight_bytes;
  out["assembled_weight_bytes"] = report.assembled_weight_bytes;
  out["weight_files"] = report.weight_files;
  out["state"] = report.state_description;
  out["work_bound_in_model_order"] = report.unordered_bound_bytes;
  out["steps"] = report.num_steps;
  out["peak"]["step"] = report.peak_step;
  out["peak"]["source"] = report.peak_source;
  out["peak"]["values"] = ordered_json::array();
  for (const PlanPeakValue& value : report.peak_values) {
    out["peak"]["values"].push_back(
        {{"name", value.name}, {"source", value.source}, {"bytes", value.size_bytes}});
  }
  out["slots"] = ordered_json::array();
  for (const PlanSlot& slot : plan.slots) {
    out["slots"].push_back({{"name", slot.name},
                            {"source", slot.source},
                            {"op", slot.op},
                            {"type", slot.type},
                            {"segment", to_string(slot.segment)},
                            {"offset", slot.offset_bytes},
                            {"bytes", slot.size_bytes},
                            {"first_step", slot.first_step},
                            {"last_step", slot.last_step}});
  }
  return out;
}

namespace {

Segment find_segment(const std::string& name) {
  for (int i = 0; i < kNumSegments; ++i) {
    if (to_string(static_cast<Segment>(i)) == name) return static_cast<Segment>(i);
  }
  throw_error(ErrorCode::kCorruptData, "There is no segment '{}'.", name);
}

SavedPlan parse_saved_plan(const json& in) {
  SavedPlan plan;
  for (int i = 0; i < kNumSegments; ++i) {
    const std::string name(to_string(static_cast<Segment>(i)));
    const json& segment = in.at("segments").at(name);
    plan.report.segments.push_back({name, segment.at("bytes").get<int64_t>(),
                                    segment.at("lower_bound").get<int64_t>(),
                                    segment.at("optimal").get<bool>()});
  }
  plan.report.arena_bytes = in.at("arena_bytes").get<int64_t>();
  plan.report.num_steps = in.at("steps").get<int64_t>();
  for (const json& slot : in.at("slots")) {
    plan.slots.push_back({slot.at("name").get<std::string>(), slot.at("source").get<std::string>(),
                          slot.at("op").get<std::string>(), slot.at("type").get<std::string>(),
                          find_segment(slot.at("segment").get<std::string>()),
                          slot.at("offset").get<int64_t>(), slot.at("bytes").get<int64_t>(),
                          slot.at("first_step").get<int32_t>(),
                          slot.at("last_step").get<int32_t>()});
  }
  return plan;
}

}  // namespace

SavedPlan read_saved_plan(const std::string& path) {
  const MappedFile file(path);
  const char* begin = reinterpret_cast<const char*>(file.bytes().data());
  try {
    return with_context(
        path, [&] { return parse_saved_plan(json::parse(begin, begin + file.size_bytes())); });
  } catch (const json::exception& error) {
    throw_error(ErrorCode::kCorruptData, "{}: The file is not a saved plan: {}.", path,
                error.what());
  }
}

namespace {

// The largest sum of bytes alive at one step among the places of work, as a plan states its bound:
// every size counts in whole multiples of the alignment.
int64_t find_bound(const std::vector<PlanSlot>& slots, int64_t alignment) {
  std::map<int64_t, int64_t> changes;
  for (const PlanSlot& slot : slots) {
    if (slot.segment != Segment::kWork) continue;
    const int64_t bytes = (slot.size_bytes + alignment - 1) / alignment * alignment;
    changes[slot.first_step] += bytes;
    changes[int64_t{slot.last_step} + 1] -= bytes;
  }
  int64_t alive = 0, most = 0;
  for (const auto& [step, change] : changes) most = std::max(most, alive += change);
  return most;
}

}  // namespace

void check_saved_plan(const SavedPlan& plan) {
  for (const PlanSlot& slot : plan.slots) {
    const PlanSegment& segment = plan.report.segment(std::string(to_string(slot.segment)));
    if (slot.offset_bytes < 0 || slot.size_bytes < 0 || slot.offset_bytes > segment.size_bytes ||
        slot.size_bytes > segment.size_bytes - slot.offset_bytes) {
      throw_error(ErrorCode::kCorruptData,
                  "'{}' (bytes {} + {}) lies outside its segment {} of {} B.", slot.name,
                  slot.offset_bytes, slot.size_bytes, segment.name, segment.size_bytes);
    }
  }
  check_slots(plan.slots);
  constexpr int64_t kAlignment = 64;
  const PlanSegment& work = plan.report.segment("work");
  const int64_t bound = find_bound(plan.slots, kAlignment);
  if (bound > work.size_bytes || work.lower_bound_bytes < bound ||
      work.lower_bound_bytes > work.size_bytes ||
      work.optimal != (work.lower_bound_bytes == work.size_bytes)) {
    throw_error(ErrorCode::kCorruptData,
                "The plan states {} B of work with a bound of {} B, but its places need {} B.",
                work.size_bytes, work.lower_bound_bytes, bound);
  }
}

std::string describe_difference(const SavedPlan& old_plan, const SavedPlan& new_plan) {
  std::string text;
  for (size_t i = 0; i < new_plan.report.segments.size(); ++i) {
    const PlanSegment& before = old_plan.report.segments[i];
    const PlanSegment& after = new_plan.report.segments[i];
    if (before.size_bytes == after.size_bytes) continue;
    text +=
        fmt::format("{:<8}{:>16} B -> {} B ({}{})\n", after.name, group_digits(before.size_bytes),
                    group_digits(after.size_bytes), after.size_bytes > before.size_bytes ? "+" : "",
                    group_digits(after.size_bytes - before.size_bytes));
  }
  struct Change {
    int64_t before = 0, after = 0;
  };
  std::map<std::pair<std::string, std::string>, Change> groups;
  for (const SlotGroup& g : list_largest_groups(old_plan.slots, SIZE_MAX)) {
    groups[{g.op, g.type}].before = g.bytes;
  }
  for (const SlotGroup& g : list_largest_groups(new_plan.slots, SIZE_MAX)) {
    groups[{g.op, g.type}].after = g.bytes;
  }
  for (const auto& [key, change] : groups) {
    if (change.before == change.after) continue;
    text += fmt::format("  {} {}: {} B -> {} B\n", key.first, key.second,
                        group_digits(change.before), group_digits(change.after));
  }
  return text;
}

}  // namespace rlx::cli
