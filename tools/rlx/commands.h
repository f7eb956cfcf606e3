// The commands of the rlx program, each a function over plain options. main.cpp reads the command
// line into these; a command prints its result to stdout and throws rlx::Error on failure.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "rlx/language_model.h"

namespace rlx::cli {

// What several commands share: how the model is to be loaded.
struct ModelOptions {
  std::string model;
  int64_t context = 0;
  int64_t max_tokens = 512;
  int64_t parallel = 1;
  int threads = 0;
  std::string cache_type;  // empty: f16 for text, f32 for tensors
  std::string rope_type = "f32";
  std::string activations = "int8";  // or "float"
  std::string device = "cpu";
  std::string budget;            // bytes, such as "2GiB"; empty: none
  bool poison = false;           // check every step of every run
  std::string max_allocation;    // bytes, such as "128MiB"; empty: unlimited
  std::string least_cache_type;  // a budget may narrow caches down to this; empty: keep the type
  int64_t least_context = 0;     // a budget may shorten the context down to this; 0: keep it
};

struct RunOptions {
  ModelOptions model;
  std::string prompt;
  bool has_prompt = false;
  bool echo = false;
  bool has_seed = false;
  GenerateOptions generate;
  std::string prompts;               // a file with a prompt a line
  std::vector<std::string> inputs;   // NAME=FILE.npy
  std::vector<std::string> outputs;  // NAME=FILE.npy
  std::string save_state, load_state;
};

struct ChatOptions {
  ModelOptions model;
  std::string system;
  bool has_system = false;
  std::string chat_template;  // a file or a built-in name; empty: the model's own
  bool has_seed = false;
  GenerateOptions generate{.max_new_tokens = -1};
  std::string save_state, load_state;
};

struct PerplexityOptions {
  ModelOptions model;
  std::string file;
  int64_t max_chunks = 0;  // 0: all
};

struct InspectOptions {
  ModelOptions model;
  bool tensors = false;
  std::string graph;  // "", "source" or "optimized"
  bool program = false;
  bool passes = false;
  std::vector<std::string> disabled_passes;
  bool json = false;
};

struct PlanOptions {
  ModelOptions model;  // a model, a .csv of intervals, or with `check` a saved plan
  bool json = false;
  int top = 0;            // print this many of the largest groups of values
  bool why = false;       // print what would make the plan smaller
  std::string svg, html;  // files to draw the plan into
  std::string diff;       // a model or saved plan to compare with
  bool fail_if_grows = false;
  bool check = false;            // prove the saved plan again
  int64_t plan_effort = 200000;  // nodes; the default of CompileOptions
  // For a .csv:
  int64_t capacity = -1;
  int64_t alignment = 1;
  double seconds = 0;
  std::string out;
};

struct BenchOptions {
  ModelOptions model;                   // its threads and context are not used
  int64_t prompt = 512, generate = 64;  // tokens; 0 leaves that test out
  int64_t depth = 0;                    // tokens in the cache before the first generated one
  std::vector<int> threads;             // one set of measurements each; empty: all processors
  int repeats = 5;
  bool profile = false;
  std::string json, trace;  // files to write
};

struct EmbedOptions {
  std::string model;
  std::vector<std::string> texts;
  std::string file;    // with a text a line
  std::string output;  // .npy; empty: JSON to stdout
  int64_t max_tokens = 0;
  int64_t max_batch = 8;
  int threads = 0;
  std::string activations = "int8";
  bool truncate = false;
};

struct TokenizeOptions {
  std::string model;
  std::string text;
  bool decode = false;
  bool no_special = false;
};

// Each returns the exit code: 0, or 130 when Ctrl-C stopped it.
int run(const RunOptions& options);
// The part of run that takes tensors instead of text.
int run_tensors(const RunOptions& options);
// The part of run that takes many prompts.
int run_prompts(const RunOptions& options);
int embed(const EmbedOptions& options);
int chat(const ChatOptions& options);
int perplexity(const PerplexityOptions& options);
int inspect(const InspectOptions& options);
int plan(const PlanOptions& options);
int tokenize(const TokenizeOptions& options);
int bench(const BenchOptions& options);

// The library's options for these; throws kInvalidArgument for an unknown word.
LanguageModelOptions make_load_options(const ModelOptions& options, DType default_cache_type);

// Set by Ctrl-C while `run` writes text.
extern std::atomic<bool> interrupted;

// The options with which the model fits the budget that `options` ask for, if any; what was given
// up is reported on stderr.
LanguageModelOptions fit_budget(const ModelOptions& options, const LanguageModelOptions& load);

// "512", "64KiB", "1.5GiB", "2GB". Throws kInvalidArgument.
int64_t parse_bytes(const std::string& text);

// "13=-2.5" or "13=-inf". False when the text is something else.
bool parse_logit_bias(const std::string& text, LogitBias& bias);

// Writes the whole text to the file, or nothing: to another name first, which is then renamed.
// Throws kIo.
void write_file(const std::string& path, std::string_view text);

// The lines of a file, or with "-" of stdin; empty ones are left out. Throws kIo, kNotFound, and
// kCancelled as read_stdin does.
std::vector<std::string> read_lines(const std::string& path);

// Puts text on stdout at once. Throws kIo.
void write_text(std::string_view text);

// All of stdin. Throws kIo, and kCancelled when Ctrl-C came first.
std::string read_stdin();

}  // namespace rlx::cli
