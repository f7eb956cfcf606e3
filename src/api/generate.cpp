#include <algorithm>
#include <chrono>

#include "api/language_model_parts.h"
#include "base/error.h"
#include "rlx/language_model.h"
#include "text/sampler.h"
#include "text/stop_strings.h"

namespace rlx {

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
    case StopReason::kStopString:
      return "stop string";
    case StopReason::kMaxTime:
      return "time limit";
  }
  return "unknown";
}

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

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

Sampler make_sampler(const GenerateOptions& options, int64_t vocab_size) {
  return Sampler({.logit_bias = options.logit_bias,
                  .repeat_penalty = options.repeat_penalty,
                  .frequency_penalty = options.frequency_penalty,
                  .presence_penalty = options.presence_penalty,
                  .repeat_last_n = options.repeat_last_n,
                  .top_k = options.top_k,
                  .typical_p = options.typical_p,
                  .top_p = options.top_p,
                  .min_p = options.min_p,
                  .temperature = options.temperature,
                  .seed = options.seed},
                 static_cast<int32_t>(vocab_size));
}

// Thrown inside a generation and caught at its end.
struct Stopped {
  StopReason reason;
};

// One call of generate.
class Generation {
 public:
  Generation(LanguageModel::Parts& parts, const GenerateOptions& options)
      : parts_(parts),
        options_(options),
        sampler_(make_sampler(options, parts.vocab_size)),
        stop_(options.stop),
        decoder_(parts.require_tokenizer()) {
    if (!(options.max_seconds >= 0)) {
      throw_error(ErrorCode::kInvalidArgument,
                  "The time limit is {} seconds, but it must be at least 0.", options.max_seconds);
    }
  }

  GenerateResult run(std::span<const int32_t> prompt) {
    check_prompt(prompt);
    for (const int32_t token : prompt) sampler_.accept(token);
    result_.prompt_tokens = static_cast<int64_t>(prompt.size());
    const CancelScope cancel_scope(*parts_.session, options_.cancel);
    start_ = first_token_ = Clock::now();
    try {
      write(prompt.subspan(keep_prefix(prompt)));
    } catch (const Stopped& stopped) {
      result_.stop_reason = stopped.reason;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kCancelled) throw;
      result_.stop_reason = StopReason::kCancelled;
    }
    show(stop_.push(decoder_.finish()));
    show(stop_.finish());
    const double total = seconds_since(start_);
    result_.prompt_seconds = std::chrono::duration<double>(first_token_ - start_).count();
    if (first_token_ == start_) result_.prompt_seconds = total;
    result_.generate_seconds = total - result_.prompt_seconds;
    return std::move(result_);
  }

 private:
  void check_prompt(std::span<const int32_t> prompt) const {
    if (prompt.empty()) {
      throw_error(ErrorCode::kInvalidArgument,
                  "The prompt has no tokens, and the model has no token to begin a text with.");
    }
    if (static_cast<int64_t>(prompt.size()) > parts_.context) {
      throw_error(ErrorCode::kOutOfRange,
                  "{}: The prompt has {} tokens, but the context holds {} tokens.",
                  parts_.model.file->path(), prompt.size(), parts_.context);
    }
  }

  // Makes the cache hold a prefix of the prompt and nothing else; returns the prefix's length. The
  // last token of the prompt always runs, for its logits.
  size_t keep_prefix(std::span<const int32_t> prompt) {
    size_t kept = 0;
    if (options_.reuse_prefix) {
      const std::span<const int32_t> past = parts_.past_tokens;
      const size_t most = std::min(past.size(), prompt.size() - 1);
      while (kept < most && past[kept] == prompt[kept]) ++kept;
    }
    result_.reused_tokens = parts_.rewind(static_cast<int64_t>(kept));
    return static_cast<size_t>(result_.reused_tokens);
  }

  void check_stopped() const {
    if (options_.cancel != nullptr && options_.cancel->load())
      throw Stopped{StopReason::kCancelled};
    if (options_.max_seconds > 0 && seconds_since(start_) >= options_.max_seconds) {
      throw Stopped{StopReason::kMaxTime};
    }
  }

  void write(std::span<const int32_t> next) {
    const std::vector<int32_t>& end_tokens = parts_.end_tokens;
    int32_t token = 0;
    while (true) {
      check_stopped();
      const auto written = static_cast<int64_t>(result_.tokens.size());
      if (options_.max_new_tokens >= 0 && written >= options_.max_new_tokens) {
        throw Stopped{StopReason::kMaxTokens};
      }
      if (written > 0 && static_cast<int64_t>(parts_.past_tokens.size()) >= parts_.context) {
        throw Stopped{StopReason::kContextFull};
      }
      token = sampler_.sample(run_model(next));
      if (written == 0) first_token_ = Clock::now();
      if (std::find(end_tokens.begin(), end_tokens.end(), token) != end_tokens.end()) {
        throw Stopped{StopReason::kEndToken};
      }
      result_.tokens.push_back(token);
      show(stop_.push(decoder_.push(token)));
      if (stop_.is_stopped()) throw Stopped{StopReason::kStopString};
      next = {&token, 1};
    }
  }

  // The logits that follow the last of these tokens.
  std::span<const float> run_model(std::span<const int32_t> tokens) {
    const auto vocab_size = static_cast<size_t>(parts_.vocab_size);
    // With all logits the last run has a row for each of its tokens.
    const size_t rows =
        parts_.all_logits ? (tokens.size() - 1) % static_cast<size_t>(parts_.max_tokens) + 1 : 1;
    parts_.run_chunks(tokens, [&](size_t done) {
      if (!result_.tokens.empty()) return;
      if (options_.on_prompt) {
        options_.on_prompt(result_.reused_tokens + static_cast<int64_t>(done),
                           result_.prompt_tokens);
      }
      if (done < tokens.size()) check_stopped();
    });
    return parts_.last_logits(rows).last(vocab_size);
  }

  void show(const std::string& piece) {
    if (piece.empty()) return;
    if (options_.on_text) options_.on_text(piece);
    result_.text += piece;
  }

  LanguageModel::Parts& parts_;
  const GenerateOptions& options_;
  Sampler sampler_;
  StopStrings stop_;
  StreamDecoder decoder_;
  GenerateResult result_;
  Clock::time_point start_, first_token_;
};

}  // namespace

GenerateResult LanguageModel::generate(std::string_view prompt, const GenerateOptions& options) {
  return generate(parts_->require_tokenizer().encode(prompt), options);
}

GenerateResult LanguageModel::generate(std::span<const int32_t> prompt,
                                       const GenerateOptions& options) {
  return Generation(*parts_, options).run(prompt);
}

}  // namespace rlx
