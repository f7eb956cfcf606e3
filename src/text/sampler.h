// Chooses the next token from a model's logits. The order of the steps is the customary one: logit
// bias, penalties (repetition, frequency, presence), top-k, typical, top-p, min-p, temperature;
// then one draw. The steps that look at probabilities see those of the tokens that the steps before
// left, at temperature 1. The random numbers come from xoshiro256** (Blackman and Vigna, "Scrambled
// linear pseudorandom number generators", 2018) seeded by SplitMix64, and the exponential function
// is our own, so equal logits, options and seed give equal tokens on every platform.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "rlx/sampling.h"

namespace rlx {

struct SamplerOptions {
  std::vector<LogitBias> logit_bias;  // one token may occur several times; the values add up
  float repeat_penalty = 1.0f;  // more than 0; 1 is off. Divides positive logits, multiplies others
  float frequency_penalty = 0;  // finite; taken off a logit once for each time its token occurs
  float presence_penalty = 0;   // finite; taken off a logit once if its token occurs
  int32_t repeat_last_n = 64;   // in [0, 1048576]: the penalties look at the last n tokens
  int32_t top_k = 40;           // keep the k largest logits; 0 keeps all
  float typical_p = 1.0f;       // in [0, 1]: keep the tokens whose surprise is nearest to the mean
                                // one until their sum reaches this; 1 is off
  float top_p = 0.95f;          // in [0, 1]: keep the likeliest tokens until their sum reaches this
  float min_p = 0.05f;          // in [0, 1]: keep tokens at least this times as likely as the best
  float temperature = 0.8f;     // at least 0; 0 takes the largest logit, the lowest id among equals
  uint64_t seed = 0;
};

// Not thread-safe. Allocates nothing after construction.
class Sampler {
 public:
  // Throws kInvalidArgument naming the option, its value and the allowed range.
  Sampler(const SamplerOptions& options, int32_t vocab_size);

  // Chooses a token, remembers it for the penalty, and returns its id. `logits` has vocab_size
  // values; -inf excludes a token. Throws kInvalidArgument, naming the step (counted from 0), for a
  // wrong size, for NaN or +inf, and if every token is excluded, by the model or by the bias; the
  // sampler is then unchanged.
  int32_t sample(std::span<const float> logits);

  // Counts a token for the penalty that was not sampled here, such as one of the prompt. Throws
  // kOutOfRange naming the id and the vocabulary size.
  void accept(int32_t id);

  const SamplerOptions& options() const { return options_; }

 private:
  struct Candidate {
    float logit;
    int32_t id;
  };
  static bool is_better(const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
  }

  bool changes_logits() const;
  int32_t checked_best_id(std::span<const float> logits) const;
  void add_bias();
  void penalize_repeats();
  void keep_top_k();
  void keep_typical();
  void keep_top_p();
  void keep_min_p();
  int32_t draw();
  double next_uniform();
  void remember(int32_t id);

  SamplerOptions options_;
  std::array<uint64_t, 4> state_;
  int64_t step_ = 0;
  std::vector<float> logits_;
  std::vector<Candidate> candidates_;  // the first num_candidates_ are in play
  size_t num_candidates_ = 0;
  float max_logit_ = 0;
  std::vector<double> weights_;
  std::vector<int32_t> recent_;  // a ring of the last repeat_last_n ids
  size_t num_recent_ = 0;
  size_t next_recent_ = 0;
};

}  // namespace rlx
