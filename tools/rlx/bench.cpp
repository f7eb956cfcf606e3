#include "bench.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <optional>

#include "base/error.h"
#include "commands.h"

namespace rlx::cli {
namespace {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Starts the count of the peak resident size anew. Where the kernel does not let us, the peak stays
// that of the whole process.
void reset_peak_resident() {
  if (std::FILE* file = std::fopen("/proc/self/clear_refs", "w")) {
    std::fputs("5", file);
    std::fclose(file);
  }
}

int64_t read_peak_resident_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    long long kib = 0;
    if (std::sscanf(line.c_str(), "VmHWM: %lld kB", &kib) == 1) return kib * 1024;
  }
  throw_error(ErrorCode::kIo, "/proc/self/status has no line 'VmHWM'.");
}

class Bench {
 public:
  Bench(const BenchOptions& options, int threads) : options_(options), probe_pool_(threads) {
    load_ = make_load_options(options.model, DType::kF16);
    load_.threads = threads;
    load_.context = std::max(options.prompt, options.depth + options.generate);
    result_.threads = threads;
  }

  BenchResult run() {
    reset_peak_resident();
    const double start = seconds_now();
    std::vector<double> load_seconds = {load()};
    warm_up(start);
    result_.arena_bytes = model_->plan_report().arena_bytes;
    result_.peak_resident_bytes = read_peak_resident_bytes();
    const std::optional<cpu::MachineProbe> probe(std::in_place);
    BenchPhase prefill{.name = "prefill", .tokens = options_.prompt};
    BenchPhase decode{.name = "decode", .tokens = options_.generate};
    std::vector<double> prefill_speeds, decode_speeds;
    for (int i = 0; i < options_.repeats; ++i) {
      probe->measure(probe_pool_, result_.peak);
      if (options_.prompt > 0) prefill_speeds.push_back(measure_prefill());
      if (i == 0 && prompt_is_one_run()) count_last_run(1, prefill);
      if (options_.generate > 0) decode_speeds.push_back(measure_decode());
      if (i == 0 && options_.generate > 0) count_last_run(0.5, decode);
    }
    probe->measure(probe_pool_, result_.peak);
    if (options_.prompt > 0) {
      if (!prompt_is_one_run()) walk("prefill", [&] { count_last_run(1, prefill); });
      add_phase(std::move(prefill), std::move(prefill_speeds), options_.prompt);
    }
    if (options_.generate > 0) {
      // Each token needs as much more than the one before, so that the mean of the first and the
      // last is that of all.
      fill_depth();
      model_->evaluate(make_tokens(1));
      count_last_run(0.5, decode);
      add_phase(std::move(decode), std::move(decode_speeds), 1);
    }
    if (options_.profile || !options_.trace.empty()) profile();
    for (int i = 1; i < options_.repeats; ++i) load_seconds.push_back(load());
    result_.load_seconds = Spread(std::move(load_seconds));
    return std::move(result_);
  }

 private:
  double load() {
    model_.reset();
    const double start = seconds_now();
    model_.emplace(LanguageModel::load(options_.model.model, load_));
    return seconds_now() - start;
  }

  // Arbitrary ids: speed does not depend on them.
  std::vector<int32_t> make_tokens(int64_t count) const {
    std::vector<int32_t> tokens;
    for (int64_t i = 0; i < count; ++i) {
      tokens.push_back(static_cast<int32_t>((i * 7919 + 13) % model_->vocab_size()));
    }
    return tokens;
  }

  // Also brings the weights into memory. The time to the first token is what a user would wait.
  void warm_up(double start) {
    if (options_.prompt > 0) {
      model_->evaluate(make_tokens(options_.prompt));
      result_.first_token_seconds = seconds_now() - start;
    }
    if (options_.generate > 0) {
      fill_depth();
      model_->evaluate(make_tokens(1));
    }
  }

  void fill_depth() {
    model_->reset();
    if (options_.depth > 0) model_->evaluate(make_tokens(options_.depth));
  }

