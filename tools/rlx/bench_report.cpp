#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "bench.h"
#include "commands.h"
#include "rlx/version.h"

namespace rlx::cli {
namespace {

constexpr double kMib = 1024.0 * 1024.0;

double share(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

std::string find_processor_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) {
      return line.substr(colon + 2);
    }
  }
  return "unknown";
}

int64_t count_file_bytes(const std::string& model) {
  if (!std::filesystem::is_directory(model)) {
    return static_cast<int64_t>(std::filesystem::file_size(model));
  }
  int64_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(model)) {
    if (entry.path().extension() == ".safetensors") {
      bytes += static_cast<int64_t>(entry.file_size());
    }
  }
  return bytes;
}

std::string print_spread(const Spread& spread, double factor, int digits) {
  return fmt::format("{:.{}f} ({:.{}f} to {:.{}f})", factor * spread.median, digits,
                     factor * spread.least, digits, factor * spread.most, digits);
}

// What was spent on the same kind of step, over all runs of a phase.
struct Cost {
  int64_t calls = 0;
  double seconds = 0;
  double floor_bytes = 0;  // weights and caches: what cannot come from a cache
  double all_bytes = 0;
  double flops = 0;
};

// The time of step i: from when the first thread begins it to when it begins the next one.
double step_seconds(const ProfiledRun& run, size_t i) {
  const int64_t begin = run.steps[i].threads[0].begin_ns;
  const int64_t end = i + 1 < run.steps.size() ? run.steps[i + 1].threads[0].begin_ns : run.end_ns;
  return 1e-9 * static_cast<double>(end - begin);
}

using Costs = std::map<std::string, Cost>;

Costs sum_costs(const BenchResult& result, const std::string& phase, bool by_kernel) {
  Costs costs;
  for (const ProfiledRun& run : result.profile) {
    if (run.phase != phase) continue;
    for (size_t i = 0; i < run.steps.size(); ++i) {
      const ProfiledStep& step = run.steps[i];
      std::string name = by_kernel ? step.kernel : step.op;
      if (by_kernel && !step.weight_dtype.empty()) name += " " + step.weight_dtype;
      Cost& cost = costs[name];
      ++cost.calls;
      cost.seconds += step_seconds(run, i);
      cost.floor_bytes += static_cast<double>(step.weight_bytes + step.state_bytes);
      cost.all_bytes += static_cast<double>(step.bytes());
      cost.flops += static_cast<double>(step.flops);
    }
  }
  return costs;
}

