#include <algorithm>

#include "base/error.h"
#include "base/group_digits.h"
#include "rlx/plan.h"
#include "rlx/version.h"

namespace rlx {

const char* version() { return RLX_VERSION; }

const PlanSegment& PlanReport::segment(const std::string& name) const {
  for (const PlanSegment& segment : segments) {
    if (segment.name == name) return segment;
  }
  throw_error(ErrorCode::kNotFound, "There is no segment '{}'.", name);
}

namespace {

std::string describe_segment(const PlanReport& report, const PlanSegment& segment) {
  if (segment.name == "weights") {
    if (report.weight_files.empty()) return "";
    std::string files = report.weight_files[0];
    if (report.weight_files.size() > 1) {
      files += fmt::format(" and {} more", report.weight_files.size() - 1);
    }
    const int64_t constants =
        segment.size_bytes - report.mapped_weight_bytes - report.assembled_weight_bytes;
    std::string text = "mapped from " + files;
    if (report.assembled_weight_bytes > 0) {
      text += fmt::format(", {} B assembled", group_digits(report.assembled_weight_bytes));
    }
    if (constants > 0) text += fmt::format(", and {} B of constants", group_digits(constants));
    return text;
  }
  if (segment.name == "state") return report.state_description;
  if (segment.name != "work") return "";
  const double gap = segment.lower_bound_bytes > 0
                         ? 100.0 * (segment.size_bytes - segment.lower_bound_bytes) /
                               static_cast<double>(segment.lower_bound_bytes)
                         : 0.0;
  std::string text =
      fmt::format("bound {} B, gap {:.2f} %{}", group_digits(segment.lower_bound_bytes), gap,
                  segment.optimal ? ", optimal" : "");
  if (report.unordered_bound_bytes > segment.lower_bound_bytes) {
    text += fmt::format("; at least {} B in the model's own order",
                        group_digits(report.unordered_bound_bytes));
  }
  return text;
}

}  // namespace

std::string to_string(const PlanReport& report) {
  std::string text;
  for (const PlanSegment& segment : report.segments) {
    const std::string note = describe_segment(report, segment);
    text += fmt::format("{:<8}{:>16} B{}{}\n", segment.name, group_digits(segment.size_bytes),
                        note.empty() ? "" : "   ", note);
  }
  const auto num_segments =
      std::count_if(report.segments.begin(), report.segments.end(), [](const PlanSegment& segment) {
        return segment.name != "weights" && segment.size_bytes > 0;
      });
  const bool has_blocks = static_cast<ptrdiff_t>(report.blocks.size()) > num_segments;
  text += fmt::format(
      "{:<8}{:>16} B   {}: state, io and work\n", "arena", group_digits(report.arena_bytes),
      has_blocks ? fmt::format("{} blocks", report.blocks.size()) : "one allocation");
  if (has_blocks) {
    text += "blocks  ";
    for (size_t i = 0; i < report.blocks.size(); ++i) {
      text += fmt::format("{} {} {} B", i == 0 ? "" : ",", report.blocks[i].segment,
                          group_digits(report.blocks[i].size_bytes));
    }
    text += "\n";
  }
  text += fmt::format("peak at step {} of {}{}:", report.peak_step, report.num_steps,
                      report.peak_source.empty() ? "" : " (" + report.peak_source + ")");
  constexpr size_t kShown = 6;
  for (size_t i = 0; i < report.peak_values.size() && i < kShown; ++i) {
    const PlanPeakValue& value = report.peak_values[i];
    text +=
        fmt::format("{} {} {} B", i == 0 ? "" : ",", value.name, group_digits(value.size_bytes));
  }
  if (report.peak_values.size() > kShown) {
    text += fmt::format(", and {} more", report.peak_values.size() - kShown);
  }
  return text + "\n";
}

}  // namespace rlx
