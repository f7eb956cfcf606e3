// What a LanguageModel holds: the compiled program, its session, and the tokens that its cache
// stands for. Inside the library alone; the files that make up the class share it.
#pragma once

#include <algorithm>
#include <optional>

#include "api/compiled_model.h"
#include "backends/cpu/session.h"
#include "base/error.h"
#include "ops/cache.h"
#include "rlx/language_model.h"
#include "runtime/step_times.h"

namespace rlx {

// Takes the caller's flag from the session again, however the generation ends.
class CancelScope {
 public:
  CancelScope(Session& session, const std::atomic<bool>* flag) : session_(session) {
    session_.set_cancel_flag(flag);
  }
  ~CancelScope() { session_.set_cancel_flag(nullptr); }
  CancelScope(const CancelScope&) = delete;
  CancelScope& operator=(const CancelScope&) = delete;

 private:
  Session& session_;
};

// What stays of the tokens when a full context makes room: the first `keep`, and the newer half of
// the others.
std::vector<int32_t> roll_tokens(std::span<const int32_t> tokens, int64_t keep);

struct LanguageModel::Parts {
  Parts(CompiledModel compiled, const LanguageModelOptions& options)
      : model(std::move(compiled)),
        all_logits(options.all_logits),
        pool(std::make_shared<ThreadPool>(model.target.max_threads)),
        session(cpu::make_session(model.program, model.file, pool, model.target,
                                  {.poison = options.poison})),
        input_ids(find_input(*model.program, "input_ids")),
        logits(find_output(*model.program, "logits")),
        tokens_symbol(model.program->symbols.index_of("tokens")),
        past_symbol(model.program->symbols.index_of("past")),
        end_tokens(list_end_tokens(*model.file, nullptr)) {
    const Program& program = *model.program;
    extents.resize(program.symbols.symbols().size());
    max_tokens = program.symbols.symbols()[tokens_symbol].upper;
    context = program.symbols.symbols()[past_symbol].upper + 1;
    vocab_size = program.values[program.outputs[logits].value].type.shape[2].constant();
    past_tokens.reserve(static_cast<size_t>(context));  // a run allocates nothing
    if (program.symbols.find("outputs") != nullptr) {
      outputs_symbol = program.symbols.index_of("outputs");
      num_texts = program.symbols.symbols()[outputs_symbol].upper;
      if (num_texts > 1) {
        positions = find_input(program, "positions");
        texts = find_input(program, "texts");
        output_rows = find_input(program, "output_rows");
      }
    }
    for (const Instruction& instruction : program.instructions) {
      const auto* attention = instruction.op.as<CachedAttention>();
      if (attention == nullptr || attention->window == 0) continue;
      const int64_t rows = program.values[instruction.inputs[1]].type.shape[1].constant();
      if (rows < context) rings.push_back({rows, attention->window});
    }
  }

  // A token of one of several texts, and where it stands there.
  struct TextToken {
    int32_t id;
    int64_t position, text;
  };

  // One run over at most max_tokens tokens of a program for several texts. Its logits are those
  // after the tokens at `rows`, or of any token when there are none.
  void run_texts(std::span<const TextToken> tokens, std::span<const int64_t> rows) {
    extents[tokens_symbol] = static_cast<int64_t>(tokens.size());
    extents[past_symbol] = 0;
    extents[outputs_symbol] = std::max<int64_t>(1, static_cast<int64_t>(rows.size()));
    session->set_extents(extents).throw_if_failed();
    const TensorView ids = session->input(input_ids);
    const TensorView places = session->input(positions);
    const TensorView owners = session->input(texts);
    for (size_t i = 0; i < tokens.size(); ++i) {
      ids.as<int64_t>()[i] = tokens[i].id;
      places.as<int64_t>()[i] = tokens[i].position;
      owners.as<int64_t>()[i] = tokens[i].text;
    }
    const TensorView wanted = session->input(output_rows);
    wanted.as<int64_t>()[0] = 0;
    std::copy(rows.begin(), rows.end(), wanted.as<int64_t>());
    has_run = true;
    session->run().throw_if_failed();
  }

