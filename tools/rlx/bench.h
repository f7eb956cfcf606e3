// What `rlx bench` measures, as plain data between the measuring (bench.cpp) and the showing
// (bench_report.cpp).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backends/cpu/kernels/machine_peak.h"
#include "rlx/profile.h"

namespace rlx::cli {

struct BenchOptions;

// The spread of repeated measurements; all zero when there are none.
struct Spread {
  Spread() = default;
  explicit Spread(std::vector<double> samples);
  double median = 0, least = 0, most = 0;
  std::vector<double> samples;  // in the order of measurement
};

// One kind of run: the prompt, or one token after the other.
struct BenchPhase {
  std::string name;    // "prefill" or "decode"
  int64_t tokens = 0;  // of one repetition
  Spread tokens_per_second;
  double bytes_per_token = 0;  // weights and caches
  double flops_per_token = 0;
  double gb_s() const { return bytes_per_token * tokens_per_second.median * 1e-9; }
  double gflop_s() const { return flops_per_token * tokens_per_second.median * 1e-9; }
};

// A profiled run of the program, one per piece of the prompt or token.
struct ProfiledRun {
  std::string phase;
  std::vector<ProfiledStep> steps;
  int64_t end_ns = 0;  // of the whole run
};

// The figures of one number of threads.
struct BenchResult {
  int threads = 0;
  std::vector<BenchPhase> phases;
  Spread load_seconds;
  double first_token_seconds = 0;  // from the start of the load; 0 without a prompt
  int64_t arena_bytes = 0;
  int64_t peak_resident_bytes = 0;
  cpu::MachinePeak peak;  // the best of measurements between the repetitions
  std::vector<ProfiledRun> profile;
};

std::string print_bench(const BenchOptions& options, const std::vector<BenchResult>& results);
// Tables by op and by kernel, for each phase.
std::string print_profile(const BenchResult& result);
std::string bench_json(const BenchOptions& options, const std::vector<BenchResult>& results);
// Chrome's trace event format, which Perfetto opens: a row for each thread, a slice for each step.
std::string trace_json(const BenchResult& result);

}  // namespace rlx::cli
