#include "api/text_writer.h"

#include <algorithm>

#include "base/error.h"

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

double seconds_between(std::chrono::steady_clock::time_point start,
                       std::chrono::steady_clock::time_point end) {
  return std::chrono::duration<double>(end - start).count();
}

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

}  // namespace

TextWriter::TextWriter(const Tokenizer& tokenizer, const GenerateOptions& options,
                       std::span<const int32_t> end_tokens, int64_t vocab_size,
                       std::span<const int32_t> prompt)
    : options_(options),
      end_tokens_(end_tokens),
      sampler_(make_sampler(options, vocab_size)),
      stop_(options.stop),
      decoder_(tokenizer),
      start_(Clock::now()),
      first_token_(start_) {
  if (!(options.max_seconds >= 0)) {
    throw_error(ErrorCode::kInvalidArgument,
                "The time limit is {} seconds, but it must be at least 0.", options.max_seconds);
  }
  for (const int32_t token : prompt) sampler_.accept(token);
  result_.prompt_tokens = static_cast<int64_t>(prompt.size());
}

void TextWriter::check_stopped() const {
  if (options_.cancel != nullptr && options_.cancel->load()) throw Stopped{StopReason::kCancelled};
  if (options_.max_seconds > 0 && seconds_between(start_, Clock::now()) >= options_.max_seconds) {
    throw Stopped{StopReason::kMaxTime};
  }
}

void TextWriter::check_may_write() const {
  check_stopped();
  if (options_.max_new_tokens >= 0 && num_written() >= options_.max_new_tokens) {
    throw Stopped{StopReason::kMaxTokens};
  }
}

int32_t TextWriter::choose(std::span<const float> logits) {
  const int32_t token = sampler_.sample(logits);
  if (result_.tokens.empty()) first_token_ = Clock::now();
  if (std::find(end_tokens_.begin(), end_tokens_.end(), token) != end_tokens_.end()) {
    throw Stopped{StopReason::kEndToken};
  }
  result_.tokens.push_back(token);
  show(stop_.push(decoder_.push(token)));
  if (stop_.is_stopped()) throw Stopped{StopReason::kStopString};
  return token;
}

void TextWriter::show(const std::string& piece) {
  if (piece.empty()) return;
  if (options_.on_text) options_.on_text(piece);
  result_.text += piece;
}

GenerateResult TextWriter::finish(StopReason reason) {
  show(stop_.push(decoder_.finish()));
  show(stop_.finish());
  result_.stop_reason = reason;
  const double total = seconds_between(start_, Clock::now());
  result_.prompt_seconds = seconds_between(start_, first_token_);
  if (first_token_ == start_) result_.prompt_seconds = total;
  result_.generate_seconds = total - result_.prompt_seconds;
  return std::move(result_);
}

}  // namespace rlx
