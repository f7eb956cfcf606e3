#include "rlx/language_model.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>

#include "api/compiled_model.h"
#include "backends/cpu/session.h"
#include "base/error.h"
#include "text/sampler.h"

namespace rlx {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

const char* to_string(StopReason reason) {
  switch (reason) {
    case StopReason::kEndToken:
      return "end token";
    case StopReason::kMaxTokens:
      return "token limit";
    case StopReason::kContextFull:
      return "context full";
    case StopReason::kCancelled:
      return "cancelled";
  }
  return "unknown";
}

struct LanguageModel::Parts {
  Parts(CompiledModel compiled, bool all_logits_of_run)
      : model(std::move(compiled)),
        all_logits(all_logits_of_run),
        pool(std::make_shared<ThreadPool>(model.target.max_threads)),
        session(cpu::make_session(model.program, model.file, pool, model.target)),
        input_ids(find_input(*model.program, "input_ids")),
        logits(find_output(*model.program, "logits")),
        tokens_symbol(model.program->symbols.index_of("tokens")),
        past_symbol(model.program->symbols.index_of("past")),
        end_tokens(model.file->list_end_tokens()) {
    const Program& program = *model.program;
    extents.resize(program.symbols.symbols().size());
    max_tokens = program.symbols.symbols()[tokens_symbol].upper;
    context = program.symbols.symbols()[past_symbol].upper + 1;
    vocab_size = program.values[program.outputs[logits].value].type.shape[2].constant();
  }

  // One run over at most max_tokens tokens that follow the `past` ones.
  void run_chunk(std::span<const int32_t> tokens) {
    extents[tokens_symbol] = static_cast<int64_t>(tokens.size());
    extents[past_symbol] = past;
    session->set_extents(extents).throw_if_failed();
    const TensorView ids = session->input(input_ids);
    for (size_t i = 0; i < tokens.size(); ++i) ids.as<int64_t>()[i] = tokens[i];
    session->run().throw_if_failed();
    past += static_cast<int64_t>(tokens.size());
  }

