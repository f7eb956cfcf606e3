#include <algorithm>

#include "api/language_model_parts.h"
#include "api/text_writer.h"
#include "base/error.h"
#include "rlx/language_model.h"

namespace rlx {
namespace {

// One call of generate.
class Generation {
 public:
  Generation(LanguageModel::Parts& parts, const GenerateOptions& options,
             std::span<const int32_t> prompt)
      : parts_(parts),
        options_(options),
        writer_(parts.require_tokenizer(), options, parts.end_tokens, parts.vocab_size, prompt) {
    parts.check_prompt(prompt);
    parts.check_rolling(options.rolling_keep);
  }

  GenerateResult run(std::span<const int32_t> prompt) {
    const CancelScope cancel_scope(*parts_.session, options_.cancel);
    StopReason reason = StopReason::kMaxTokens;
    try {
      write(prompt.subspan(keep_prefix(prompt)));
    } catch (const Stopped& stopped) {
      reason = stopped.reason;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kCancelled) throw;
      reason = StopReason::kCancelled;
    }
    return writer_.finish(reason);
  }

 private:
  // Makes the cache hold a prefix of the prompt and nothing else; returns the prefix's length. The
  // last token of the prompt always runs, for its logits.
  size_t keep_prefix(std::span<const int32_t> prompt) {
    size_t kept = 0;
    if (options_.reuse_prefix) {
      const std::span<const int32_t> past = parts_.past_tokens;
      const size_t most = std::min(past.size(), prompt.size() - 1);
      while (kept < most && past[kept] == prompt[kept]) ++kept;
    }
    const int64_t reused = parts_.rewind(static_cast<int64_t>(kept));
    writer_.set_reused_tokens(reused);
    return static_cast<size_t>(reused);
  }

  [[noreturn]] void write(std::span<const int32_t> next) {
    int32_t token = 0;
    while (true) {
      writer_.check_may_write();
      if (writer_.num_written() > 0 &&
          static_cast<int64_t>(parts_.past_tokens.size()) >= parts_.context) {
        make_room();
      }
      token = writer_.choose(run_model(next));
      next = {&token, 1};
    }
  }

  // Drops the oldest half of the full context, or ends the text.
  void make_room() {
    if (options_.rolling_keep < 0) throw Stopped{StopReason::kContextFull};
    const std::vector<int32_t> kept = roll_tokens(parts_.past_tokens, options_.rolling_keep);
    const auto there = static_cast<size_t>(parts_.rewind(options_.rolling_keep));
    parts_.run_chunks(std::span(kept).subspan(there), [&](size_t) { writer_.check_stopped(); });
  }

  // The logits that follow the last of these tokens.
  std::span<const float> run_model(std::span<const int32_t> tokens) {
    const auto vocab_size = static_cast<size_t>(parts_.vocab_size);
    // With all logits the last run has a row for each of its tokens.
    const size_t rows =
        parts_.all_logits ? (tokens.size() - 1) % static_cast<size_t>(parts_.max_tokens) + 1 : 1;
    parts_.run_chunks(tokens, [&](size_t done) {
      if (writer_.num_written() > 0) return;
      const GenerateResult& result = writer_.result();
      if (options_.on_prompt) {
        options_.on_prompt(result.reused_tokens + static_cast<int64_t>(done), result.prompt_tokens);
      }
      if (done < tokens.size()) writer_.check_stopped();
    });
    return parts_.last_logits(rows).last(vocab_size);
  }

  LanguageModel::Parts& parts_;
  const GenerateOptions& options_;
  TextWriter writer_;
};

}  // namespace

std::vector<int32_t> roll_tokens(std::span<const int32_t> tokens, int64_t keep) {
  const auto first = static_cast<size_t>(keep);
  const size_t dropped = (tokens.size() - first + 1) / 2;
  std::vector<int32_t> kept(tokens.begin(), tokens.begin() + keep);
  const auto rest = tokens.subspan(first + dropped);
  kept.insert(kept.end(), rest.begin(), rest.end());
  return kept;
}

GenerateResult LanguageModel::generate(std::string_view prompt, const GenerateOptions& options) {
  return generate(parts_->require_tokenizer().encode(prompt), options);
}

GenerateResult LanguageModel::generate(std::span<const int32_t> prompt,
                                       const GenerateOptions& options) {
  return Generation(*parts_, options, prompt).run(prompt);
}

}  // namespace rlx
