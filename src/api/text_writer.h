// One text in the making: chooses each token from the logits that the model gave, keeps the text,
// and knows when it ends. It does not run the model, so the same object serves a text that is
// written alone and one of several that share runs.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>

#include "rlx/language_model.h"
#include "text/sampler.h"
#include "text/stop_strings.h"
#include "text/tokenizer.h"

namespace rlx {

// Thrown inside a generation and caught at its end.
struct Stopped {
  StopReason reason;
};

class TextWriter {
 public:
  // The tokenizer, the options and the end tokens must outlive this object. The time limit counts
  // from here. Throws kInvalidArgument for an option out of its range.
  TextWriter(const Tokenizer& tokenizer, const GenerateOptions& options,
             std::span<const int32_t> end_tokens, int64_t vocab_size,
             std::span<const int32_t> prompt);

  // Throws Stopped when the text was cancelled or its time is over.
  void check_stopped() const;
  // Throws Stopped when no further token may be written.
  void check_may_write() const;
  // Chooses the token that follows, from the logits after the text so far. Throws Stopped when it,
  // or what it completes, ends the text.
  int32_t choose(std::span<const float> logits);

  int64_t num_written() const { return static_cast<int64_t>(result_.tokens.size()); }
  void set_reused_tokens(int64_t count) { result_.reused_tokens = count; }
  const GenerateResult& result() const { return result_; }
  // The finished result. Call once, last.
  GenerateResult finish(StopReason reason);

 private:
  using Clock = std::chrono::steady_clock;

  void show(const std::string& piece);

  const GenerateOptions& options_;
  const std::span<const int32_t> end_tokens_;
  Sampler sampler_;
  StopStrings stop_;
  StreamDecoder decoder_;
  GenerateResult result_;
  Clock::time_point start_, first_token_;
};

}  // namespace rlx
