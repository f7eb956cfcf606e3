// The rlx command line: reads the arguments, runs one command, turns errors into exit codes (2 for
// wrong usage, 1 for failure, 130 for Ctrl-C).
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "commands.h"
#include "rlx/error.h"
#include "rlx/version.h"
#include "usage.h"

namespace rlx::cli {
namespace {

void add_batch_option(CLI::App& command, ModelOptions& options) {
  command
      .add_option("-b,--batch", options.max_tokens,
                  "Most prompt tokens that go through the model at once")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
}

// How numbers are kept and multiplied.
void add_arithmetic_options(CLI::App& command, ModelOptions& options) {
  command
      .add_option("--cache-type", options.cache_type,
                  "Element type of the key/value cache (default: f16 for text, f32 for tensors)")
      ->check(CLI::IsMember({"f32", "f16", "bf16", "q8_0"}));
  command
      .add_option("--rope-type", options.rope_type,
                  "Round the rotary frequencies to f16 or bf16, to compare with programs that do")
      ->check(CLI::IsMember({"f32", "f16", "bf16"}))
      ->capture_default_str();
  command
      .add_option(
          "--activations", options.activations,
          "How packed weights are multiplied: 'int8' quantises the activations, 'float' does "
          "not")
      ->check(CLI::IsMember({"int8", "float"}))
      ->capture_default_str();
}

void add_model_options(CLI::App& command, ModelOptions& options) {
  command.add_option("MODEL", options.model, "A .gguf file, or a folder with config.json")
      ->required();
  command
      .add_option("-c,--context", options.context,
                  "Tokens that the key/value cache holds (default: the model's own length)")
      ->check(CLI::NonNegativeNumber);
  add_batch_option(command, options);
  command
      .add_option("--parallel", options.parallel,
                  "Texts at once, each with its own rows in the cache; see run --prompts")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  command
      .add_option("-t,--threads", options.threads,
                  "Threads (default: as many as this process may use)")
      ->check(CLI::Range(1, 1024));
  add_arithmetic_options(command, options);
  command.add_option("--device", options.device, "Where to run; this build has: cpu")
      ->capture_default_str();
}

void add_budget_options(CLI::App& command, ModelOptions& options) {
  auto* budget = command.add_option(
      "--budget", options.budget,
      "Most bytes for weights, state, io and work together (2GiB, 500MB): the token batch shrinks "
      "until the plan fits, or the smallest budget that works is named");
  command
      .add_option("--least-context", options.least_context,
                  "Let the budget also shorten the context, down to this")
      ->check(CLI::PositiveNumber)
      ->needs(budget);
  command
      .add_option("--least-cache-type", options.least_cache_type,
                  "Let the budget also narrow the key/value cache, down to this")
      ->check(CLI::IsMember({"f16", "q8_0"}))
      ->needs(budget);
  command.add_option("--max-allocation", options.max_allocation,
                     "Plan as for a device whose largest allocation this is (128MiB): no value "
                     "crosses from one block to the next");
}

// Whether the text is ID=VALUE; the message otherwise.
std::string check_logit_bias(const std::string& text) {
  LogitBias bias;
  if (parse_logit_bias(text, bias)) return "";
  return fmt::format("'{}' is not of the form ID=VALUE, such as 13=-2.5 or 13=-inf", text);
}

// Whether the text is NAME=FILE; the message otherwise.
std::string check_named_file(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals != std::string::npos && equals > 0 && equals + 1 < text.size()) return "";
  return fmt::format("'{}' is not of the form NAME=FILE.npy", text);
}

// The options of the sampler, in the order of its steps.
std::vector<CLI::Option*> add_sampling_options(CLI::App& command, GenerateOptions& generate) {
  const auto add_bias = [&generate](const std::vector<std::string>& words) {
    for (const std::string& word : words)
      parse_logit_bias(word, generate.logit_bias.emplace_back());
    return true;
  };
  return {
      command
          .add_option("--logit-bias", add_bias,
                      "ID=VALUE: add to the logit of a token; -inf excludes it; repeatable")
          ->type_name("ID=VALUE")
          ->check(check_logit_bias)
          ->expected(1)
          ->take_all(),
      command
          .add_option("--repeat-penalty", generate.repeat_penalty,
                      "Divide the logits of recent tokens; 1: off")
          ->check(CLI::PositiveNumber)
          ->capture_default_str(),
      command
          .add_option("--frequency-penalty", generate.frequency_penalty,
                      "Take this off a logit for each time its token is recent")
          ->capture_default_str(),
      command
          .add_option("--presence-penalty", generate.presence_penalty,
                      "Take this off a logit if its token is recent")
          ->capture_default_str(),
      command.add_option("--repeat-last-n", generate.repeat_last_n, "Tokens that count as recent")
          ->check(CLI::Range(0, 1 << 20))
          ->capture_default_str(),
      command.add_option("--top-k", generate.top_k, "Keep the k likeliest tokens; 0: all")
          ->check(CLI::NonNegativeNumber)
          ->capture_default_str(),
      command
          .add_option("--typical", generate.typical_p,
                      "Keep the tokens of the most usual surprise up to this sum; 1: off")
          ->check(CLI::Range(0.0f, 1.0f))
          ->capture_default_str(),
      command.add_option("--top-p", generate.top_p, "Keep the likeliest tokens up to this sum")
          ->check(CLI::Range(0.0f, 1.0f))
          ->capture_default_str(),
      command
          .add_option("--min-p", generate.min_p,
                      "Keep tokens at least this times as likely as the likeliest")
          ->check(CLI::Range(0.0f, 1.0f))
          ->capture_default_str(),
      command
          .add_option("--temp", generate.temperature, "Temperature; 0 takes the likeliest token")
          ->check(CLI::NonNegativeNumber)
          ->capture_default_str(),
      command
          .add_option("--seed", generate.seed,
                      "Seed of the sampler (default: a new one, which is printed)")
          ->check(CLI::NonNegativeNumber),
  };
}

// When the writing ends.
std::vector<CLI::Option*> add_stop_options(CLI::App& command, GenerateOptions& generate) {
  return {
      command
          .add_option("-n,--tokens", generate.max_new_tokens,
                      "Tokens to write; -1: until the context is full")
          ->check(CLI::Range(int64_t{-1}, int64_t{1} << 40))
          ->capture_default_str(),
      command
          .add_option("--stop", generate.stop,
                      "Stop before this text, which is not printed; repeatable")
          ->expected(1)
          ->take_all(),
      command.add_option("--max-time", generate.max_seconds, "Stop after this many seconds")
          ->check(CLI::PositiveNumber),
  };
}

// The options that say how text is written; returns them, for they mean nothing to tensors.
std::vector<CLI::Option*> add_text_options(CLI::App& command, RunOptions& options) {
  std::vector<CLI::Option*> all = {
      command.add_option("-p,--prompt", options.prompt,
                         "The text to go on from; '-' reads it from stdin"),
      command.add_flag("--echo", options.echo, "Print the prompt before the text"),
      command.add_option(
          "--prompts", options.prompts,
          "A file with a prompt a line ('-': stdin): prints a line of JSON for each, "
          "--parallel of them at once"),
      command
          .add_option("--rolling", options.generate.rolling_keep,
                      "When the context is full, keep its first K tokens and the newer half of the "
                      "others and go on (default: stop)")
          ->check(CLI::NonNegativeNumber),
  };
  all[2]->excludes(all[0])->excludes(all[1]);
  for (CLI::Option* option : add_stop_options(command, options.generate)) all.push_back(option);
  for (CLI::Option* option : add_sampling_options(command, options.generate)) {
    all.push_back(option);
  }
  return all;
}

std::vector<CLI::Option*> add_state_options(CLI::App& command, std::string& save,
                                            std::string& load) {
  return {
      command.add_option("--save-state", save,
                         "Keep what the model has read in this file when the text is done"),
      command.add_option("--load-state", load,
                         "Begin with what this file keeps: a prompt that starts alike is not read "
                         "again"),
  };
}

void add_run(CLI::App& app, RunOptions& options) {
  CLI::App* command =
      app.add_subcommand("run", "Write text with a model, or run tensors through it");
  add_model_options(*command, options.model);
  add_budget_options(*command, options.model);
  std::vector<CLI::Option*> text_options = add_text_options(*command, options);
  for (CLI::Option* option : add_state_options(*command, options.save_state, options.load_state)) {
    text_options.push_back(option);
  }
  auto* input =
      command->add_option("--input", options.inputs, "NAME=FILE.npy: a tensor in; repeatable")
          ->check(check_named_file)
          ->expected(1)
          ->take_all();
  command->add_option("--output", options.outputs, "NAME=FILE.npy: a tensor out; repeatable")
      ->check(check_named_file)
      ->expected(1)
      ->take_all()
      ->needs(input);
  for (CLI::Option* option : text_options) option->excludes(input);
  command->add_flag("--poison", options.model.poison,
                    "Prove of every step that it reads and writes only its own bytes (slow)");
  command->footer(
      "Text goes to stdout, statistics to stderr.\n\n"
      "Examples:\n"
      "  rlx run model.gguf -p \"In the beginning\" -n 64\n"
      "  rlx run model.gguf -p \"In the beginning\" --temp 0 --echo\n"
      "  rlx run model.gguf -p \"Q: Why?\\nA:\" --stop \"Q:\" --max-time 10\n"
      "  rlx run model.gguf --prompts questions.txt --parallel 8 > answers.jsonl\n"
      "  rlx run model.gguf -p \"$(cat book.txt)\" -n 1 --save-state book.state\n"
      "  cat question.txt | rlx run model.gguf -p - -n -1 > answer.txt\n"
      "  rlx run model-folder --input input_ids=ids.npy --output logits=logits.npy\n");
  command->parse_complete_callback([&options, command] {
    options.has_prompt = command->count("--prompt") > 0;
    options.has_seed = command->count("--seed") > 0;
  });
}

void add_chat(CLI::App& app, ChatOptions& options) {
  CLI::App* command = app.add_subcommand("chat", "Talk with a model, turn by turn");
  add_model_options(*command, options.model);
  add_budget_options(*command, options.model);
  command->add_option("--system", options.system, "What the model is told before the conversation");
  command->add_option("--chat-template", options.chat_template,
                      fmt::format("Shape of the conversation: a file, or one of {} (default: the "
                                  "model's own)",
                                  fmt::join(list_builtin_chat_templates(), ", ")));
  add_stop_options(*command, options.generate);
  add_sampling_options(*command, options.generate);
  add_state_options(*command, options.save_state, options.load_state);
  command->footer(
      "Each line of stdin is a turn. /help shows the commands of the chat.\n\n"
      "Examples:\n"
      "  rlx chat model.gguf\n"
      "  rlx chat model.gguf --system \"Answer in one sentence.\" --temp 0\n"
      "  rlx chat model.gguf --chat-template chatml --stop \"<|im_end|>\"\n"
      "  echo \"Why is the sky blue?\" | rlx chat model.gguf -n 64\n");
  command->parse_complete_callback([&options, command] {
    options.has_system = command->count("--system") > 0;
    options.has_seed = command->count("--seed") > 0;
  });
}

void add_perplexity(CLI::App& app, PerplexityOptions& options) {
  CLI::App* command = app.add_subcommand("perplexity", "Measure how well a model foretells a text");
  add_model_options(*command, options.model);
  command->add_option("-f,--file", options.file, "The text; '-' reads it from stdin")->required();
  command->add_option("--chunks", options.max_chunks, "Stop after this many pieces (default: all)")
      ->check(CLI::PositiveNumber);
  command->footer(
      "The text is cut into pieces of the context's length (-c; 512 unless given), and the second\n"
      "half of each is scored. The figure is that of llama.cpp's tool of this name.\n\n"
      "Examples:\n"
      "  rlx perplexity model.gguf --file text.txt\n"
      "  rlx perplexity model.gguf --file text.txt -c 2048 --activations float\n");
}

void add_inspect(CLI::App& app, InspectOptions& options) {
  CLI::App* command = app.add_subcommand("inspect", "Show what a model file holds");
  add_model_options(*command, options.model);
  auto* tensors = command->add_flag("--tensors", options.tensors, "List the tensors");
  auto* graph = command
                    ->add_flag("--graph{source}", options.graph,
                               "Print the graph; --graph=optimized: after the passes")
                    ->check(CLI::IsMember({"source", "optimized"}));
  auto* program =
      command->add_flag("--program", options.program, "Print the program: steps, kernels, places");
  auto* passes = command->add_flag("--passes", options.passes,
                                   "Print what each pass did and how long it took");
  command->add_option("--disable-pass", options.disabled_passes, "Leave a pass out; repeatable")
      ->expected(1)
      ->take_all();
  auto* json = command->add_flag("--json", options.json, "Print JSON");
  // The summary and its tensors have a JSON form; graph and program are text of their own.
  for (CLI::Option* text : {graph, program, passes}) text->excludes(json)->excludes(tensors);
  program->excludes(graph)->excludes(passes);
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
  add_budget_options(*command, options.model);
  command->add_flag("--json", options.json, "Print JSON with every place; --check reads it back");
  command->add_option("--top", options.top, "Print the N largest groups of values by op and shape")
      ->check(CLI::PositiveNumber);
  command->add_flag("--why", options.why,
                    "Print what lies at the peak and what would make the plan smaller");
  command->add_option("--svg", options.svg, "Draw the plan into this file");
  command->add_option("--html", options.html, "Write a page with the picture and its tables");
  auto* diff = command->add_option("--diff", options.diff,
                                   "Compare with another model or a plan saved by --json");
  command->add_flag("--fail-if-grows", options.fail_if_grows, "Exit with 1 if the plan is larger")
      ->needs(diff);
  command->add_flag("--check", options.check, "MODEL is a plan saved by --json: prove it again");
  command
      ->add_option(
          "--plan-effort", options.plan_effort,
          "Nodes to search where a plan is above its bound; the same number gives the same "
          "plan")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_option("--capacity", options.capacity, "For a .csv: stop at a plan of this height");
  command->add_option("--alignment", options.alignment, "For a .csv: alignment of every offset")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command
      ->add_option("--time", options.seconds,
                   "For a .csv: seconds to search on after --plan-effort is spent")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_option("--out", options.out, "For a .csv: write it with a column 'offset'");
  command->footer(
      "Reads headers only, no weight. A file that ends in .csv is a bare list of intervals\n"
      "(id,lower,upper,size; upper exclusive) to be placed.\n\n"
      "Examples:\n"
      "  rlx plan model.gguf\n"
      "  rlx plan model.gguf -c 8192 -b 256 --why\n"
      "  rlx plan model.gguf --svg plan.svg\n"
      "  rlx plan model.gguf --json > plan.json && rlx plan --check plan.json\n"
      "  rlx plan model.gguf --diff plan.json --fail-if-grows\n"
      "  rlx plan intervals.csv --plan-effort 2000000\n"
      "  rlx plan intervals.csv --time 5 --out placed.csv\n");
}

void add_embed(CLI::App& app, EmbedOptions& options) {
  CLI::App* command = app.add_subcommand("embed", "Turn texts into vectors with an encoder");
  command->add_option("MODEL", options.model, "A .gguf file, or a folder with config.json")
      ->required();
  command->add_option("TEXT", options.texts, "The texts");
  command->add_option("-f,--file", options.file, "A file with a text a line; '-' reads stdin");
  command->add_option("-o,--output", options.output,
                      "Write the vectors as a .npy file [texts, dimensions], f32 (default: JSON)");
  command
      ->add_option("-c,--context", options.max_tokens,
                   "Most tokens of a text (default: what the model is made for)")
      ->check(CLI::PositiveNumber);
  command->add_flag("--truncate", options.truncate,
                    "Cut texts that are too long (default: they are an error)");
  command->add_option("-b,--batch", options.max_batch, "Most texts of one run")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  command
      ->add_option("-t,--threads", options.threads,
                   "Threads (default: as many as this process may use)")
      ->check(CLI::Range(1, 1024));
  command
      ->add_option("--activations", options.activations,
                   "How packed weights are multiplied: 'int8' quantises the activations, 'float' "
                   "does not")
      ->check(CLI::IsMember({"int8", "float"}))
      ->capture_default_str();
  command->footer(
      "Pooling and scaling are those that the model's files ask for.\n\n"
      "Examples:\n"
      "  rlx embed minilm \"How old are you?\" \"What is your age?\"\n"
      "  rlx embed minilm --file sentences.txt --output vectors.npy\n");
}

void add_tokenize(CLI::App& app, TokenizeOptions& options) {
  CLI::App* command = app.add_subcommand("tokenize", "Turn text into token ids, or back");
  command->add_option("MODEL", options.model, "A .gguf file, or a folder with tokenizer.json")
      ->required();
  command->add_option("TEXT", options.text, "The text, or ids with --decode; '-' reads stdin")
      ->required();
  command->add_flag("--decode", options.decode,
                    "Turn ids, separated by spaces or commas, into text");
  command->add_flag("--no-special", options.no_special,
                    "Add no beginning or end token, and read none from the text");
  command->footer(
      "Examples:\n"
      "  rlx tokenize model.gguf \"In the beginning\"\n"
      "  rlx tokenize model.gguf \"2046 365\" --decode\n"
      "  rlx tokenize model.gguf - < text.txt\n"
      "  rlx tokenize model.gguf -- \"-a text that begins with a dash\"\n");
}

void add_bench(CLI::App& app, BenchOptions& options) {
  CLI::App* command = app.add_subcommand("bench", "Measure speed, load time and memory");
  ModelOptions& model = options.model;
  command->add_option("MODEL", model.model, "A .gguf file, or a folder with config.json")
      ->required();
  command->add_option("-p,--prompt", options.prompt, "Tokens of the prompt; 0: no prompt")
      ->check(CLI::Range(0, 1 << 24))
      ->capture_default_str();
  command->add_option("-n,--tokens", options.generate, "Tokens to generate; 0: none")
      ->check(CLI::Range(0, 1 << 24))
      ->capture_default_str();
  command
      ->add_option("-d,--depth", options.depth,
                   "Tokens that the cache holds before the first generated one")
      ->check(CLI::Range(0, 1 << 24))
      ->capture_default_str();
  command
      ->add_option("-t,--threads", options.threads,
                   "Threads; several numbers, with commas between, are measured one after the "
                   "other (default: as many as this process may use)")
      ->check(CLI::Range(1, 1024))
      ->delimiter(',');
  command->add_option("-r,--repeats", options.repeats, "Repetitions")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  add_batch_option(*command, model);
  add_arithmetic_options(*command, model);
  command->add_flag("--profile", options.profile,
                    "Print where the time goes, by op and by kernel, from one more run");
  command->add_option("--json", options.json, "Write all figures to this file");
  command->add_option("--trace", options.trace,
                      "Write a trace of one more run to this file, which Perfetto and "
                      "chrome://tracing open (of the last number of threads)");
  command->footer(
      "Tokens per second are the median of the repetitions, with the least and the most. Bytes "
      "are\n"
      "those of weights and caches that a token needs; their share is of the read bandwidth, and\n"
      "that of the operations of the f32 multiply-add peak, which are measured between the\n"
      "repetitions. The time to the first token is that of the load and of the first prompt.\n\n"
      "Examples:\n"
      "  rlx bench model.gguf -t 1,2\n"
      "  rlx bench model.gguf -p 0 -n 16 --profile\n"
      "  rlx bench model.gguf -p 128 -n 32 -r 3 --json bench.json --trace trace.json\n");
  command->parse_complete_callback([&options] {
    if (options.prompt == 0 && options.generate == 0) {
      throw UsageError("'bench' needs a prompt (-p) or tokens to generate (-n).");
    }
  });
}

CLI::App* find_command(CLI::App& app, const std::string& name) {
  for (CLI::App* command : app.get_subcommands(nullptr)) {
    if (command->get_name() == name) return command;
  }
  return nullptr;
}

// "rlx help" and "rlx help COMMAND".
int show_help(CLI::App& app, const std::string& topic) {
  if (topic.empty() || topic == "help") {
    fmt::print("{}", app.help());
    return 0;
  }
  const CLI::App* command = find_command(app, topic);
  if (command == nullptr) {
    const std::string nearest = find_nearest(topic, list_commands(app));
    throw UsageError(fmt::format("There is no command '{}'.{} The commands are: {}.", topic,
                                 nearest.empty() ? "" : " Did you mean '" + nearest + "'?",
                                 fmt::join(list_commands(app), ", ")));
  }
  fmt::print("{}", command->help("rlx"));
  return 0;
}

void check_run(const RunOptions& options) {
  if (options.has_prompt || !options.prompts.empty() || !options.inputs.empty()) return;
  throw UsageError(
      "'run' needs a prompt (-p TEXT, or -p - for stdin), prompts (--prompts FILE), or tensors "
      "(--input NAME=FILE.npy).");
}

int main_checked(int argc, char** argv) {
  CLI::App app("Runs models from a memory plan that is known before anything is loaded.", "rlx");
  app.set_version_flag("--version", fmt::format("rlx {}", version()));
  app.require_subcommand(0, 1);
  app.allow_extras();
  app.footer(
      "'rlx COMMAND --help' shows a command's options and examples.\n\n"
      "Examples:\n"
      "  rlx run model.gguf -p \"In the beginning\"\n"
      "  rlx chat model.gguf\n"
      "  rlx inspect model.gguf\n"
      "  rlx plan model.gguf -c 4096\n");
  RunOptions run_options;
  ChatOptions chat_options;
  PerplexityOptions perplexity_options;
  InspectOptions inspect_options;
  PlanOptions plan_options;
  TokenizeOptions tokenize_options;
  BenchOptions bench_options;
  EmbedOptions embed_options;
  std::string topic;
  add_run(app, run_options);
  add_chat(app, chat_options);
  add_perplexity(app, perplexity_options);
  add_inspect(app, inspect_options);
  add_plan(app, plan_options);
  add_tokenize(app, tokenize_options);
  add_bench(app, bench_options);
  add_embed(app, embed_options);
  app.add_subcommand("help", "Show this, or the help of a command")
      ->add_option("COMMAND", topic, "The command");
  for (CLI::App* command : app.get_subcommands(nullptr)) command->allow_extras();

  const auto find_given = [&app]() -> const CLI::App* {
    const auto given = app.get_subcommands();
    return given.empty() ? nullptr : given[0];
  };
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForVersion& error) {
    fmt::print("{}\n", error.what());
    return 0;
  } catch (const CLI::ParseError& error) {
    // Help comes this way too, with exit code 0.
    if (error.get_exit_code() == 0) return app.exit(error);
    // A mistyped option is the likelier cause of whatever is missing.
    const CLI::App* command = find_given();
    check_leftovers(app, command);
    throw UsageError(fmt::format("{}. 'rlx {}--help' shows the options.", error.what(),
                                 command == nullptr ? "" : command->get_name() + " "));
  }
  const CLI::App* command = find_given();
  check_leftovers(app, command);
  if (command == nullptr) {
    fmt::print(stderr, "{}", app.help());
    return 2;
  }
  if (command->get_name() == "help") return show_help(app, topic);
  if (command->get_name() == "chat") return chat(chat_options);
  if (command->get_name() == "perplexity") return perplexity(perplexity_options);
  if (command->get_name() == "inspect") return inspect(inspect_options);
  if (command->get_name() == "plan") return plan(plan_options);
  if (command->get_name() == "tokenize") return tokenize(tokenize_options);
  if (command->get_name() == "bench") return bench(bench_options);
  if (command->get_name() == "embed") return embed(embed_options);
  check_run(run_options);
  return run(run_options);
}

// One line, whatever a name in a file holds.
void print_error(std::string message) {
  std::replace_if(
      message.begin(), message.end(),
      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, ' ');
  fmt::print(stderr, "rlx: error: {}\n", message);
}

int main_reporting(int argc, char** argv) {
  try {
    const int code = main_checked(argc, argv);
    if (std::fflush(stdout) != 0) {
      print_error(fmt::format("Cannot write to stdout: {}.", std::strerror(errno)));
      return 1;
    }
    return code;
  } catch (const UsageError& error) {
    print_error(error.what());
    return 2;
  } catch (const Error& error) {
    std::fflush(stdout);
    if (error.code() == ErrorCode::kCancelled) return 130;
    print_error(error.what());
    return 1;
  } catch (const std::bad_alloc&) {
    print_error("There is not enough memory.");
    return 1;
  } catch (const std::exception& error) {
    std::fflush(stdout);
    print_error(error.what());
    return 1;
  }
}

}  // namespace
}  // namespace rlx::cli

int main(int argc, char** argv) { return rlx::cli::main_reporting(argc, argv); }
