// A language model ready to write text: load it, then generate. Loading maps the file, plans every
// byte and compiles; generating allocates nothing inside the model.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/chat.h"
#include "rlx/dtype.h"
#include "rlx/plan.h"
#include "rlx/profile.h"
#include "rlx/sampling.h"

namespace rlx {

struct LanguageModelOptions {
  int64_t context = 0;       // rows of the key/value cache; 0: the model's own context length
  int64_t max_tokens = 512;  // most prompt tokens that go through the model at once
  int64_t parallel = 1;      // texts that generate_all writes at once, each with its own cache rows
  int threads = 0;           // 0: as many as this process may use
  DType cache_dtype = DType::kF16;   // f32, f16, bf16 or q8_0
  DType rope_dtype = DType::kF32;    // f16 or bf16 rounds the rotary frequencies, to compare with
                                     // programs that do
  bool quantize_activations = true;  // multiply packed weights in int8; false: in float
  bool all_logits = false;           // keep the logits of every token of a run, not only the last
  bool load_tokenizer = true;        // false: token ids only
  // Proves of each step that it reads only what was written and writes only what it declares; a
  // fault blames the kernel and the value. Some hundred times slower.
  bool poison = false;
  // Plans as for a device whose largest allocation this is: no value crosses from one block of so
  // many bytes (whole pages of 4,096) to the next. 0: unlimited.
  int64_t max_allocation_bytes = 0;
};

// The steps of the choice run in the order of docs/generation.md: bias, penalties, top-k, typical,
// top-p, min-p, temperature.
struct GenerateOptions {
  int64_t max_new_tokens = 128;  // negative: until the context is full
  float temperature = 0.8f;      // 0: always the likeliest token
  int32_t top_k = 40;            // 0: off
  float typical_p = 1.0f;        // 1: off
  float top_p = 0.95f;
  float min_p = 0.05f;
  float repeat_penalty = 1.0f;  // 1: off
  float presence_penalty = 0;   // off a logit whose token is among the last repeat_last_n tokens
  float frequency_penalty = 0;  // the same, times the number of occurrences
  int32_t repeat_last_n = 64;
  std::vector<LogitBias> logit_bias;
  uint64_t seed = 0;
  // Text that ends the generation and is not part of the result. UTF-8, none empty.
  std::vector<std::string> stop;
  double max_seconds = 0;  // of the whole call, looked at after each token; 0: no limit
  // When the context is full: negative stops; otherwise the first `rolling_keep` tokens and the
  // newer half of the others stay, run again at their new places, and the text goes on.
  int64_t rolling_keep = -1;
  // Begin with the longest prefix of the prompt that the cache holds from before, instead of
  // running it again. The result is the same.
  bool reuse_prefix = false;
  // Called with each piece of text as it is made, whole UTF-8 characters; may be empty.
  std::function<void(std::string_view piece)> on_text;
  // Called as the prompt goes through the model, with the tokens read so far and in all; may be
  // empty.
  std::function<void(int64_t done, int64_t total)> on_prompt;
  // While true, generation stops soon, also inside a long prompt; may be null.
  const std::atomic<bool>* cancel = nullptr;
};

enum class StopReason : uint8_t {
  kEndToken,
  kMaxTokens,
  kContextFull,
  kCancelled,
  kStopString,
  kMaxTime,
};
const char* to_string(StopReason reason);

struct GenerateResult {
  std::string text;  // up to the stop string, if one ended it
  std::vector<int32_t>
      tokens;  // generated, the end token excluded; a stop string's tokens included
  StopReason stop_reason = StopReason::kMaxTokens;
  int64_t prompt_tokens = 0;
  int64_t reused_tokens = 0;    // of the prompt, that the cache held already
  double prompt_seconds = 0;    // until the first token was chosen
  double generate_seconds = 0;  // from then on
};

struct TokenizeOptions {
  bool add_special = true;    // put the tokens around the text that the model expects
  bool parse_special = true;  // read special tokens that are written in the text
};

// Movable. One caller at a time; several models may be used from several threads.
class LanguageModel {
 public:
  // `path` is a .gguf file, or a folder with config.json, tokenizer.json and *.safetensors. Throws
  // rlx::Error naming the file and what is wrong with it.
  static LanguageModel load(const std::string& path, const LanguageModelOptions& options = {});
  LanguageModel(LanguageModel&&) noexcept;
  LanguageModel& operator=(LanguageModel&&) noexcept;
  ~LanguageModel();