  // One run over at most max_tokens tokens that follow the `past` ones.
  void run_chunk(std::span<const int32_t> tokens) {
    if (num_texts > 1) {
      std::vector<TextToken> run;
      for (const int32_t token : tokens) {
        run.push_back({token, static_cast<int64_t>(past_tokens.size() + run.size()), 0});
      }
      const int64_t last = static_cast<int64_t>(tokens.size()) - 1;
      written_rows = std::max(written_rows, run.back().position + 1);
      run_texts(run, std::span(&last, 1));
      past_tokens.insert(past_tokens.end(), tokens.begin(), tokens.end());
      return;
    }
    extents[tokens_symbol] = static_cast<int64_t>(tokens.size());
    extents[past_symbol] = static_cast<int64_t>(past_tokens.size());
    session->set_extents(extents).throw_if_failed();
    const TensorView ids = session->input(input_ids);
    for (size_t i = 0; i < tokens.size(); ++i) ids.as<int64_t>()[i] = tokens[i];
    // Also a run that is cancelled may have written.
    written_rows = std::max(written_rows, static_cast<int64_t>(past_tokens.size() + tokens.size()));
    session->run().throw_if_failed();
    past_tokens.insert(past_tokens.end(), tokens.begin(), tokens.end());
    has_run = true;
  }

  void check_prompt(std::span<const int32_t> prompt) const {
    if (prompt.empty()) {
      throw_error(ErrorCode::kInvalidArgument,
                  "The prompt has no tokens, and the model has no token to begin a text with.");
    }
    if (static_cast<int64_t>(prompt.size()) > context) {
      throw_error(ErrorCode::kOutOfRange,
                  "{}: The prompt has {} tokens, but the context holds {} tokens.",
                  model.file->path(), prompt.size(), context);
    }
  }

  void check_rolling(int64_t keep) const {
    if (keep < context - 1) return;
    throw_error(ErrorCode::kInvalidArgument,
                "A rolling context is to keep the first {} tokens, but of a context of {} at most "
                "{} can stay.",
                keep, context, context - 2);
  }

  void check_tokens(std::span<const int32_t> tokens) const {
    for (int32_t token : tokens) {
      if (token < 0 || token >= vocab_size) {
        throw_error(ErrorCode::kOutOfRange, "Token id {} is outside the vocabulary of {} tokens.",
                    token, vocab_size);
      }
    }
    if (static_cast<int64_t>(past_tokens.size() + tokens.size()) > context) {
      throw_error(ErrorCode::kOutOfRange,
                  "{} tokens after {} do not fit into the context of {} tokens.", tokens.size(),
                  past_tokens.size(), context);
    }
  }

  // Runs all tokens, max_tokens at a time, and tells `on_chunk` after each how many are done.
  template <typename OnChunk>
  void run_chunks(std::span<const int32_t> tokens, OnChunk&& on_chunk) {
    for (size_t done = 0; done < tokens.size();) {
      const size_t count = std::min(tokens.size() - done, static_cast<size_t>(max_tokens));
      run_chunk(tokens.subspan(done, count));
      done += count;
      on_chunk(done);
    }
  }

  // Rows of the cache after the first `num_tokens` count as empty from now on; returns num_tokens.
  // Where a layer with a sliding window does not hold any more what a token there would read, the
  // whole cache is empty, and 0 is returned.
  int64_t rewind(int64_t num_tokens) {
    for (const Ring& ring : rings) {
      const int64_t first_read = std::max<int64_t>(0, num_tokens - ring.window + 1);
      if (first_read < written_rows - ring.rows) num_tokens = 0;
    }
    past_tokens.resize(static_cast<size_t>(num_tokens));
    if (num_tokens == 0) written_rows = 0;
    return num_tokens;
  }

  // The logits of the last run, [rows, vocabulary].
  std::span<const float> last_logits(size_t rows) {
    return {session->output(logits).as<float>(), rows * static_cast<size_t>(vocab_size)};
  }

  const Tokenizer& require_tokenizer() const {
    if (!tokenizer) {
      throw_error(ErrorCode::kNotFound, "{}: The model was loaded without a tokenizer.",
                  model.file->path());
    }
    return *tokenizer;
  }

  CompiledModel model;
  bool all_logits;
  std::string computing;  // what decides the cache's numbers besides model and cache type
  std::shared_ptr<ThreadPool> pool;
  std::unique_ptr<Session> session;
  std::optional<Tokenizer> tokenizer;
  int input_ids, logits;
  int32_t tokens_symbol, past_symbol;
  // Of a program for several texts.
  int64_t num_texts = 1;
  int32_t outputs_symbol = -1;
  int positions = -1, texts = -1, output_rows = -1;
  std::vector<int32_t> end_tokens;
  std::vector<int64_t> extents;
  int64_t max_tokens = 0, context = 0, vocab_size = 0;
  std::vector<int32_t> past_tokens;  // what the cache holds, in order
  bool has_run = false;
  std::unique_ptr<StepTimes> step_times;  // null unless profiling
  // Caches whose rows are used in turn.
  struct Ring {
    int64_t rows, window;
  };
  std::vector<Ring> rings;
  int64_t written_rows = 0;  // of a text's places, the end of those written since it began
};

}  // namespace rlx
