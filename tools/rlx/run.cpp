#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <random>

#include "api/compiled_model.h"
#include "backends/cpu/session.h"
#include "base/error.h"
#include "base/group_digits.h"
#include "commands.h"
#include "frontends/npy/npy.h"
#include "rlx/budget.h"
#include "tensor/convert.h"
#include "tensor/storage.h"

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

void write_text(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    throw_error(ErrorCode::kIo, "Cannot write to stdout: {}.", std::strerror(errno));
  }
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
  fmt::print(stderr, "prompt    {:10} tokens{}\n", result.prompt_tokens,
             generated > 0 ? print_speed(result.prompt_tokens, result.prompt_seconds) : "");
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
  if (options.echo) write_text(prompt);
  const GenerateResult result = model.generate(prompt, generate);
  if (generate.on_prompt && result.tokens.empty()) show_progress(1, 1);
  write_text("\n");
  print_statistics(model, result, load_seconds, generate.seed);
  return result.stop_reason == StopReason::kCancelled ? 130 : 0;
}

struct NamedFile {
  std::string name, file;
};

NamedFile split_named_file(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    throw_error(ErrorCode::kInvalidArgument, "'{}' is not of the form NAME=FILE.npy.", text);
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

// Copies the array into the input, whose extents the run has set. Integers of another width
// convert.
void write_input(Session& session, int index, const NpyArray& array, const std::string& name) {
  const TensorView view = session.input(index);
  const std::vector<int64_t> expected(view.extents.begin(), view.extents.begin() + view.rank);
  if (array.shape != expected) {
    throw_error(ErrorCode::kInvalidArgument, "Input '{}' has the shape [{}], but [{}] is expected.",
                name, fmt::join(array.shape, ", "), fmt::join(expected, ", "));
  }
  if (array.dtype != view.dtype && !(is_integer(array.dtype) && is_integer(view.dtype))) {
    throw_error(ErrorCode::kInvalidArgument, "Input '{}' is {}, but {} is expected.", name,
                to_string(array.dtype), to_string(view.dtype));
  }
  convert_elements(array.dtype, array.data.data(), view.dtype, view.data, view.num_elements());
}

void check_token_ids(const NpyArray& array, int64_t vocab_size) {
  std::vector<int64_t> ids(array.data.size() / bytes_per_block(array.dtype));
  convert_elements(array.dtype, array.data.data(), DType::kI64,
                   reinterpret_cast<std::byte*>(ids.data()), static_cast<int64_t>(ids.size()));
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= vocab_size) {
      throw_error(ErrorCode::kOutOfRange,
                  "Input 'input_ids': token id {} at position {} is outside the vocabulary of {} "
                  "tokens.",
                  ids[i], i, vocab_size);
    }
  }
}

int run_tensors(const RunOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<NamedFile> outputs;
  for (const std::string& text : options.outputs) outputs.push_back(split_named_file(text));
  NpyArray ids;
  bool has_ids = false;
  for (const std::string& text : options.inputs) {
    const NamedFile input = split_named_file(text);
    if (input.name != "input_ids" || has_ids) {
      throw_error(ErrorCode::kInvalidArgument, "{} '{}'; the model's one input is 'input_ids'.",
                  has_ids ? "There is a second input" : "There is no input", input.name);
    }
    ids = read_npy(input.file);
    has_ids = true;
  }
  if (!is_integer(ids.dtype) || ids.shape.size() != 2 || ids.shape[0] != 1 || ids.shape[1] < 1) {
    throw_error(ErrorCode::kInvalidArgument,
                "Input 'input_ids' is {}[{}], but i64[1, tokens] is expected.",
                to_string(ids.dtype), fmt::join(ids.shape, ", "));
  }

  LanguageModelOptions load = make_load_options(options.model, DType::kF32);
  load.max_tokens = ids.shape[1];
  GraphOptions graph = make_graph_options(load);
  graph.all_logits = true;
  for (const NamedFile& output : outputs) {
    graph.hidden_states = graph.hidden_states || output.name.starts_with("hidden.");
  }
  const CompiledModel model =
      compile_model(ModelFile::open(options.model.model), graph, make_target_options(load));
  const Program& program = *model.program;
  if (ids.shape[1] > program.symbols.symbols()[program.symbols.index_of("tokens")].upper) {
    throw_error(ErrorCode::kOutOfRange, "{} tokens do not fit into the context of {} tokens.",
                ids.shape[1],
                program.symbols.symbols()[program.symbols.index_of("past")].upper + 1);
  }
  std::vector<int> indices;
  for (const NamedFile& output : outputs) indices.push_back(find_output(program, output.name));
  const int logits = find_output(program, "logits");
  check_token_ids(ids, program.values[program.outputs[logits].value].type.shape[2].constant());

  const auto session =
      cpu::make_session(model.program, model.file,
                        std::make_shared<ThreadPool>(model.target.max_threads), model.target);
  std::vector<int64_t> extents(program.symbols.symbols().size(), 0);
  extents[program.symbols.index_of("tokens")] = ids.shape[1];
  session->set_extents(extents).throw_if_failed();
  write_input(*session, find_input(program, "input_ids"), ids, "input_ids");
  const double load_seconds = seconds_since(start);
  const auto run_start = std::chrono::steady_clock::now();
  session->run().throw_if_failed();
  const double run_seconds = seconds_since(run_start);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const TensorView view = session->output(indices[i]);
    const int64_t bytes = storage_bytes(view.dtype, view.num_elements());
    write_npy(outputs[i].file, view.dtype,
              std::span(view.extents.data(), static_cast<size_t>(view.rank)),
              {view.data, static_cast<size_t>(bytes)});
  }
  fmt::print(stderr, "load {:.1f} ms, run {:.1f} ms\n", load_seconds * 1e3, run_seconds * 1e3);
  return 0;
}

}  // namespace

int run(const RunOptions& options) {
  return options.inputs.empty() ? run_text(options) : run_tensors(options);
}

}  // namespace rlx::cli
