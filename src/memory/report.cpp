#include "memory/report.h"

#include <fmt/format.h>

#include "base/group_digits.h"

namespace rlx::memory {

double find_gap_percent(int64_t height_bytes, int64_t lower_bound_bytes) {
  if (lower_bound_bytes == 0) return 0;
  return 100.0 * static_cast<double>(height_bytes - lower_bound_bytes) /
         static_cast<double>(lower_bound_bytes);
}

std::string format_summary(const Placement& placement, double seconds) {
  std::string text;
  text += fmt::format("height       {} B\n", group_digits(placement.height_bytes));
  text += fmt::format("lower bound  {} B\n", group_digits(placement.lower_bound_bytes));
  text += fmt::format("gap          {:.3f} %\n",
                      find_gap_percent(placement.height_bytes, placement.lower_bound_bytes));
  text += fmt::format("optimal      {}\n", placement.optimal ? "yes" : "not proven");
  text += fmt::format("peak step    {}\n", placement.peak_step);
  text += fmt::format("method       {}\n", placement.method);
  if (seconds >= 0) text += fmt::format("seconds      {:.4f}\n", seconds);
  return text;
}

}  // namespace rlx::memory
