// The rlx command line: reads the arguments, runs one command, turns errors into exit codes (2 for
// wrong usage, 1 for failure, 130 for Ctrl-C).
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "commands.h"
#include "rlx/error.h"
#include "rlx/version.h"

namespace rlx::cli {
namespace {

void add_model_options(CLI::App& command, ModelOptions& options) {
  command.add_option("model", options.model, "A .gguf file, or a folder with config.json")
      ->required();
  command
      .add_option("-c,--context", options.context,
                  "Tokens that the key/value cache holds (default: the model's own length)")
      ->check(CLI::NonNegativeNumber);
  command
      .add_option("-b,--batch", options.max_tokens,
                  "Most prompt tokens that go through the model at once")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command
      .add_option("-t,--threads", options.threads,
                  "Threads (default: as many as this process may use)")
      ->check(CLI::Range(1, 1024));
  command.add_option(
      "--cache-type", options.cache_type,
      "Element type of the key/value cache: f32, f16 or bf16 (default: f16 for text, "
      "f32 for tensors)");
  command
      .add_option("--rope-type", options.rope_type,
                  "Round the rotary frequencies to f16 or bf16, to compare with programs that do")
      ->capture_default_str();
  command
      .add_option(
          "--activations", options.activations,
          "How packed weights are multiplied: 'int8' quantises the activations, 'float' does "
          "not")
      ->check(CLI::IsMember({"int8", "float"}))
      ->capture_default_str();
  command.add_option("--device", options.device, "Where to run; this build has: cpu")
      ->capture_default_str();
}

void add_run(CLI::App& app, RunOptions& options) {
  CLI::App* command =
      app.add_subcommand("run", "Write text with a model, or run tensors through it");
  add_model_options(*command, options.model);
  GenerateOptions& generate = options.generate;
  auto* prompt = command->add_option("-p,--prompt", options.prompt,
                                     "The text to go on from; '-' reads it from stdin");
  command
      ->add_option("-n,--tokens", generate.max_new_tokens,
                   "Tokens to write; -1: until the context is full")
      ->check(CLI::Range(int64_t{-1}, int64_t{1} << 40))
      ->capture_default_str();
  command->add_option("--temp", generate.temperature, "Temperature; 0 takes the likeliest token")
      ->capture_default_str();
  command->add_option("--top-k", generate.top_k, "Keep the k likeliest tokens; 0: all")
      ->capture_default_str();
  command->add_option("--top-p", generate.top_p, "Keep the likeliest tokens up to this sum")
      ->capture_default_str();
  command
      ->add_option("--min-p", generate.min_p,
                   "Keep tokens at least this times as likely as the likeliest")
      ->capture_default_str();
  command
      ->add_option("--repeat-penalty", generate.repeat_penalty, "Penalty on recent tokens; 1: off")
      ->capture_default_str();
  command->add_option("--repeat-last-n", generate.repeat_last_n, "Tokens that count as recent")
      ->capture_default_str();
  auto* seed = command->add_option("--seed", generate.seed,
                                   "Seed of the sampler (default: a new one, which is printed)");
  command->add_flag("--echo", options.echo, "Print the prompt before the text");
  auto* input =
      command->add_option("--input", options.inputs, "NAME=FILE.npy: a tensor in; repeatable");
  command->add_option("--output", options.outputs, "NAME=FILE.npy: a tensor out; repeatable")
      ->needs(input);
  prompt->excludes(input);
  command->footer(
      "Text goes to stdout, statistics to stderr.\n\n"
      "Examples:\n"
      "  rlx run model.gguf -p \"In the beginning\" -n 64\n"
      "  rlx run model.gguf -p \"In the beginning\" --temp 0 --echo\n"
      "  cat question.txt | rlx run model.gguf -p - -n -1 > answer.txt\n"
      "  rlx run model-folder --input input_ids=ids.npy --output logits=logits.npy\n");
  command->parse_complete_callback([&options, prompt, seed] {
    options.has_prompt = prompt->count() > 0;
    options.has_seed = seed->count() > 0;
  });
}

void add_inspect(CLI::App& app, InspectOptions& options) {
  CLI::App* command = app.add_subcommand("inspect", "Show what a model file holds");
  add_model_options(*command, options.model);
  command->add_flag("--tensors", options.tensors, "List the tensors");
  command
      ->add_flag("--graph{source}", options.graph,
                 "Print the graph; --graph=optimized: after the passes")
      ->check(CLI::IsMember({"source", "optimized"}));
  command->add_flag("--program", options.program, "Print the program: steps, kernels, places");
  command->add_flag("--passes", options.passes, "Print what each pass did and how long it took");
  command->add_option("--disable-pass", options.disabled_passes, "Leave a pass out; repeatable");
  command->add_flag("--json", options.json, "Print JSON");
  command->footer(
      "Examples:\n"
      "  rlx inspect model.gguf\n"
      "  rlx inspect model.gguf --tensors --json\n"
      "  rlx inspect model.gguf --graph=optimized\n");
}

void add_plan(CLI::App& app, PlanOptions& options) {
  CLI::App* command =
      app.add_subcommand("plan", "Show every byte that a model will take, before loading it");
  add_model_options(*command, options.model);
  command->add_flag("--json", options.json, "Print JSON");
  command->add_option("--capacity", options.capacity, "For a .csv: stop at a plan of this height");
  command->add_option("--alignment", options.alignment, "For a .csv: alignment of every offset")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--time", options.seconds, "For a .csv: seconds to search for a better plan")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_option("--out", options.out, "For a .csv: write it with a column 'offset'");
  command->footer(
      "Reads headers only, no weight. A file that ends in .csv is a bare list of intervals\n"
      "(id,lower,upper,size; upper exclusive) to be placed.\n\n"
      "Examples:\n"
      "  rlx plan model.gguf\n"
      "  rlx plan model.gguf -c 8192 -b 256 --json\n"
      "  rlx plan intervals.csv --time 5 --out placed.csv\n");
}

void add_tokenize(CLI::App& app, TokenizeOptions& options) {
  CLI::App* command = app.add_subcommand("tokenize", "Turn text into token ids, or back");
  command->add_option("model", options.model, "A .gguf file, or a folder with tokenizer.json")
      ->required();
  command->add_option("text", options.text, "The text, or ids with --decode; '-' reads stdin")
      ->required();
  command->add_flag("--decode", options.decode,
                    "Turn ids, separated by spaces or commas, into text");
  command->add_flag("--no-special", options.no_special,
                    "Add no beginning or end token, and read none from the text");
  command->footer(
      "Examples:\n"
      "  rlx tokenize model.gguf \"In the beginning\"\n"
      "  rlx tokenize model.gguf \"2046 365\" --decode\n");
}

int main_checked(int argc, char** argv) {
  CLI::App app("Runs models from a memory plan that is known before anything is loaded.", "rlx");
  app.set_version_flag("--version", fmt::format("rlx {}", version()));
  app.require_subcommand(1);
  app.footer("'rlx COMMAND --help' shows a command's options and examples.");
  RunOptions run_options;
  InspectOptions inspect_options;
  PlanOptions plan_options;
  TokenizeOptions tokenize_options;
  add_run(app, run_options);
  add_inspect(app, inspect_options);
  add_plan(app, plan_options);
  add_tokenize(app, tokenize_options);
  try {
    app.parse(argc, argv);
    if (app.got_subcommand("run") && !run_options.has_prompt && run_options.inputs.empty()) {
      throw CLI::RequiredError("-p TEXT or --input NAME=FILE.npy");
    }
  } catch (const CLI::ParseError& error) {
    // Help and version come this way too, with exit code 0.
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (app.got_subcommand("run")) return run(run_options);
  if (app.got_subcommand("inspect")) return inspect(inspect_options);
  if (app.got_subcommand("plan")) return plan(plan_options);
  return tokenize(tokenize_options);
}

}  // namespace
}  // namespace rlx::cli

int main(int argc, char** argv) {
  try {
    return rlx::cli::main_checked(argc, argv);
  } catch (const std::exception& error) {
    std::fflush(stdout);
    fmt::print(stderr, "rlx: error: {}\n", error.what());
    return 1;
  }
}
