// How low and how fast plans are, beside the simple rules that most planners use. Every plan passes
// the checker before it is printed. Simple rules are printed as percent over the bytes alive.
//
//   bench_memory [--nodes N] [--seconds S] [--capacity BYTES] [--cuts] [--synthetic]
//                [FILE.csv or folder ...]
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include "memory/check_placement.h"
#include "memory/csv.h"
#include "memory/first_fit.h"
#include "memory/lower_bound.h"
#include "memory/normal_form.h"
#include "memory/place.h"
#include "memory/report.h"
#include "perfect_cut.h"
#include "rlx/error.h"

namespace rlx::memory {
namespace {

double read_cpu_seconds() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

enum class SimpleRule { kSize, kBirth, kArea };

// The height of first fit over the whole problem: largest size first, in order of birth, or largest
// size times duration first.
int64_t find_simple_height(const Problem& problem, SimpleRule rule) {
  const NormalForm form = make_normal_form(problem);
  int64_t height = 0;
  for (const Part& part : form.parts) {
    std::vector<int32_t> order(part.items.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      const Item &x = part.items[a], &y = part.items[b];
      switch (rule) {
        case SimpleRule::kSize:
          return x.size > y.size;
        case SimpleRule::kBirth:
          return x.first < y.first;
        case SimpleRule::kArea:
          break;
      }
      return static_cast<double>(x.size) * static_cast<double>(x.num_steps) >
             static_cast<double>(y.size) * static_cast<double>(y.num_steps);
    });
    const std::vector<int64_t> offsets = place_first_fit(part, order);
    for (size_t i = 0; i < offsets.size(); ++i) {
      height = std::max(height, part.base + offsets[i] + part.items[i].size);
    }
  }
  for (size_t i = 0; i < problem.units.size(); ++i) {
    height = std::max(height, form.offsets[i]);
  }
  return std::max(height * form.block_bytes, find_lower_bound(problem).bytes);
}

struct Run {
  Placement placement;
  double seconds;
};

Run plan(const Problem& problem, const PlaceOptions& options) {
  const double start = read_cpu_seconds();
  Run run{place(problem, options), 0};
  run.seconds = read_cpu_seconds() - start;
  check_placement(problem, run.placement);
  return run;
}

void print_header() {
  fmt::print("{:<24} {:>6} {:>8} {:>8} {:>8} | {:>8} {:>13} {:>13} {:>7} {:>6}  {}\n", "instance",
             "units", "by size", "by birth", "by area", "seconds", "height", "bound", "gap %",
             "proven", "method");
}

void print_row(const std::string& name, const Problem& problem, const PlaceOptions& options) {
  const int64_t sum = find_lower_bound(problem).bytes;
  const auto measure = [&](SimpleRule rule) {
    return find_gap_percent(find_simple_height(problem, rule), sum);
  };
  const double by_size = measure(SimpleRule::kSize);
  const double by_birth = measure(SimpleRule::kBirth);
  const double by_area = measure(SimpleRule::kArea);
  const Run run = plan(problem, options);
  const Placement& placement = run.placement;
  fmt::print(
      "{:<24} {:>6} {:>7.2f}% {:>7.2f}% {:>7.2f}% | {:>8.4f} {:>13} {:>13} {:>7.3f} {:>6}  {}\n",
      name, problem.units.size(), by_size, by_birth, by_area, run.seconds, placement.height_bytes,
      placement.lower_bound_bytes,
      find_gap_percent(placement.height_bytes, placement.lower_bound_bytes),
      placement.optimal ? "yes" : "no", placement.method);
  std::fflush(stdout);
}

void run_cuts(const PlaceOptions& options) {
  fmt::print(
      "\nPerfect cuts, no byte free at any step\n{:<12} {:>6} {:>6} {:>9} {:>11} {:>10} {:>10} "
      "{:>10}\n",
      "kind", "units", "seeds", "at bound", "worst gap %", "mean gap %", "mean s", "worst s");
  for (const CutKind kind : {CutKind::kGuillotine, CutKind::kPinwheel}) {
    for (const int32_t num_units : {100, 400}) {
      const int num_seeds = num_units == 100 ? 100 : 20;
      int num_reached = 0;
      double worst_gap = 0, sum_gap = 0, worst_seconds = 0, sum_seconds = 0;
      for (int seed = 1; seed <= num_seeds; ++seed) {
        PerfectCut cut;
        cut.kind = kind;
        cut.num_units = num_units;
        cut.seed = static_cast<uint64_t>(seed);
        const Run run = plan(make_perfect_cut(cut), options);
        const double gap = find_gap_percent(run.placement.height_bytes, cut.height_bytes);
        num_reached += gap == 0;
        worst_gap = std::max(worst_gap, gap);
        sum_gap += gap;
        worst_seconds = std::max(worst_seconds, run.seconds);
        sum_seconds += run.seconds;
      }
      fmt::print("{:<12} {:>6} {:>6} {:>9} {:>11.3f} {:>10.3f} {:>10.4f} {:>10.4f}\n",
                 kind == CutKind::kGuillotine ? "guillotine" : "pinwheel", num_units, num_seeds,
                 num_reached, worst_gap, sum_gap / num_seeds, sum_seconds / num_seeds,
                 worst_seconds);
      std::fflush(stdout);
    }
  }
}

void add_path(const std::string& path, std::vector<std::string>& files) {
  if (!std::filesystem::is_directory(path)) {
    files.push_back(path);
    return;
  }
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
    if (entry.path().extension() == ".csv") found.push_back(entry.path().string());
  }
  std::sort(found.begin(), found.end());
  files.insert(files.end(), found.begin(), found.end());
}

int run_main(int argc, char** argv) {
  PlaceOptions options;
  bool has_cuts = false, has_synthetic = false;
  std::vector<std::string> files;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--nodes" && i + 1 < argc) {
      options.effort_nodes = std::atoll(argv[++i]);
    } else if (argument == "--seconds" && i + 1 < argc) {
      options.seconds = std::atof(argv[++i]);
    } else if (argument == "--capacity" && i + 1 < argc) {
      options.capacity_bytes = std::atoll(argv[++i]);
    } else if (argument == "--cuts") {
      has_cuts = true;
    } else if (argument == "--synthetic") {
      has_synthetic = true;
    } else {
      add_path(argument, files);
    }
  }
  if (files.empty() && !has_cuts && !has_synthetic) {
    has_cuts = has_synthetic = true;
    add_path("tests/data/memory", files);
  }
  print_header();
  double sum = 0;
  const double start = read_cpu_seconds();
  for (const std::string& file : files) {
    print_row(std::filesystem::path(file).stem().string(), read_csv(file).problem, options);
  }
  if (has_synthetic) {
    for (const int32_t num_units : {5000, 10000, 20000}) {
      print_row(fmt::format("synthetic {}", num_units), make_synthetic_network({num_units, 1}),
                options);
    }
  }
  if (has_cuts) run_cuts(options);
  sum = read_cpu_seconds() - start;
  fmt::print("\n{:.2f} s of CPU, with checks and simple rules\n", sum);
  return 0;
}

}  // namespace
}  // namespace rlx::memory

int main(int argc, char** argv) {
  try {
    return rlx::memory::run_main(argc, argv);
  } catch (const rlx::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
