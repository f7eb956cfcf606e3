#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "api/compiled_model.h"
#include "base/error.h"
#include "base/group_digits.h"
#include "commands.h"
#include "memory/check_placement.h"
#include "memory/csv.h"
#include "memory/report.h"
#include "memory/svg.h"
#include "rlx/budget.h"
#include "saved_plan.h"

namespace rlx::cli {
namespace {

SavedPlan make_plan(const std::string& path, const LanguageModelOptions& load, int64_t effort) {
  CompileOptions compile_options;
  compile_options.plan_effort = effort;
  const CompiledModel model = compile_model(ModelFile::open(path), make_graph_options(load),
                                            make_target_options(load), compile_options);
  return {model.report, list_slots(*model.program)};
}

memory::PictureInput make_picture(const std::string& title, const SavedPlan& plan) {
  memory::PictureInput picture;
  picture.title = title;
  picture.num_steps = plan.report.num_steps;
  picture.peak_step = plan.report.peak_step;
  for (const char* name : {"state", "io", "work"}) {
    const PlanSegment& segment = plan.report.segment(name);
    picture.bands.push_back({segment.name, segment.size_bytes,
                             segment.name == "work" ? segment.lower_bound_bytes : -1});
  }
  for (const PlanSlot& slot : plan.slots) {
    memory::PictureValue value;
    value.name = slot.source.empty() ? slot.name : fmt::format("{} ({})", slot.name, slot.source);
    value.op = slot.op;
    value.shape = slot.type;
    value.band = static_cast<int32_t>(slot.segment) - static_cast<int32_t>(Segment::kState);
    value.offset_bytes = slot.offset_bytes;
    value.size_bytes = slot.size_bytes;
    value.start = slot.first_step;
    value.end = slot.last_step + 1;
    picture.values.push_back(std::move(value));
  }
  return picture;
}

void print_groups(const char* title, const std::vector<SlotGroup>& groups) {
  fmt::print("{}\n", title);
  for (const SlotGroup& group : groups) {
    fmt::print("{:>16} B {:>6} x {} {}\n", group_digits(group.bytes), group.count, group.op,
               group.type);
  }
}

void print_top(const SavedPlan& plan, size_t most) {
  int64_t bytes = 0, count = 0;
  for (const PlanSlot& slot : plan.slots) {
    if (slot.segment != Segment::kWork) continue;
    bytes += slot.size_bytes;
    ++count;
  }
  fmt::print("work holds {} places of {} B in all\n", group_digits(count), group_digits(bytes));
  print_groups("largest over all steps", list_largest_groups(plan.slots, most));
  print_groups("largest at the peak",
               list_largest_groups(plan.slots, most, static_cast<int32_t>(plan.report.peak_step)));
}

void print_why(const std::string& path, const LanguageModelOptions& load, const SavedPlan& plan) {
  fmt::print("alive at step {} of {}{}\n", plan.report.peak_step, plan.report.num_steps,
             plan.report.peak_source.empty() ? "" : " (" + plan.report.peak_source + ")");
  for (const PlanPeakValue& value : plan.report.peak_values) {
    fmt::print("{:>16} B {}{}\n", group_digits(value.size_bytes), value.name,
               value.source.empty() ? "" : " (" + value.source + ")");
  }
  fmt::print("what would make it smaller, each planned again\n");
  for (const PlanLever& lever : list_plan_levers(path, load)) {
    fmt::print("{:>16} B less: {}{}\n", group_digits(lever.saved_bytes), lever.description,
               lever.changes_results ? "" : " (results stay the same)");
  }
}

int plan_csv(const PlanOptions& options) {
  memory::CsvProblem csv = memory::read_csv(options.model.model);
  for (memory::Unit& unit : csv.problem.units) {
    unit.alignment = std::max(unit.alignment, options.alignment);
  }
  memory::PlaceOptions place;
  place.capacity_bytes = options.capacity;
  place.effort_nodes = options.plan_effort;
  place.seconds = options.seconds;
  const auto start = std::chrono::steady_clock::now();
  const memory::Placement placement = memory::place(csv.problem, place);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  memory::check_placement(csv.problem, placement);
  if (!options.out.empty()) write_file(options.out, memory::write_csv(csv, placement));
  if (options.json) {
    nlohmann::ordered_json json;
    json["height"] = placement.height_bytes;
    json["lower_bound"] = placement.lower_bound_bytes;
    json["optimal"] = placement.optimal;
    json["method"] = placement.method;
    json["seconds"] = seconds;
    fmt::print("{}\n", json.dump(2));
  } else {
    fmt::print("{}", memory::format_summary(placement, seconds));
  }
  if (options.capacity >= 0 && placement.height_bytes > options.capacity) {
    fmt::print(stderr, "rlx: error: {}: The plan of {} B does not fit into {} B.\n",
               options.model.model, group_digits(placement.height_bytes),
               group_digits(options.capacity));
    return 1;
  }
  return 0;
}

int check_plan(const PlanOptions& options) {
  const SavedPlan plan = read_saved_plan(options.model.model);
  with_context(options.model.model, [&] { check_saved_plan(plan); });
  fmt::print("{} places in {} steps: no two overlap, {} B of work{}\n", plan.slots.size(),
             plan.report.num_steps, group_digits(plan.report.segment("work").size_bytes),
             plan.report.segment("work").optimal ? ", optimal" : "");
  return 0;
}

int diff_plan(const PlanOptions& options, const LanguageModelOptions& load, const SavedPlan& plan) {
  const SavedPlan other = options.diff.ends_with(".json")
                              ? read_saved_plan(options.diff)
                              : make_plan(options.diff, load, options.plan_effort);
  const std::string difference = describe_difference(other, plan);
  fmt::print("{}", difference.empty() ? "no difference\n" : difference);
  const int64_t grown = total_bytes(plan.report) - total_bytes(other.report);
  if (!options.fail_if_grows || grown <= 0) return 0;
  fmt::print(stderr, "rlx: error: {}: The plan takes {} B more than {}.\n", options.model.model,
             group_digits(grown), options.diff);
  return 1;
}

}  // namespace

int plan(const PlanOptions& options) {
  const std::string& path = options.model.model;
  if (options.check) return check_plan(options);
  if (path.ends_with(".csv")) return plan_csv(options);
  const LanguageModelOptions load =
      fit_budget(options.model, make_load_options(options.model, DType::kF16));
  const SavedPlan plan = make_plan(path, load, options.plan_effort);
  if (!options.svg.empty()) write_file(options.svg, memory::render_svg(make_picture(path, plan)));
  if (!options.html.empty())
    write_file(options.html, memory::render_html(make_picture(path, plan)));
  if (!options.diff.empty()) return diff_plan(options, load, plan);
  if (options.json) {
    fmt::print("{}\n", to_json(plan).dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    return 0;
  }
  fmt::print("{}", to_string(plan.report));
  if (options.top > 0) print_top(plan, static_cast<size_t>(options.top));
  if (options.why) print_why(path, load, plan);
  return 0;
}

}  // namespace rlx::cli
