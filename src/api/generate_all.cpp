// Several texts at once: each has rows of its own in the caches, and every run takes the next token
// of all texts that are being written together with as much of the waiting prompts as fits. A row's
// result does not depend on the rows beside it, so each text is the same bits as when it is written
// alone.
#include <algorithm>
#include <memory>

#include "api/language_model_parts.h"
#include "api/text_writer.h"
#include "base/error.h"
#include "rlx/language_model.h"

namespace rlx {
namespace {

class ParallelGeneration {
 public:
  ParallelGeneration(LanguageModel::Parts& parts, std::span<const std::vector<int32_t>> prompts,
                     const GenerateOptions& options,
                     const std::function<void(size_t, const GenerateResult&)>& on_result)
      : parts_(parts),
        prompts_(prompts),
        options_(options),
        on_result_(on_result),
        texts_(static_cast<size_t>(parts.num_texts)),
        results_(prompts.size()) {}

  std::vector<GenerateResult> run() {
    const CancelScope cancel_scope(*parts_.session, options_.cancel);
    while (true) {
      for (Text& text : texts_) take_prompt(text);
      collect_tokens();
      if (run_.tokens.empty()) break;
      try {
        parts_.run_texts(run_.tokens, run_.output_rows);
      } catch (const Error& error) {
        if (error.code() != ErrorCode::kCancelled) throw;
        continue;  // check_may_write ends each text
      }
      take_logits();
    }
    return std::move(results_);
  }

 private:
  // A part of the caches and the text that has it.
  struct Text {
    std::unique_ptr<TextWriter> writer;  // null when nobody has it
    size_t prompt = 0;
    std::vector<int32_t> past;     // tokens in the cache
    std::vector<int32_t> pending;  // tokens that must run before the next one is chosen
    int64_t running = 0;           // of the pending ones, in the run at hand
  };

  void take_prompt(Text& text) {
    while (text.writer == nullptr && next_prompt_ < prompts_.size()) {
      text.prompt = next_prompt_++;
      text.pending = prompts_[text.prompt];
      text.past.clear();
      text.writer = std::make_unique<TextWriter>(
          parts_.require_tokenizer(), options_, parts_.end_tokens, parts_.vocab_size, text.pending);
      advance(text, [&] { text.writer->check_may_write(); });
    }
  }

  // Does what may end the text.
  template <typename Step>
  void advance(Text& text, Step step) {
    try {
      step();
    } catch (const Stopped& stopped) {
      results_[text.prompt] = text.writer->finish(stopped.reason);
      text.writer.reset();
      if (on_result_) on_result_(text.prompt, results_[text.prompt]);
    }
  }

  // Texts that wait for one token come first, so that none stands still while prompts are read.
  void collect_tokens() {
    run_.tokens.clear();
    run_.output_rows.clear();
    for (const bool writing : {true, false}) {
      for (size_t i = 0; i < texts_.size(); ++i) {
        Text& text = texts_[i];
        if (text.writer == nullptr || (text.pending.size() == 1) != writing) continue;
        advance(text, [&] { text.writer->check_stopped(); });
        if (text.writer == nullptr) continue;
        const auto room = static_cast<size_t>(parts_.max_tokens) - run_.tokens.size();
        const size_t count = std::min(text.pending.size(), room);
        for (size_t k = 0; k < count; ++k) {
          run_.tokens.push_back({text.pending[k], static_cast<int64_t>(text.past.size() + k),
                                 static_cast<int64_t>(i)});
        }
        text.running = static_cast<int64_t>(count);
        if (count > 0 && count == text.pending.size()) {
          run_.output_rows.push_back(static_cast<int64_t>(run_.tokens.size()) - 1);
        }
      }
    }
  }

  void take_logits() {
    const auto vocab_size = static_cast<size_t>(parts_.vocab_size);
    const std::span<const float> logits = parts_.last_logits(run_.output_rows.size());
    for (size_t row = 0; row < run_.output_rows.size(); ++row) {
      Text& text =
          texts_[static_cast<size_t>(run_.tokens[static_cast<size_t>(run_.output_rows[row])].text)];
      int32_t token = -1;
      advance(text,
              [&] { token = text.writer->choose(logits.subspan(row * vocab_size, vocab_size)); });
      if (text.writer != nullptr) text.pending.push_back(token);
    }
    for (Text& text : texts_) {
      if (text.writer == nullptr || text.running == 0) continue;
      const auto end = text.pending.begin() + text.running;
      text.past.insert(text.past.end(), text.pending.begin(), end);
      text.pending.erase(text.pending.begin(), end);
      text.running = 0;
      if (text.writer->num_written() > 0 && text.pending.size() == 1) {
        advance(text, [&] { prepare_next(text); });
      }
    }
  }

  // Before the token that was just chosen may run.
  void prepare_next(Text& text) {
    text.writer->check_may_write();
    if (static_cast<int64_t>(text.past.size()) < parts_.context) return;
    if (options_.rolling_keep < 0) throw Stopped{StopReason::kContextFull};
    const int32_t token = text.pending.front();
    text.pending = roll_tokens(text.past, options_.rolling_keep);
    text.pending.push_back(token);
    text.past.clear();
  }

  LanguageModel::Parts& parts_;
  const std::span<const std::vector<int32_t>> prompts_;
  const GenerateOptions& options_;
  const std::function<void(size_t, const GenerateResult&)>& on_result_;
  std::vector<Text> texts_;
  std::vector<GenerateResult> results_;
  size_t next_prompt_ = 0;
  struct {
    std::vector<LanguageModel::Parts::TextToken> tokens;
    std::vector<int64_t> output_rows;
  } run_;
};

}  // namespace

std::vector<GenerateResult> LanguageModel::generate_all(
    std::span<const std::string> prompts, const GenerateOptions& options,
    const std::function<void(size_t index, const GenerateResult& result)>& on_result) {
  Parts& p = *parts_;
  std::vector<std::vector<int32_t>> tokens;
  for (size_t i = 0; i < prompts.size(); ++i) {
    tokens.push_back(p.require_tokenizer().encode(prompts[i]));
    with_context(fmt::format("prompt {}", i + 1), [&] { p.check_prompt(tokens.back()); });
  }
  p.check_rolling(options.rolling_keep);
  GenerateOptions quiet = options;
  quiet.on_text = nullptr;
  quiet.on_prompt = nullptr;
  quiet.reuse_prefix = false;
  if (p.num_texts > 1) {
    p.rewind(0);
    return ParallelGeneration(p, tokens, quiet, on_result).run();
  }
  std::vector<GenerateResult> results;
  for (size_t i = 0; i < tokens.size(); ++i) {
    results.push_back(generate(tokens[i], quiet));
    if (on_result) on_result(i, results.back());
  }
  return results;
}

}  // namespace rlx