  double measure_prefill() {
    const std::vector<int32_t> tokens = make_tokens(options_.prompt);
    model_->reset();
    const double start = seconds_now();
    model_->evaluate(tokens);
    return static_cast<double>(options_.prompt) / (seconds_now() - start);
  }

  double measure_decode() {
    const std::vector<int32_t> tokens = make_tokens(options_.generate);
    fill_depth();
    const double start = seconds_now();
    for (const int32_t token : tokens) model_->evaluate({&token, 1});
    return static_cast<double>(options_.generate) / (seconds_now() - start);
  }

  // Runs the phase's tokens once, program run by program run, and hands each to `take`.
  template <typename Take>
  void walk(const std::string& phase, Take&& take) {
    const bool is_prefill = phase == "prefill";
    const std::vector<int32_t> tokens =
        make_tokens(is_prefill ? options_.prompt : options_.generate);
    if (is_prefill) {
      model_->reset();
    } else {
      fill_depth();
    }
    const size_t piece = is_prefill ? static_cast<size_t>(load_.max_tokens) : 1;
    for (size_t at = 0; at < tokens.size(); at += piece) {
      model_->evaluate(std::span(tokens).subspan(at, std::min(piece, tokens.size() - at)));
      take();
    }
  }

  bool prompt_is_one_run() const {
    return options_.prompt > 0 && options_.prompt <= load_.max_tokens;
  }

  // Adds what the last run needed, times `weight`, to the phase's sums.
  void count_last_run(double weight, BenchPhase& phase) const {
    for (const ProfiledStep& step : model_->profile_last_run()) {
      phase.bytes_per_token += weight * static_cast<double>(step.weight_bytes + step.state_bytes);
      phase.flops_per_token += weight * static_cast<double>(step.flops);
    }
  }

  // The phase's sums are over that many tokens.
  void add_phase(BenchPhase phase, std::vector<double> speeds, int64_t counted_tokens) {
    phase.tokens_per_second = Spread(std::move(speeds));
    phase.bytes_per_token /= static_cast<double>(counted_tokens);
    phase.flops_per_token /= static_cast<double>(counted_tokens);
    result_.phases.push_back(std::move(phase));
  }

  void profile() {
    model_->set_profiling(true);
    for (const BenchPhase& phase : result_.phases) {
      walk(phase.name, [&] {
        ProfiledRun run{.phase = phase.name, .steps = model_->profile_last_run()};
        for (const ProfiledStep& step : run.steps) {
          for (const ProfiledStep::Interval& interval : step.threads) {
            run.end_ns = std::max(run.end_ns, interval.end_ns);
          }
        }
        result_.profile.push_back(std::move(run));
      });
    }
    model_->set_profiling(false);
  }

  const BenchOptions& options_;
  ThreadPool probe_pool_;
  LanguageModelOptions load_;
  std::optional<LanguageModel> model_;
  BenchResult result_;
};

}  // namespace

Spread::Spread(std::vector<double> values) : samples(std::move(values)) {
  if (samples.empty()) return;
  std::vector<double> sorted = samples;
  std::sort(sorted.begin(), sorted.end());
  least = sorted.front();
  most = sorted.back();
  median = (sorted[(sorted.size() - 1) / 2] + sorted[sorted.size() / 2]) / 2;
}

int bench(const BenchOptions& options) {
  std::vector<int> threads = options.threads;
  if (threads.empty()) threads = {count_usable_processors()};
  std::vector<BenchResult> results;
  for (const int count : threads) results.push_back(Bench(options, count).run());
  fmt::print("{}", print_bench(options, results));
  if (options.profile) {
    for (const BenchResult& result : results) fmt::print("\n{}", print_profile(result));
  }
  if (!options.json.empty()) write_file(options.json, bench_json(options, results));
  if (!options.trace.empty()) write_file(options.trace, trace_json(results.back()));
  return 0;
}

}  // namespace rlx::cli