  // The plan of the same file and options, from headers alone: reads no weight, allocates no arena.
  static PlanReport plan(const std::string& path, const LanguageModelOptions& options = {});

  // Starts anew with the prompt and writes on from it. Throws kOutOfRange when the prompt does not
  // fit the context, and kInvalidArgument for an option out of its range and for logits that are
  // not numbers, naming the step.
  GenerateResult generate(std::string_view prompt, const GenerateOptions& options = {});
  // The same for a prompt of token ids, to which nothing is added.
  GenerateResult generate(std::span<const int32_t> prompt, const GenerateOptions& options = {});

  // Writes on from each of the prompts, LanguageModelOptions::parallel of them at once; a finished
  // text makes room for the next prompt. Each result is that of generate, bit for bit; the options'
  // seed, limits and stop strings hold for each text, on_text and on_prompt are not called, and no
  // prefix is reused. `on_result` is called with each result as it is finished; may be empty.
  // Throws as generate, naming the prompt. What was read before is forgotten.
  std::vector<GenerateResult> generate_all(
      std::span<const std::string> prompts, const GenerateOptions& options = {},
      const std::function<void(size_t index, const GenerateResult& result)>& on_result = {});

  // Appends tokens to what the model has read and returns the logits: of the last token, or with
  // `all_logits` of each token of the call ([tokens, vocabulary], at most max_tokens tokens then).
  // Valid until the next call. Throws kOutOfRange naming a bad id or a context that is full.
  std::span<const float> evaluate(std::span<const int32_t> tokens);
  // Forgets what was read.
  void reset();
  // Forgets what was read after the first `num_tokens` tokens. Throws kOutOfRange when fewer were
  // read. Layers with a sliding window keep only the newest rows: when they have given up what a
  // token there would read, the first tokens run again.
  void rewind(int64_t num_tokens);
  int64_t num_past_tokens() const;
  // The tokens that were read and are in the cache. Valid until the next call that reads or
  // forgets.
  std::span<const int32_t> past_tokens() const;

  // Writes the tokens that were read and their cache to a file: all of it or, on failure, nothing.
  // Throws kIo, and kInvalidArgument when nothing was read.
  void save_state(const std::string& path) const;
  // Continues where save_state stopped; what was read before is forgotten. The context may be
  // another one if the tokens fit. Throws, and changes nothing, when the file is not whole
  // (kCorruptData), or is of another model, cache type or way of computing (kInvalidArgument),
  // naming both sides.
  void load_state(const std::string& path);

  // The chat template that the model's file carries. Throws kNotFound when it has none, and what
  // the constructor of ChatTemplate throws.
  ChatTemplate chat_template() const;
  // Another template with this model's special tokens.
  ChatTemplate make_chat_template(std::string_view source, const std::string& name) const;

  std::vector<int32_t> tokenize(std::string_view text, const TokenizeOptions& options = {}) const;
  std::string detokenize(std::span<const int32_t> tokens) const;

  int64_t vocab_size() const;
  int64_t context() const;
  int threads() const;

  // What the last run of the program did (the last token, or the last piece of a prompt), step by
  // step. Times are there only while profiling is on, which costs two readings of the clock for
  // each step and thread; while it is off nothing is measured. Empty before the first run.
  std::vector<ProfiledStep> profile_last_run() const;
  void set_profiling(bool on);

  const PlanReport& plan_report() const;

  struct Parts;  // internal

 private:
  explicit LanguageModel(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace rlx
