#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <random>

#include "base/error.h"
#include "base/group_digits.h"
#include "commands.h"
#include "rlx/budget.h"

namespace rlx::cli {
namespace {

// The first Ctrl-C asks for a clean stop; a second one ends the process at once.
void stop_on_interrupt() {
  struct sigaction action {};
  action.sa_handler = [](int) { interrupted.store(true); };
  action.sa_flags = SA_RESETHAND | SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// How far a long prompt is, on a terminal. It is gone before the first word of the text.
void show_progress(int64_t done, int64_t total) {
  if (done < total) {
    fmt::print(stderr, "\rprompt {:3} %", 100 * done / total);
  } else {
    fmt::print(stderr, "\r\x1b[K");
  }
}

// ", 12.3 tokens/s", or nothing when no token was timed.
std::string print_speed(int64_t tokens, double seconds) {
  if (tokens <= 0 || seconds <= 0) return "";
  return fmt::format(", {:.1f} tokens/s", static_cast<double>(tokens) / seconds);
}

void print_statistics(const LanguageModel& model, const GenerateResult& result, double load_seconds,
                      uint64_t seed) {
  const int64_t generated = static_cast<int64_t>(result.tokens.size());
  // The first token comes out of the prompt's run; the time from then on made the others.
  const int64_t timed = generated > 0 ? generated - 1 : 0;
  fmt::print(stderr, "load      {:10.1f} ms\n", load_seconds * 1e3);
  const std::string reused =
      result.reused_tokens > 0 ? fmt::format(", {} of them kept from before", result.reused_tokens)
                               : "";
  const int64_t read = result.prompt_tokens - result.reused_tokens;
  fmt::print(stderr, "prompt    {:10} tokens{}{}\n", result.prompt_tokens, reused,
             generated > 0 ? print_speed(read, result.prompt_seconds) : "");
  fmt::print(stderr, "generated {:10} tokens{}, stopped by: {}\n", generated,
             print_speed(timed, result.generate_seconds), to_string(result.stop_reason));
  fmt::print(stderr, "threads   {:10}\nseed      {:10}\n", model.threads(), seed);
  const PlanReport& plan = model.plan_report();
  fmt::print(stderr, "memory    ");
  for (const PlanSegment& segment : plan.segments) {
    fmt::print(stderr, "{} {} B, ", segment.name, group_digits(segment.size_bytes));
  }
  fmt::print(stderr, "arena {} B\n", group_digits(plan.arena_bytes));
  struct rusage usage {};
  getrusage(RUSAGE_SELF, &usage);
  const int64_t measured = int64_t{usage.ru_maxrss} * 1024;
  const int64_t difference = measured - total_bytes(plan);
  fmt::print(stderr, "resident  {} B measured, {} B planned; {} B {}\n", group_digits(measured),
             group_digits(total_bytes(plan)), group_digits(std::abs(difference)),
             difference >= 0 ? "more: the program, its vocabulary and graph"
                             : "less: pages that were never touched");
}

int run_text(const RunOptions& options) {
  stop_on_interrupt();
  const auto start = std::chrono::steady_clock::now();
  LanguageModel model =
      LanguageModel::load(options.model.model,
                          fit_budget(options.model, make_load_options(options.model, DType::kF16)));
  const double load_seconds = seconds_since(start);
  const std::string prompt = options.prompt == "-" ? read_stdin() : options.prompt;
  GenerateOptions generate = options.generate;
  if (!options.has_seed) generate.seed = std::random_device()();
  generate.cancel = &interrupted;
  generate.on_text = [](std::string_view piece) { write_text(piece); };
  // On one terminal the echoed prompt and the percentage would write over each other.
  if (isatty(STDERR_FILENO) && !(options.echo && isatty(STDOUT_FILENO))) {
    generate.on_prompt = show_progress;
  }
  if (!options.load_state.empty()) {
    model.load_state(options.load_state);
    generate.reuse_prefix = true;
  }
  if (options.echo) write_text(prompt);
  const GenerateResult result = model.generate(prompt, generate);
  if (generate.on_prompt && result.tokens.empty()) show_progress(1, 1);
  write_text("\n");
  if (!options.save_state.empty()) model.save_state(options.save_state);
  print_statistics(model, result, load_seconds, generate.seed);
  return result.stop_reason == StopReason::kCancelled ? 130 : 0;
}

}  // namespace

int run(const RunOptions& options) {
  if (!options.inputs.empty()) return run_tensors(options);
  if (options.prompts.empty()) return run_text(options);
  stop_on_interrupt();
  return run_prompts(options);
}

}  // namespace rlx::cli