std::string print_costs(const std::string& title, const Costs& costs,
                        const cpu::MachinePeak& peak) {
  std::vector<std::pair<std::string, Cost>> rows(costs.begin(), costs.end());
  std::sort(rows.begin(), rows.end(),
            [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
  double total = 0;
  for (const auto& [name, cost] : rows) total += cost.seconds;
  std::string text = fmt::format("{:<30} {:>7} {:>9} {:>6} {:>10} {:>7} {:>9} {:>8} {:>6}\n", title,
                                 "calls", "ms", "time", "MB", "GB/s", "GFLOP", "GFLOP/s", "roof");
  for (const auto& [name, cost] : rows) {
    const double floor_seconds =
        std::max(cost.floor_bytes / (peak.read_gb_s * 1e9), cost.flops / (peak.gflop_s * 1e9));
    text += fmt::format(
        "{:<30} {:>7} {:>9.2f} {:>5.1f}% {:>10.2f} {:>7.2f} {:>9.3f} {:>8.1f} {:>5.0f}%\n", name,
        cost.calls, 1e3 * cost.seconds, share(cost.seconds, total), 1e-6 * cost.all_bytes,
        1e-9 * cost.all_bytes / cost.seconds, 1e-9 * cost.flops, 1e-9 * cost.flops / cost.seconds,
        share(floor_seconds, cost.seconds));
  }
  return text;
}

nlohmann::json spread_json(const Spread& spread) {
  return {{"median", spread.median},
          {"least", spread.least},
          {"most", spread.most},
          {"samples", spread.samples}};
}

}  // namespace

std::string print_bench(const BenchOptions& options, const std::vector<BenchResult>& results) {
  std::string text = fmt::format("{}, {:.1f} MiB\n{}\n\n", options.model.model,
                                 static_cast<double>(count_file_bytes(options.model.model)) / kMib,
                                 find_processor_name());
  text +=
      fmt::format("{:>7} {:<12} {:<27} {:>8} {:>6} {:>6} {:>8} {:>8} {:>6}\n", "threads", "test",
                  "tokens/s", "MB/token", "GB/s", "share", "GFLOP/s", "of peak", "share");
  for (const BenchResult& result : results) {
    for (const BenchPhase& phase : result.phases) {
      text += fmt::format(
          "{:>7} {:<12} {:<27} {:>8.1f} {:>6.1f} {:>5.0f}% {:>8.1f} {:>8.1f} {:>5.0f}%\n",
          result.threads, fmt::format("{} {}", phase.name, phase.tokens),
          print_spread(phase.tokens_per_second, 1, 2), 1e-6 * phase.bytes_per_token, phase.gb_s(),
          share(phase.gb_s(), result.peak.read_gb_s), phase.gflop_s(), result.peak.gflop_s,
          share(phase.gflop_s(), result.peak.gflop_s));
    }
  }
  for (const BenchResult& result : results) {
    text += fmt::format("\n{} threads\n", result.threads);
    text += fmt::format("  load              {} ms\n", print_spread(result.load_seconds, 1e3, 1));
    if (result.first_token_seconds > 0) {
      text += fmt::format("  first token       {:.1f} ms\n", 1e3 * result.first_token_seconds);
    }
    text += fmt::format("  arena             {:.1f} MiB\n",
                        static_cast<double>(result.arena_bytes) / kMib);
    text += fmt::format("  peak resident     {:.1f} MiB\n",
                        static_cast<double>(result.peak_resident_bytes) / kMib);
    text += fmt::format("  machine           reads {:.1f} GB/s, multiplies {:.1f} GFLOP/s in f32\n",
                        result.peak.read_gb_s, result.peak.gflop_s);
  }
  return text;
}

std::string print_profile(const BenchResult& result) {
  std::string text = fmt::format(
      "Profile of {} threads. MB and GB/s are all bytes; the roof is the time that reading "
      "weights\n"
      "and caches at {:.1f} GB/s or computing at {:.1f} GFLOP/s would take, as a share of the "
      "time.\n",
      result.threads, result.peak.read_gb_s, result.peak.gflop_s);
  for (const BenchPhase& phase : result.phases) {
    text += "\n" +
            print_costs(phase.name + ", by op", sum_costs(result, phase.name, false), result.peak);
    text += "\n" + print_costs(phase.name + ", by kernel", sum_costs(result, phase.name, true),
                               result.peak);
  }
  return text;
}

std::string bench_json(const BenchOptions& options, const std::vector<BenchResult>& results) {
  nlohmann::json json = {{"program", fmt::format("rlx {}", version())},
                         {"model", options.model.model},
                         {"model_bytes", count_file_bytes(options.model.model)},
                         {"processor", find_processor_name()},
                         {"prompt_tokens", options.prompt},
                         {"generated_tokens", options.generate},
                         {"depth", options.depth},
                         {"repeats", options.repeats},
                         {"results", nlohmann::json::array()}};
  for (const BenchResult& result : results) {
    nlohmann::json one = {{"threads", result.threads},
                          {"load_seconds", spread_json(result.load_seconds)},
                          {"first_token_seconds", result.first_token_seconds},
                          {"arena_bytes", result.arena_bytes},
                          {"peak_resident_bytes", result.peak_resident_bytes},
                          {"read_gb_s", result.peak.read_gb_s},
                          {"peak_gflop_s", result.peak.gflop_s}};
    for (const BenchPhase& phase : result.phases) {
      one[phase.name] = {{"tokens", phase.tokens},
                         {"tokens_per_second", spread_json(phase.tokens_per_second)},
                         {"bytes_per_token", phase.bytes_per_token},
                         {"flops_per_token", phase.flops_per_token},
                         {"gb_s", phase.gb_s()},
                         {"gflop_s", phase.gflop_s()}};
    }
    json["results"].push_back(std::move(one));
  }
  return json.dump(2) + "\n";
}

std::string trace_json(const BenchResult& result) {
  nlohmann::json events = nlohmann::json::array();
  events.push_back(
      {{"name", "process_name"}, {"ph", "M"}, {"pid", 1}, {"args", {{"name", "rlx"}}}});
  for (int thread = 0; thread < result.threads; ++thread) {
    events.push_back({{"name", "thread_name"},
                      {"ph", "M"},
                      {"pid", 1},
                      {"tid", thread},
                      {"args", {{"name", fmt::format("thread {}", thread)}}}});
  }
  int64_t start_ns = std::numeric_limits<int64_t>::max();  // any thread may be the first
  for (const ProfiledStep::Interval& first : result.profile.at(0).steps.at(0).threads) {
    start_ns = std::min(start_ns, first.begin_ns);
  }
  const auto microseconds = [&](int64_t ns) { return 1e-3 * static_cast<double>(ns - start_ns); };
  for (const ProfiledRun& run : result.profile) {
    for (const ProfiledStep& step : run.steps) {
      const nlohmann::json arguments = {{"source", step.source},
                                        {"weights", step.weight_dtype},
                                        {"phase", run.phase},
                                        {"weight_bytes", step.weight_bytes},
                                        {"state_bytes", step.state_bytes},
                                        {"work_bytes", step.work_bytes},
                                        {"flops", step.flops}};
      for (size_t thread = 0; thread < step.threads.size(); ++thread) {
        const ProfiledStep::Interval interval = step.threads[thread];
        events.push_back({{"name", step.kernel},
                          {"cat", step.op},
                          {"ph", "X"},
                          {"pid", 1},
                          {"tid", thread},
                          {"ts", microseconds(interval.begin_ns)},
                          {"dur", 1e-3 * static_cast<double>(interval.end_ns - interval.begin_ns)},
                          {"args", arguments}});
      }
    }
  }
  return nlohmann::json{{"displayTimeUnit", "ns"}, {"traceEvents", std::move(events)}}.dump() +
         "\n";
}

}  // namespace rlx::cli
