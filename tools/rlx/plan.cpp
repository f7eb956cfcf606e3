#include <cstdio>
#include <nlohmann/json.hpp>

#include "api/compiled_model.h"
#include "base/error.h"
#include "commands.h"

namespace rlx::cli {
namespace {

using nlohmann::ordered_json;

ordered_json to_json(const PlanReport& report) {
  ordered_json json;
  for (const PlanSegment& segment : report.segments) {
    json["segments"][segment.name] = {{"bytes", segment.size_bytes},
                                      {"lower_bound", segment.lower_bound_bytes},
                                      {"optimal", segment.optimal}};
  }
  json["arena_bytes"] = report.arena_bytes;
  json["mapped_weight_bytes"] = report.mapped_weight_bytes;
  json["weight_files"] = report.weight_files;
  json["state"] = report.state_description;
  json["steps"] = report.num_steps;
  json["peak"]["step"] = report.peak_step;
  json["peak"]["source"] = report.peak_source;
  json["peak"]["values"] = ordered_json::array();
  for (const PlanPeakValue& value : report.peak_values) {
    json["peak"]["values"].push_back(
        {{"name", value.name}, {"source", value.source}, {"bytes", value.size_bytes}});
  }
  return json;
}

}  // namespace

int plan(const PlanOptions& options) {
  const LanguageModelOptions load = make_load_options(options.model, DType::kF16);
  const PlanReport report = LanguageModel::plan(options.model.model, load);
  if (options.json) {
    fmt::print("{}\n", to_json(report).dump(2));
  } else {
    fmt::print("{}", to_string(report));
  }
  return 0;
}

}  // namespace rlx::cli