  void check_tokens(std::span<const int32_t> tokens) const {
    for (int32_t token : tokens) {
      if (token < 0 || token >= vocab_size) {
        throw_error(ErrorCode::kOutOfRange, "Token id {} is outside the vocabulary of {} tokens.",
                    token, vocab_size);
      }
    }
    if (past + static_cast<int64_t>(tokens.size()) > context) {
      throw_error(ErrorCode::kOutOfRange,
                  "{} tokens after {} do not fit into the context of {} tokens.", tokens.size(),
                  past, context);
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
  std::shared_ptr<ThreadPool> pool;
  std::unique_ptr<Session> session;
  std::optional<Tokenizer> tokenizer;
  int input_ids, logits;
  int32_t tokens_symbol, past_symbol;
  std::vector<int32_t> end_tokens;
  std::vector<int64_t> extents;
  int64_t max_tokens = 0, context = 0, vocab_size = 0;
  int64_t past = 0;
};

LanguageModel::LanguageModel(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
LanguageModel::LanguageModel(LanguageModel&&) noexcept = default;
LanguageModel& LanguageModel::operator=(LanguageModel&&) noexcept = default;
LanguageModel::~LanguageModel() = default;

LanguageModel LanguageModel::load(const std::string& path, const LanguageModelOptions& options) {
  const std::shared_ptr<const ModelFile> file = ModelFile::open(path);
  check_decoder(*file);
  auto parts = std::make_unique<Parts>(
      compile_model(file, make_graph_options(options), make_target_options(options)),
      options.all_logits);
  if (options.load_tokenizer) {
    parts->tokenizer.emplace(load_tokenizer(*parts->model.file));
    if (parts->tokenizer->vocab_size() > parts->vocab_size) {
      throw_error(ErrorCode::kCorruptData,
                  "{}: The tokenizer has {} tokens, but the model has logits for {}.", path,
                  parts->tokenizer->vocab_size(), parts->vocab_size);
    }
  }
  return LanguageModel(std::move(parts));
}

PlanReport LanguageModel::plan(const std::string& path, const LanguageModelOptions& options) {
  return compile_model(ModelFile::open(path), make_graph_options(options),
                       make_target_options(options))
      .report;
}

std::span<const float> LanguageModel::evaluate(std::span<const int32_t> tokens) {
  Parts& p = *parts_;
  if (tokens.empty()) {
    throw_error(ErrorCode::kInvalidArgument, "No tokens are given; at least one is expected.");
  }
  p.check_tokens(tokens);
  if (p.all_logits) {
    if (static_cast<int64_t>(tokens.size()) > p.max_tokens) {
      throw_error(ErrorCode::kOutOfRange,
                  "{} tokens are given, but a run with all logits takes at most {}.", tokens.size(),
                  p.max_tokens);
    }
    p.run_chunk(tokens);
    return p.last_logits(tokens.size());
  }
  p.run_chunks(tokens, [](size_t) {});
  return p.last_logits(1);
}

namespace {

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

}  // namespace

GenerateResult LanguageModel::generate(std::string_view prompt, const GenerateOptions& options) {
  Parts& p = *parts_;
  const Tokenizer& tokenizer = p.require_tokenizer();
  Sampler sampler({.temperature = options.temperature,
                   .top_k = options.top_k,
                   .top_p = options.top_p,
                   .min_p = options.min_p,
                   .repeat_penalty = options.repeat_penalty,
                   .repeat_last_n = options.repeat_last_n,
                   .seed = options.seed},
                  static_cast<int32_t>(p.vocab_size));
  const std::vector<int32_t> prompt_tokens = tokenizer.encode(prompt);
  if (prompt_tokens.empty()) {
    throw_error(ErrorCode::kInvalidArgument,
                "The prompt has no tokens, and the model has no token to begin a text with.");
  }
  if (static_cast<int64_t>(prompt_tokens.size()) > p.context) {
    throw_error(ErrorCode::kOutOfRange,
                "{}: The prompt has {} tokens, but the context holds {} tokens.",
                p.model.file->path(), prompt_tokens.size(), p.context);
  }
  for (int32_t token : prompt_tokens) sampler.accept(token);

  GenerateResult result;
  result.prompt_tokens = static_cast<int64_t>(prompt_tokens.size());
  StreamDecoder decoder(tokenizer);
  const auto emit = [&](std::string piece) {
    if (piece.empty()) return;
    if (options.on_text) options.on_text(piece);
    result.text += piece;
  };

  reset();
  const CancelScope cancel_scope(*p.session, options.cancel);
  const auto is_cancelled = [&] { return options.cancel != nullptr && options.cancel->load(); };
  const auto start = std::chrono::steady_clock::now();
  auto first_token = start;
  std::span<const int32_t> next = prompt_tokens;
  int32_t token = 0;
  try {
    while (true) {
      if (is_cancelled()) throw Error(ErrorCode::kCancelled, "");
      if (options.max_new_tokens >= 0 &&
          static_cast<int64_t>(result.tokens.size()) >= options.max_new_tokens) {
        result.stop_reason = StopReason::kMaxTokens;
        break;
      }
      if (!result.tokens.empty() && p.past >= p.context) {
        result.stop_reason = StopReason::kContextFull;
        break;
      }
      size_t rows = 1;
      p.run_chunks(next, [&](size_t done) {
        // With all logits the last run has a row for each of its tokens.
        if (p.all_logits) rows = (next.size() - 1) % static_cast<size_t>(p.max_tokens) + 1;
        if (result.tokens.empty() && options.on_prompt) {
          options.on_prompt(static_cast<int64_t>(done), result.prompt_tokens);
        }
      });
      token = sampler.sample(p.last_logits(rows).last(static_cast<size_t>(p.vocab_size)));
      if (result.tokens.empty()) first_token = std::chrono::steady_clock::now();
      if (std::find(p.end_tokens.begin(), p.end_tokens.end(), token) != p.end_tokens.end()) {
        result.stop_reason = StopReason::kEndToken;
        break;
      }
      result.tokens.push_back(token);
      emit(decoder.push(token));
      next = {&token, 1};
    }
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kCancelled) throw;
    result.stop_reason = StopReason::kCancelled;
  }
  emit(decoder.finish());
  const double total = seconds_since(start);
  result.prompt_seconds = std::chrono::duration<double>(first_token - start).count();
  if (first_token == start) result.prompt_seconds = total;
  result.generate_seconds = total - result.prompt_seconds;
  return result;
}

void LanguageModel::reset() { parts_->past = 0; }
int64_t LanguageModel::num_past_tokens() const { return parts_->past; }

std::vector<int32_t> LanguageModel::tokenize(std::string_view text) const {
  return parts_->require_tokenizer().encode(text);
}

std::string LanguageModel::detokenize(std::span<const int32_t> tokens) const {
  return parts_->require_tokenizer().decode(tokens);
}

int64_t LanguageModel::vocab_size() const { return parts_->vocab_size; }
int64_t LanguageModel::context() const { return parts_->context; }
int LanguageModel::threads() const { return parts_->pool->num_threads(); }
const PlanReport& LanguageModel::plan_report() const { return parts_->model.report; }

}  // namespace rlx
