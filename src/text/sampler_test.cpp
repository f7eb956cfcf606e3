#include "text/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <map>
#include <new>

#include "base/error.h"

namespace {
thread_local int64_t num_allocations = 0;
}  // namespace

// Counts allocations, so that a test can show that sampling makes none.
[[gnu::noinline]] void* operator new(size_t size) {
  ++num_allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace rlx {
namespace {

using testing::HasSubstr;

constexpr float kInf = std::numeric_limits<float>::infinity();

// Everything off but the draw.
SamplerOptions plain() {
  SamplerOptions options;
  options.temperature = 1.0f;
  options.top_k = 0;
  options.top_p = 1.0f;
  options.min_p = 0.0f;
  options.seed = 7;
  return options;
}

std::map<int32_t, int> count_draws(const SamplerOptions& options, const std::vector<float>& logits,
                                   int num_draws) {
  Sampler sampler(options, static_cast<int32_t>(logits.size()));
  std::map<int32_t, int> counts;
  for (int i = 0; i < num_draws; ++i) ++counts[sampler.sample(logits)];
  return counts;
}

std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Sampler, TakesTheLowestOfTheLargestAtTemperatureZero) {
  SamplerOptions options;
  options.temperature = 0;
  Sampler sampler(options, 5);
  EXPECT_EQ(sampler.sample(std::vector<float>{1, 3, 2, 3, -1}), 1);
  EXPECT_EQ(sampler.sample(std::vector<float>{-kInf, -kInf, -kInf, -2, -kInf}), 3);
}

TEST(Sampler, DrawsInProportion) {
  const std::vector<float> logits = {std::log(1.0f), std::log(2.0f), std::log(5.0f), -kInf};
  auto counts = count_draws(plain(), logits, 80000);
  EXPECT_NEAR(counts[0], 10000, 500);
  EXPECT_NEAR(counts[1], 20000, 500);
  EXPECT_NEAR(counts[2], 50000, 500);
  EXPECT_EQ(counts.count(3), 0u);
}

TEST(Sampler, SharpensAtLowTemperature) {
  SamplerOptions options = plain();
  options.temperature = 0.5f;  // weights are squared: 1, 4
  auto counts = count_draws(options, {std::log(1.0f), std::log(2.0f)}, 50000);
  EXPECT_NEAR(counts[0], 10000, 500);
  options.temperature = 1e-30f;
  EXPECT_EQ(count_draws(options, {1.0f, 1.5f, 1.4f}, 100).size(), 1u);
}

TEST(Sampler, KeepsTheTopKAndTheLowestIdsAmongEquals) {
  SamplerOptions options = plain();
  options.top_k = 3;
  const auto counts = count_draws(options, {1, 2, 1, 3, 1, -5}, 2000);
  EXPECT_THAT(counts, testing::ElementsAre(testing::Key(0), testing::Key(1), testing::Key(3)));
  options.top_k = 1;
  EXPECT_THAT(count_draws(options, {1, 2, 2, 0}, 50), testing::ElementsAre(testing::Key(1)));
}

TEST(Sampler, KeepsTheLeastSetThatReachesTopP) {
  SamplerOptions options = plain();
  const std::vector<float> logits = {std::log(0.1f), std::log(0.5f), std::log(0.15f),
                                     std::log(0.25f)};
  options.top_p = 0.7f;
  EXPECT_THAT(count_draws(options, logits, 2000),
              testing::ElementsAre(testing::Key(1), testing::Key(3)));
  options.top_p = 0.0f;
  EXPECT_THAT(count_draws(options, logits, 100), testing::ElementsAre(testing::Key(1)));
}

TEST(Sampler, KeepsWhatIsLikelyAgainstTheBest) {
  SamplerOptions options = plain();
  options.min_p = 0.3f;
  const std::vector<float> logits = {std::log(0.1f), std::log(0.5f), std::log(0.15f),
                                     std::log(0.25f)};
  EXPECT_THAT(count_draws(options, logits, 3000),
              testing::ElementsAre(testing::Key(1), testing::Key(3)));
  options.min_p = 1.0f;
  EXPECT_THAT(count_draws(options, logits, 100), testing::ElementsAre(testing::Key(1)));
}

TEST(Sampler, PenalizesRecentTokensOnce) {
  SamplerOptions options;
  options.temperature = 0;
  options.repeat_penalty = 2.0f;
  options.repeat_last_n = 3;
  Sampler sampler(options, 4);
  sampler.accept(0);
  sampler.accept(0);
  // 3 / 2 is above 1.4; dividing twice would not be.
  EXPECT_EQ(sampler.sample(std::vector<float>{3, 1.4f, 0, 0}), 0);
  EXPECT_EQ(sampler.sample(std::vector<float>{3, 1.6f, 0, 0}), 1);
  // Negative logits move away from zero.
  EXPECT_EQ(sampler.sample(std::vector<float>{-1, -1, -1.5f, -9}), 2);
  // The window holds three tokens: 0, 1, 2, and after the next draw 1, 2, 3.
  EXPECT_EQ(sampler.sample(std::vector<float>{0, 0, 0, 0.1f}), 3);
  EXPECT_EQ(sampler.sample(std::vector<float>{1, 1.9f, 1.9f, 1.9f}), 0);
}

TEST(Sampler, AddsTheBiasFirst) {
  SamplerOptions options;
  options.temperature = 0;
  options.logit_bias = {{0, -kInf}, {1, -1}, {1, -1}, {2, 0.5f}};
  Sampler sampler(options, 4);
  EXPECT_EQ(sampler.sample(std::vector<float>{9, 4, 1, 1.8f}), 1);
  EXPECT_EQ(sampler.sample(std::vector<float>{9, 3, 1, 1.2f}), 2);
  EXPECT_EQ(sampler.sample(std::vector<float>{9, -kInf, 1, 1.6f}), 3);
  EXPECT_THAT(error_of([&] {
                sampler.sample(std::vector<float>{9, -kInf, -kInf, -kInf});
              }),
              HasSubstr("At step 3 the logit bias excludes every token"));
}

TEST(Sampler, CountsForTheFrequencyPenaltyAndNotForThePresencePenalty) {
  SamplerOptions options;
  options.temperature = 0;
  options.frequency_penalty = 1;
  Sampler frequency(options, 3);
  for (const int32_t id : {0, 0, 0, 1}) frequency.accept(id);
  // 5 - 3 against 3.5 - 1.
  EXPECT_EQ(frequency.sample(std::vector<float>{5, 3.5f, 0}), 1);
  options.frequency_penalty = 0;
  options.presence_penalty = 1;
  Sampler presence(options, 3);
  for (const int32_t id : {0, 0, 0, 1}) presence.accept(id);
  EXPECT_EQ(presence.sample(std::vector<float>{5, 3.5f, 3.8f}), 0);
  EXPECT_EQ(presence.sample(std::vector<float>{4, 3.5f, 3.8f}), 2);
}

TEST(Sampler, AppliesTheRepeatPenaltyBeforeTheOthers) {
  SamplerOptions options;
  options.temperature = 0;
  options.repeat_penalty = 2;
  options.presence_penalty = 1;
  Sampler sampler(options, 2);
  sampler.accept(0);
  // 4 / 2 - 1 = 1; the other order would give 1.5.
  EXPECT_EQ(sampler.sample(std::vector<float>{4, 1.2f}), 1);
}

TEST(Sampler, KeepsTheTypicalTokens) {
  SamplerOptions options = plain();
  const std::vector<float> logits = {std::log(0.2f), std::log(0.6f), std::log(0.1f) - 1e-3f,
                                     std::log(0.1f)};
  // Surprises 1.61, 0.51, 2.30, 2.30 with the mean 1.09: the order is 0 (0.52), 1 (0.58), 3, 2.
  options.typical_p = 0.1f;
  EXPECT_THAT(count_draws(options, logits, 200), testing::ElementsAre(testing::Key(0)));
  options.typical_p = 0.5f;
  auto counts = count_draws(options, logits, 40000);
  EXPECT_THAT(counts, testing::ElementsAre(testing::Key(0), testing::Key(1)));
  EXPECT_NEAR(counts[0], 10000, 500);
  options.typical_p = 0.85f;
  EXPECT_THAT(count_draws(options, logits, 2000),
              testing::ElementsAre(testing::Key(0), testing::Key(1), testing::Key(3)));
}

TEST(Sampler, RepeatsItselfForOneSeedAndDiffersForAnother) {
  std::vector<float> logits(100);
  for (size_t i = 0; i < logits.size(); ++i) logits[i] = static_cast<float>(i % 7);
  const auto draw = [&](uint64_t seed) {
    SamplerOptions options = plain();
    options.seed = seed;
    Sampler sampler(options, 100);
    std::vector<int32_t> ids;
    for (int i = 0; i < 12; ++i) ids.push_back(sampler.sample(logits));
    return ids;
  };
  EXPECT_EQ(draw(1), draw(1));
  EXPECT_NE(draw(1), draw(2));
}

TEST(Sampler, AllocatesNothingPerSample) {
  std::vector<float> logits(5000);
  for (size_t i = 0; i < logits.size(); ++i) logits[i] = std::sin(static_cast<float>(i));
  for (const int32_t top_k : {0, 40}) {
    SamplerOptions options;
    options.top_k = top_k;
    options.repeat_penalty = 1.1f;
    options.frequency_penalty = 0.1f;
    options.logit_bias = {{17, 0.5f}};
    options.typical_p = 0.9f;
    Sampler sampler(options, 5000);
    const int64_t before = num_allocations;
    for (int i = 0; i < 200; ++i) sampler.sample(logits);
    EXPECT_EQ(num_allocations, before);
  }
}

TEST(Sampler, NamesTheStepOfBadLogits) {
  Sampler sampler(SamplerOptions{}, 3);
  sampler.sample(std::vector<float>{0, 1, 2});
  EXPECT_THAT(error_of([&] {
                sampler.sample(std::vector<float>{0, NAN, 2});
              }),
              HasSubstr("At step 1 the logit of token 1 is NaN."));
  EXPECT_THAT(error_of([&] {
                sampler.sample(std::vector<float>{0, 1, kInf});
              }),
              HasSubstr("At step 1 the logit of token 2 is +inf."));
  EXPECT_THAT(error_of([&] {
                sampler.sample(std::vector<float>{-kInf, -kInf, -kInf});
              }),
              HasSubstr("every logit is -inf"));
  EXPECT_THAT(error_of([&] {
                sampler.sample(std::vector<float>{0, 1});
              }),
              HasSubstr("there are 2 logits, but the vocabulary has 3 ids"));
}

TEST(Sampler, RefusesOptionsOutOfRange) {
  const auto message = [](auto change) {
    SamplerOptions options;
    change(options);
    return error_of([&] { Sampler(options, 3); });
  };
  EXPECT_EQ(message([](auto& o) { o.temperature = -1; }),
            "The sampler option temperature is -1, but it must be finite and at least 0.");
  EXPECT_THAT(message([](auto& o) { o.temperature = NAN; }), HasSubstr("temperature is nan"));
  EXPECT_THAT(message([](auto& o) { o.top_k = -2; }), HasSubstr("top_k is -2"));
  EXPECT_THAT(message([](auto& o) { o.top_p = 1.5f; }),
              HasSubstr("top_p is 1.5, but it must be in [0, 1]"));
  EXPECT_THAT(message([](auto& o) { o.min_p = -0.5f; }), HasSubstr("min_p is -0.5"));
  EXPECT_THAT(message([](auto& o) { o.repeat_penalty = 0; }), HasSubstr("repeat_penalty is 0"));
  EXPECT_THAT(message([](auto& o) { o.repeat_last_n = -1; }), HasSubstr("repeat_last_n is -1"));
  EXPECT_THAT(message([](auto& o) { o.typical_p = 2; }), HasSubstr("typical_p is 2"));
  EXPECT_THAT(message([](auto& o) { o.presence_penalty = NAN; }),
              HasSubstr("presence_penalty is nan, but it must be finite"));
  EXPECT_THAT(message([](auto& o) { o.frequency_penalty = kInf; }),
              HasSubstr("frequency_penalty is inf"));
  EXPECT_THAT(message([](auto& o) {
                o.logit_bias = {{3, 1.0f}};
              }),
              HasSubstr("The logit bias is for token 3, but the vocabulary has 3 ids"));
  EXPECT_THAT(message([](auto& o) {
                o.logit_bias = {{1, NAN}};
              }),
              HasSubstr("The logit bias of token 1 is nan"));
  EXPECT_THAT(error_of([] { Sampler(SamplerOptions{}, 0); }), HasSubstr("vocabulary size is 0"));
  Sampler sampler(SamplerOptions{}, 3);
  EXPECT_THAT(error_of([&] { sampler.accept(3); }), HasSubstr("id 3 is out of range"));
}

}  // namespace
}  // namespace rlx
