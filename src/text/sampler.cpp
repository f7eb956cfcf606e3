#include "text/sampler.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.h"

namespace rlx {
namespace {

constexpr int32_t kMaxRepeatLastN = 1 << 20;

// e to the power of x, for x at most 0, within 2 units in the last place. Only IEEE basic
// operations, so the result does not depend on the platform's math library.
double exp_of_nonpositive(double x) {
  if (!(x > -700)) return 0;
  constexpr double kLog2E = 1.4426950408889634;
  // ln 2 in two parts; the high one has trailing zeros, so that k * kLn2High is exact.
  constexpr double kLn2High = 6.93147180369123816490e-01;
  constexpr double kLn2Low = 1.90821492927058770002e-10;
  const double k = std::floor(x * kLog2E + 0.5);
  const double r = (x - k * kLn2High) - k * kLn2Low;
  // The Taylor series to degree 13: |r| is at most 0.35, so the rest is below 1e-17.
  double sum = 1.0;
  for (int i = 13; i > 0; --i) sum = 1.0 + sum * r / i;
  const uint64_t bits = static_cast<uint64_t>(static_cast<int64_t>(k) + 1023) << 52;
  double power;
  std::memcpy(&power, &bits, sizeof(power));
  return sum * power;
}

uint64_t rotate_left(uint64_t x, int count) { return (x << count) | (x >> (64 - count)); }

template <typename T>
void check_option(const char* name, T value, bool in_range, const char* range) {
  if (!in_range) {
    throw_error(ErrorCode::kInvalidArgument, "The sampler option {} is {}, but it must be {}.",
                name, value, range);
  }
}

}  // namespace

Sampler::Sampler(const SamplerOptions& options, int32_t vocab_size) : options_(options) {
  const SamplerOptions& o = options_;
  const auto check_finite = [](const char* name, float value) {
    check_option(name, value, std::isfinite(value), "finite");
  };
  const auto check_fraction = [](const char* name, float value) {
    check_option(name, value, value >= 0 && value <= 1, "in [0, 1]");
  };
  check_option("repeat_penalty", o.repeat_penalty,
               std::isfinite(o.repeat_penalty) && o.repeat_penalty > 0, "finite and more than 0");
  check_finite("frequency_penalty", o.frequency_penalty);
  check_finite("presence_penalty", o.presence_penalty);
  check_option("repeat_last_n", o.repeat_last_n,
               o.repeat_last_n >= 0 && o.repeat_last_n <= kMaxRepeatLastN, "in [0, 1048576]");
  check_option("top_k", o.top_k, o.top_k >= 0, "at least 0");
  check_fraction("typical_p", o.typical_p);
  check_fraction("top_p", o.top_p);
  check_fraction("min_p", o.min_p);
  check_option("temperature", o.temperature, std::isfinite(o.temperature) && o.temperature >= 0,
               "finite and at least 0");
  if (vocab_size <= 0) {
    throw_error(ErrorCode::kInvalidArgument,
                "The vocabulary size is {}, but a sampler needs at least one token.", vocab_size);
  }
  for (const LogitBias& bias : o.logit_bias) {
    if (bias.token < 0 || bias.token >= vocab_size) {
      throw_error(ErrorCode::kInvalidArgument,
                  "The logit bias is for token {}, but the vocabulary has {} ids, from 0 on.",
                  bias.token, vocab_size);
    }
    if (!(bias.bias <= std::numeric_limits<float>::max())) {
      throw_error(ErrorCode::kInvalidArgument,
                  "The logit bias of token {} is {}, but it must be finite or -inf.", bias.token,
                  bias.bias);
    }
  }
  const auto size = static_cast<size_t>(vocab_size);
  logits_.resize(size);
  candidates_.resize(size);
  weights_.resize(size);
  recent_.resize(static_cast<size_t>(o.repeat_last_n));

  uint64_t seed = o.seed;
  for (uint64_t& word : state_) {  // SplitMix64
    seed += 0x9E3779B97F4A7C15u;
    uint64_t z = seed;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    word = z ^ (z >> 31);
  }
}

int32_t Sampler::sample(std::span<const float> logits) {
  int32_t id = checked_best_id(logits);
  // Greedy choice of unchanged logits needs no copy: one pass has found it.
  if (options_.temperature > 0 || changes_logits()) {
    std::copy(logits.begin(), logits.end(), logits_.begin());
    add_bias();
    penalize_repeats();
    const auto best = std::max_element(logits_.begin(), logits_.end());
    if (*best == -std::numeric_limits<float>::infinity()) {
      throw_error(ErrorCode::kInvalidArgument,
                  "At step {} the logit bias excludes every token that the model allows.", step_);
    }
    max_logit_ = *best;
    id = static_cast<int32_t>(best - logits_.begin());
  }
  if (options_.temperature > 0) {
    keep_top_k();
    keep_typical();
    keep_top_p();
    keep_min_p();
    id = draw();
  }
  remember(id);
  ++step_;
  return id;
}

void Sampler::accept(int32_t id) {
  if (id < 0 || static_cast<size_t>(id) >= logits_.size()) {
    throw_error(ErrorCode::kOutOfRange,
                "The token id {} is out of range: the vocabulary has {} ids, from 0 on.", id,
                logits_.size());
  }
  remember(id);
}

void Sampler::remember(int32_t id) {
  if (recent_.empty()) return;
  recent_[next_recent_] = id;
  next_recent_ = (next_recent_ + 1) % recent_.size();
  num_recent_ = std::min(num_recent_ + 1, recent_.size());
}

bool Sampler::changes_logits() const {
  return !options_.logit_bias.empty() || options_.repeat_penalty != 1.0f ||
         options_.frequency_penalty != 0 || options_.presence_penalty != 0;
}

int32_t Sampler::checked_best_id(std::span<const float> logits) const {
  if (logits.size() != logits_.size()) {
    throw_error(ErrorCode::kInvalidArgument,
                "At step {} there are {} logits, but the vocabulary has {} ids.", step_,
                logits.size(), logits_.size());
  }
  bool all_good = true;
  float best = -std::numeric_limits<float>::infinity();
  for (const float x : logits) {
    all_good &= x <= std::numeric_limits<float>::max();  // false for NaN and +inf
    best = x > best ? x : best;
  }
  if (!all_good) {
    const auto bad = std::find_if(logits.begin(), logits.end(), [](float x) {
      return !(x <= std::numeric_limits<float>::max());
    });
    throw_error(ErrorCode::kInvalidArgument, "At step {} the logit of token {} is {}.", step_,
                bad - logits.begin(), std::isnan(*bad) ? "NaN" : "+inf");
  }
  if (best == -std::numeric_limits<float>::infinity()) {
    throw_error(ErrorCode::kInvalidArgument,
                "At step {} every logit is -inf, so no token can be chosen.", step_);
  }
  return static_cast<int32_t>(std::find(logits.begin(), logits.end(), best) - logits.begin());
}

void Sampler::add_bias() {
  for (const LogitBias& bias : options_.logit_bias) {
    float& logit = logits_[static_cast<size_t>(bias.token)];
    logit = std::min(logit + bias.bias, std::numeric_limits<float>::max());
  }
}

void Sampler::penalize_repeats() {
  const float penalty = options_.repeat_penalty;
  const float frequency = options_.frequency_penalty;
  const float presence = options_.presence_penalty;
  if (penalty == 1.0f && frequency == 0 && presence == 0) return;
  // How often each recent token occurs is counted in the candidate table, whose ids are not in use
  // yet.
  const auto count_of = [&](size_t i) -> int32_t& {
    return candidates_[static_cast<size_t>(recent_[i])].id;
  };
  for (size_t i = 0; i < num_recent_; ++i) count_of(i) = 0;
  for (size_t i = 0; i < num_recent_; ++i) ++count_of(i);
  for (size_t i = 0; i < num_recent_; ++i) {
    const int32_t count = count_of(i);
    if (count == 0) continue;  // was penalised at its first occurrence
    count_of(i) = 0;
    float& logit = logits_[static_cast<size_t>(recent_[i])];
    const float penalized = (logit > 0 ? logit / penalty : logit * penalty) -
                            static_cast<float>(count) * frequency - presence;
    // Only a penalty that rewards can leave the range; an excluded token stays excluded.
    logit = std::min(penalized, std::numeric_limits<float>::max());
  }
}

void Sampler::keep_top_k() {
  const size_t size = logits_.size();
  const auto k = static_cast<size_t>(options_.top_k);
  if (k == 0 || k >= size) {
    for (size_t i = 0; i < size; ++i) candidates_[i] = {logits_[i], static_cast<int32_t>(i)};
    num_candidates_ = size;
    return;
  }
  // The k best so far are a heap whose top is the worst of them; later ids lose ties.
  const auto heap = candidates_.begin();
  const auto heap_end = heap + static_cast<ptrdiff_t>(k);
  for (size_t i = 0; i < k; ++i) candidates_[i] = {logits_[i], static_cast<int32_t>(i)};
  std::make_heap(heap, heap_end, is_better);
  for (size_t i = k; i < size; ++i) {
    if (!(logits_[i] > candidates_[0].logit)) continue;
    std::pop_heap(heap, heap_end, is_better);
    candidates_[k - 1] = {logits_[i], static_cast<int32_t>(i)};
    std::push_heap(heap, heap_end, is_better);
  }
  num_candidates_ = k;
}

void Sampler::keep_typical() {
  if (options_.typical_p >= 1.0f) return;
  // Meister et al., "Locally typical sampling", 2022: the surprise of a token is -ln p, and the
  // tokens stay whose surprise is nearest to its mean, the entropy.
  double total = 0, weighted_distance = 0;
  for (size_t i = 0; i < num_candidates_; ++i) {
    const double distance = static_cast<double>(candidates_[i].logit) - max_logit_;
    const double weight = exp_of_nonpositive(distance);
    total += weight;
    if (weight > 0) weighted_distance += weight * distance;
  }
  // ln total - distance is the surprise, so ln total drops out of its difference to the mean.
  const double mean_distance = weighted_distance / total;
  const auto end = candidates_.begin() + static_cast<ptrdiff_t>(num_candidates_);
  const auto strangeness = [&](const Candidate& c) {
    return std::abs(static_cast<double>(c.logit) - max_logit_ - mean_distance);
  };
  std::sort(candidates_.begin(), end, [&](const Candidate& a, const Candidate& b) {
    const double x = strangeness(a), y = strangeness(b);
    return x != y ? x < y : is_better(a, b);
  });
  const double target = total * static_cast<double>(options_.typical_p);
  double sum = 0;
  size_t kept = 0;
  do {
    sum += exp_of_nonpositive(static_cast<double>(candidates_[kept].logit) - max_logit_);
    ++kept;
  } while (sum < target && kept < num_candidates_);
  num_candidates_ = kept;
  // The best token may be gone: it was too likely to be typical.
  max_logit_ = std::min_element(candidates_.begin(),
                                candidates_.begin() + static_cast<ptrdiff_t>(kept), is_better)
                   ->logit;
}

void Sampler::keep_top_p() {
  if (options_.top_p >= 1.0f) return;
  double total = 0;
  for (size_t i = 0; i < num_candidates_; ++i) {
    total += exp_of_nonpositive(static_cast<double>(candidates_[i].logit) - max_logit_);
  }
  // The best come off a heap one by one, so that a peaked distribution needs no full sort. They
  // collect at the end of the range, the best last, and are then moved to the front.
  const auto is_worse = [](const Candidate& a, const Candidate& b) { return is_better(b, a); };
  const auto begin = candidates_.begin();
  auto end = begin + static_cast<ptrdiff_t>(num_candidates_);
  std::make_heap(begin, end, is_worse);
  const double target = total * static_cast<double>(options_.top_p);
  double sum = 0;
  size_t kept = 0;
  do {
    std::pop_heap(begin, end, is_worse);
    --end;
    ++kept;
    sum += exp_of_nonpositive(static_cast<double>(end->logit) - max_logit_);
  } while (sum < target && end != begin);
  std::reverse(end, end + static_cast<ptrdiff_t>(kept));
  std::move(end, end + static_cast<ptrdiff_t>(kept), begin);
  num_candidates_ = kept;
}

void Sampler::keep_min_p() {
  if (options_.min_p <= 0.0f) return;
  const double limit = static_cast<double>(options_.min_p);
  size_t kept = 0;
  for (size_t i = 0; i < num_candidates_; ++i) {
    const Candidate candidate = candidates_[i];
    if (exp_of_nonpositive(static_cast<double>(candidate.logit) - max_logit_) >= limit) {
      candidates_[kept++] = candidate;
    }
  }
  num_candidates_ = kept;  // the best token is as likely as itself, so it stays
}

int32_t Sampler::draw() {
  const double temperature = options_.temperature;
  double total = 0;
  for (size_t i = 0; i < num_candidates_; ++i) {
    const double distance = static_cast<double>(candidates_[i].logit) - max_logit_;
    weights_[i] = exp_of_nonpositive(distance / temperature);
    total += weights_[i];
  }
  const double target = next_uniform() * total;
  double sum = 0;
  size_t last_possible = 0;
  for (size_t i = 0; i < num_candidates_; ++i) {
    if (weights_[i] == 0) continue;
    sum += weights_[i];
    last_possible = i;
    if (target < sum) break;
  }
  return candidates_[last_possible].id;
}

double Sampler::next_uniform() {
  auto& s = state_;
  const uint64_t result = rotate_left(s[1] * 5, 7) * 9;
  const uint64_t t = s[1] << 17;
  s[2] ^= s[0];
  s[3] ^= s[1];
  s[1] ^= s[2];
  s[0] ^= s[3];
  s[2] ^= t;
  s[3] = rotate_left(s[3], 45);
  return static_cast<double>(result >> 11) * 0x1.0p-53;
}

}  // namespace rlx
