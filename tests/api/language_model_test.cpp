// The language model as the installed API offers it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <limits>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "rlx/rlx.h"

namespace {

using rlx::DType;
using rlx::Error;
using rlx::ErrorCode;
using rlx::GenerateOptions;
using rlx::GenerateResult;
using rlx::LanguageModel;
using rlx::LanguageModelOptions;
using rlx::StopReason;
using testing::HasSubstr;

constexpr char kDemo[] = "models/demo/demo-Q8_0.gguf";
constexpr char kFolder[] = "tests/data/small/llama";
constexpr char kBeginning[] = "In the beginning";
constexpr int32_t kVocab = 2048;

LanguageModel load_demo(LanguageModelOptions options = {}) {
  if (options.context == 0) options.context = 128;
  if (options.threads == 0) options.threads = 2;
  return LanguageModel::load(kDemo, options);
}

GenerateOptions greedy(int64_t tokens) {
  GenerateOptions options;
  options.max_new_tokens = tokens;
  options.temperature = 0;
  return options;
}

// Every token about as likely as every other, so that the draws depend on the seed alone.
GenerateOptions uniform(int64_t tokens, uint64_t seed) {
  GenerateOptions options;
  options.max_new_tokens = tokens;
  options.temperature = 1e30f;
  options.top_k = 0;
  options.top_p = 1;
  options.min_p = 0;
  options.seed = seed;
  return options;
}

template <typename Call>
void expect_error(ErrorCode code, const std::string& words, Call&& call) {
  try {
    call();
    ADD_FAILURE() << "No error, but expected: " << words;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_THAT(error.what(), HasSubstr(words));
  }
}

// Whether the text is whole UTF-8 characters.
bool is_whole(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const size_t length = lead < 0x80 ? 1 : lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    if (length == 0 || i + length > text.size()) return false;
    for (size_t k = 1; k < length; ++k) {
      if ((static_cast<unsigned char>(text[i + k]) & 0xC0) != 0x80) return false;
    }
    i += length;
  }
  return true;
}

int32_t find_best(std::span<const float> logits) {
  return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

std::vector<float> copy(std::span<const float> values) { return {values.begin(), values.end()}; }

// The largest difference, over the largest value.
double relative_difference(std::span<const float> a, std::span<const float> b) {
  double difference = 0, largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference = std::max(difference, std::abs(double{a[i]} - b[i]));
    largest = std::max(largest, std::abs(double{a[i]}));
  }
  return difference / largest;
}

TEST(Generate, WritesTheGreedyText) {
  LanguageModel model = load_demo();
  const GenerateResult result = model.generate(kBeginning, greedy(12));
  EXPECT_EQ(result.text, " of the reign of Jehoiakim the son of J");
  EXPECT_EQ(result.tokens.size(), 12u);
  EXPECT_EQ(result.prompt_tokens, 5);
  EXPECT_EQ(result.stop_reason, StopReason::kMaxTokens);
  EXPECT_GT(result.prompt_seconds, 0);
  EXPECT_GT(result.generate_seconds, 0);
}

TEST(Generate, StartsAnewEachTime) {
  LanguageModel model = load_demo();
  const GenerateResult first = model.generate(kBeginning, greedy(8));
  model.generate("KING RICHARD:\n", greedy(8));
  EXPECT_EQ(model.generate(kBeginning, greedy(8)).tokens, first.tokens);
}

TEST(Generate, HandsOutPiecesThatMakeUpTheText) {
  LanguageModel model = load_demo();
  for (uint64_t seed = 0; seed < 4; ++seed) {
    GenerateOptions options = uniform(40, seed);
    std::string pieces;
    options.on_text = [&](std::string_view piece) {
      EXPECT_FALSE(piece.empty());
      EXPECT_TRUE(is_whole(piece)) << piece;
      pieces += piece;
    };
    const GenerateResult result = model.generate(kBeginning, options);
    EXPECT_EQ(pieces, result.text);
    EXPECT_EQ(model.detokenize(result.tokens), result.text);
  }
}

TEST(Generate, TellsHowFarThePromptIs) {
  LanguageModel model = load_demo({.max_tokens = 4});
  GenerateOptions options = greedy(2);
  std::vector<int64_t> done;
  options.on_prompt = [&](int64_t now, int64_t total) {
    EXPECT_EQ(total, 5);
    done.push_back(now);
  };
  model.generate(kBeginning, options);
  EXPECT_THAT(done, testing::ElementsAre(4, 5));
}

TEST(Generate, DependsOnlyOnTheSeed) {
  LanguageModel model = load_demo();
  GenerateOptions options;
  options.max_new_tokens = 16;
  options.temperature = 1.5f;
  options.seed = 7;
  const GenerateResult first = model.generate(kBeginning, options);
  EXPECT_EQ(model.generate(kBeginning, options).tokens, first.tokens);
  options.seed = 8;
  EXPECT_NE(model.generate(kBeginning, options).tokens, first.tokens);
}

TEST(Generate, DependsNotOnTheNumberOfTokensAtOnceNorOfThreads) {
  const std::vector<int32_t> expected =
      load_demo({.threads = 1}).generate(kBeginning, greedy(16)).tokens;
  for (const LanguageModelOptions& options :
       {LanguageModelOptions{.max_tokens = 1}, {.max_tokens = 3}, {.threads = 3}}) {
    EXPECT_EQ(load_demo(options).generate(kBeginning, greedy(16)).tokens, expected);
  }
}

TEST(Generate, StopsAtTheEndToken) {
  LanguageModel model = load_demo();
  // The fifth draw of this seed is in the last of 2,048 equal parts: the end token's.
  const GenerateResult result = model.generate(kBeginning, uniform(20, 1777));
  EXPECT_EQ(result.stop_reason, StopReason::kEndToken);
  EXPECT_EQ(result.tokens.size(), 4u);
  EXPECT_EQ(model.detokenize(result.tokens), result.text);
}

TEST(Generate, StopsBeforeAStopStringThatSpansTokens) {
  LanguageModel model = load_demo();
  GenerateOptions options = greedy(12);
  options.stop = {"never written", "Jehoiakim the"};
  std::string shown;
  options.on_text = [&](std::string_view piece) { shown += piece; };
  const GenerateResult result = model.generate(kBeginning, options);
  EXPECT_EQ(result.text, " of the reign of ");
  EXPECT_EQ(shown, result.text);
  EXPECT_EQ(result.stop_reason, StopReason::kStopString);
  EXPECT_GT(result.tokens.size(), 4u);
  // What only looks like a stop string comes in the end.
  options.stop = {"the son of Jacob"};
  EXPECT_EQ(model.generate(kBeginning, options).text, " of the reign of Jehoiakim the son of J");
}

TEST(Generate, StopsWhenTheTimeIsOver) {
  LanguageModel model = load_demo({.max_tokens = 1});
  GenerateOptions options = greedy(-1);
  options.max_seconds = 1e-9;
  GenerateResult result = model.generate(kBeginning, options);
  EXPECT_EQ(result.stop_reason, StopReason::kMaxTime);
  EXPECT_TRUE(result.tokens.empty());
  options.max_seconds = 3600;
  EXPECT_EQ(model.generate(kBeginning, options).stop_reason, StopReason::kContextFull);
  options.max_seconds = -1;
  expect_error(ErrorCode::kInvalidArgument, "time limit is -1 seconds",
               [&] { model.generate(kBeginning, options); });
}

TEST(Generate, ObeysTheBias) {
  LanguageModel model = load_demo();
  GenerateOptions options = greedy(6);
  const GenerateResult plain = model.generate(kBeginning, options);
  options.logit_bias = {{plain.tokens[2], -std::numeric_limits<float>::infinity()}};
  const GenerateResult other = model.generate(kBeginning, options);
  EXPECT_EQ(other.tokens[1], plain.tokens[1]);
  EXPECT_EQ(std::count(other.tokens.begin(), other.tokens.end(), plain.tokens[2]), 0);
  options.logit_bias = {{kVocab, 1.0f}};
  expect_error(ErrorCode::kInvalidArgument, "token 2048, but the vocabulary has 2048",
               [&] { model.generate(kBeginning, options); });
}

TEST(Generate, TakesTokensAsTheyAre) {
  LanguageModel model = load_demo();
  const std::vector<int32_t> tokens = model.tokenize(kBeginning);
  EXPECT_EQ(model.generate(tokens, greedy(8)).tokens, model.generate(kBeginning, greedy(8)).tokens);
  const std::vector<int32_t> bare = model.tokenize(kBeginning, {.add_special = false});
  EXPECT_EQ(bare.size() + 1, tokens.size());
  EXPECT_EQ(model.generate(bare, greedy(1)).prompt_tokens, 4);
}

TEST(Generate, ReusesThePrefixOfThePromptWithoutAChangeOfTheText) {
  LanguageModel model = load_demo();
  const std::string longer = std::string(kBeginning) + " was the word, and the word";
  const GenerateResult fresh = model.generate(longer, greedy(12));
  EXPECT_EQ(fresh.reused_tokens, 0);
  GenerateOptions options = greedy(12);
  options.reuse_prefix = true;
  EXPECT_EQ(model.generate(kBeginning, options).reused_tokens, 4);
  // The first text went on otherwise, so only its prompt is common.
  const GenerateResult reused = model.generate(longer, options);
  EXPECT_EQ(reused.reused_tokens, 5);
  EXPECT_EQ(reused.tokens, fresh.tokens);
  // The last token always runs, for its logits.
  const GenerateResult again = model.generate(longer, options);
  EXPECT_EQ(again.reused_tokens, again.prompt_tokens - 1);
  EXPECT_EQ(again.tokens, fresh.tokens);
}

TEST(Generate, StopsWhenTheContextIsFull) {
  LanguageModel model = load_demo({.context = 16});
  const GenerateResult result = model.generate(kBeginning, greedy(-1));
  EXPECT_EQ(result.stop_reason, StopReason::kContextFull);
  // 5 tokens of the prompt leave 11 rows, and the last token needs none.
  EXPECT_EQ(result.tokens.size(), 12u);
  EXPECT_EQ(model.num_past_tokens(), 16);
}

TEST(Generate, FillsAContextOfOneToken) {
  LanguageModel model = load_demo({.context = 1});
  const GenerateResult result = model.generate("", greedy(-1));
  EXPECT_EQ(result.prompt_tokens, 1);
  EXPECT_EQ(result.tokens.size(), 1u);
  EXPECT_EQ(result.stop_reason, StopReason::kContextFull);
}

TEST(Generate, WritesNothingWhenNoTokensAreAskedFor) {
  LanguageModel model = load_demo();
  const GenerateResult result = model.generate(kBeginning, greedy(0));
  EXPECT_TRUE(result.text.empty());
  EXPECT_TRUE(result.tokens.empty());
  EXPECT_EQ(result.stop_reason, StopReason::kMaxTokens);
}

TEST(Generate, IsCancelledBeforeItBegins) {
  LanguageModel model = load_demo();
  const std::atomic<bool> cancel{true};
  GenerateOptions options = greedy(8);
  options.cancel = &cancel;
  const GenerateResult result = model.generate(kBeginning, options);
  EXPECT_EQ(result.stop_reason, StopReason::kCancelled);
  EXPECT_TRUE(result.text.empty());
}

TEST(Generate, IsCancelledInsideAPrompt) {
  LanguageModel model = load_demo({.max_tokens = 1});
  std::atomic<bool> cancel{false};
  GenerateOptions options = greedy(8);
  options.cancel = &cancel;
  int64_t last = 0;
  options.on_prompt = [&](int64_t done, int64_t) {
    last = done;
    cancel = done == 2;
  };
  const GenerateResult result = model.generate(kBeginning, options);
  EXPECT_EQ(result.stop_reason, StopReason::kCancelled);
  EXPECT_EQ(last, 2);
  EXPECT_EQ(model.num_past_tokens(), 2);
  EXPECT_TRUE(result.tokens.empty());
}

TEST(Generate, KeepsTheTextSoFarWhenCancelled) {
  LanguageModel model = load_demo();
  const std::string whole = model.generate(kBeginning, greedy(16)).text;
  std::atomic<bool> cancel{false};
  GenerateOptions options = greedy(16);
  options.cancel = &cancel;
  int pieces = 0;
  options.on_text = [&](std::string_view) { cancel = ++pieces == 3; };
  const GenerateResult result = model.generate(kBeginning, options);
  EXPECT_EQ(result.stop_reason, StopReason::kCancelled);
  EXPECT_EQ(result.tokens.size(), 3u);
  EXPECT_EQ(result.text, whole.substr(0, result.text.size()));
}

TEST(Generate, IsCancelledByAnotherThread) {
  LanguageModel model = load_demo({.context = 1024});
  std::atomic<bool> cancel{false}, begun{false};
  GenerateOptions options = greedy(-1);
  options.cancel = &cancel;
  options.on_text = [&](std::string_view) { begun = true; };
  std::thread other([&] {
    while (!begun) std::this_thread::yield();
    cancel = true;
  });
  const GenerateResult result = model.generate(kBeginning, options);
  other.join();
  EXPECT_EQ(result.stop_reason, StopReason::kCancelled);
  EXPECT_LT(result.tokens.size(), 1000u);
}

TEST(Generate, LetsAnExceptionOfTheCallerPassAndStaysUsable) {
  LanguageModel model = load_demo();
  GenerateOptions options = greedy(8);
  {
    const std::atomic<bool> cancel{false};
    options.cancel = &cancel;
    options.on_text = [](std::string_view) { throw std::string("enough"); };
    EXPECT_THROW(model.generate(kBeginning, options), std::string);
  }
  // The flag is gone by now, and nobody may look at it any more.
  const std::vector<int32_t> ids = model.tokenize(kBeginning);
  model.reset();
  EXPECT_EQ(model.evaluate(ids).size(), static_cast<size_t>(kVocab));
}

TEST(Generate, NamesWhatIsWrongWithItsOptions) {
  LanguageModel model = load_demo();
  const auto expect_invalid = [&](const std::string& words, auto&& change) {
    GenerateOptions options = greedy(1);
    change(options);
    expect_error(ErrorCode::kInvalidArgument, words, [&] { model.generate("x", options); });
  };
  expect_invalid("temperature", [](GenerateOptions& o) { o.temperature = -1; });
  expect_invalid("temperature", [](GenerateOptions& o) {
    o.temperature = std::numeric_limits<float>::quiet_NaN();
  });
  expect_invalid("top_k", [](GenerateOptions& o) { o.top_k = -1; });
  expect_invalid("top_p", [](GenerateOptions& o) { o.top_p = 1.5f; });
  expect_invalid("min_p", [](GenerateOptions& o) { o.min_p = -0.1f; });
  expect_invalid("repeat_penalty", [](GenerateOptions& o) { o.repeat_penalty = 0; });
  expect_invalid("repeat_last_n", [](GenerateOptions& o) { o.repeat_last_n = -1; });
}

TEST(Generate, RefusesAPromptThatDoesNotFitAndNamesTheModel) {
  LanguageModel model = load_demo({.context = 4});
  const auto call = [&] { model.generate(kBeginning, greedy(1)); };
  expect_error(ErrorCode::kOutOfRange, kDemo, call);
  expect_error(ErrorCode::kOutOfRange, "5 tokens", call);
}

TEST(Generate, NeedsATokenizer) {
  LanguageModel model = load_demo({.load_tokenizer = false});
  expect_error(ErrorCode::kNotFound, "without a tokenizer", [&] { model.generate("x"); });
  expect_error(ErrorCode::kNotFound, "without a tokenizer", [&] { model.tokenize("x"); });
  expect_error(ErrorCode::kNotFound, "without a tokenizer", [&] { model.detokenize({}); });
}

TEST(Generate, TakesTheLastRowWhenAllLogitsAreKept) {
  LanguageModel model = load_demo({.max_tokens = 3, .all_logits = true});
  EXPECT_EQ(model.generate(kBeginning, greedy(8)).tokens,
            load_demo().generate(kBeginning, greedy(8)).tokens);
}

TEST(Generate, RunsInTwoModelsAtOnce) {
  const std::vector<int32_t> expected = load_demo().generate(kBeginning, greedy(24)).tokens;
  std::vector<int32_t> results[2];
  std::vector<std::thread> threads;
  for (std::vector<int32_t>& result : results) {
    threads.emplace_back([&result] {
      LanguageModel model = load_demo();
      result = model.generate(kBeginning, greedy(24)).tokens;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(results[0], expected);
  EXPECT_EQ(results[1], expected);
}

TEST(Evaluate, ContinuesFromWhatWasRead) {
  LanguageModel model = load_demo();
  const std::vector<int32_t> ids = model.tokenize(kBeginning);
  const std::vector<float> at_once = copy(model.evaluate(ids));
  ASSERT_EQ(at_once.size(), static_cast<size_t>(kVocab));
  EXPECT_EQ(model.num_past_tokens(), 5);
  model.reset();
  EXPECT_EQ(model.num_past_tokens(), 0);
  std::span<const float> last;
  for (const int32_t id : ids) last = model.evaluate({&id, 1});
  EXPECT_LT(relative_difference(at_once, last), 1e-3);
  EXPECT_EQ(find_best(at_once), find_best(last));
}

TEST(Evaluate, SplitsWhatIsLongerThanARun) {
  LanguageModel model = load_demo(), split = load_demo({.max_tokens = 2});
  const std::vector<int32_t> ids = model.tokenize(kBeginning);
  EXPECT_LT(relative_difference(model.evaluate(ids), split.evaluate(ids)), 1e-3);
}

TEST(Evaluate, KeepsTheLogitsOfEachTokenWhenAsked) {
  LanguageModel model = load_demo(), all = load_demo({.max_tokens = 8, .all_logits = true});
  const std::vector<int32_t> ids = model.tokenize(kBeginning);
  const std::span<const float> rows = all.evaluate(ids);
  ASSERT_EQ(rows.size(), ids.size() * kVocab);
  for (size_t i = 0; i < ids.size(); ++i) {
    EXPECT_LT(relative_difference(model.evaluate({&ids[i], 1}), rows.subspan(i * kVocab, kVocab)),
              1e-3);
  }
  all.reset();
  expect_error(ErrorCode::kOutOfRange, "at most 8",
               [&] { all.evaluate(std::vector<int32_t>(9, 1)); });
}

TEST(Evaluate, NamesBadTokensAndAFullContextAndChangesNothing) {
  LanguageModel model = load_demo({.context = 4});
  expect_error(ErrorCode::kInvalidArgument, "at least one", [&] { model.evaluate({}); });
  for (const int32_t id : {-1, kVocab}) {
    const std::vector<int32_t> ids = {1, id};
    expect_error(ErrorCode::kOutOfRange, "Token id " + std::to_string(id),
                 [&] { model.evaluate(ids); });
  }
  EXPECT_EQ(model.num_past_tokens(), 0);
  model.evaluate(std::vector<int32_t>(3, 1));
  expect_error(ErrorCode::kOutOfRange, "context of 4",
               [&] { model.evaluate(std::vector<int32_t>(2, 1)); });
  EXPECT_EQ(model.num_past_tokens(), 3);
  model.evaluate(std::vector<int32_t>(1, 1));
  EXPECT_EQ(model.num_past_tokens(), 4);
}

TEST(Evaluate, NeedsNoTokenizer) {
  LanguageModel model = LanguageModel::load(kFolder, {.threads = 1, .load_tokenizer = false});
  EXPECT_EQ(model.vocab_size(), 320);
  EXPECT_EQ(model.context(), 512);
  EXPECT_EQ(model.evaluate(std::vector<int32_t>{1, 2, 3}).size(), 320u);
}

TEST(Load, NamesWhatIsWrong) {
  expect_error(ErrorCode::kNotFound, "missing.gguf", [] { LanguageModel::load("missing.gguf"); });
  expect_error(ErrorCode::kNotFound, "tests/api/config.json",
               [] { LanguageModel::load("tests/api"); });
  expect_error(ErrorCode::kNotFound, "tokenizer.json", [] { LanguageModel::load(kFolder); });
  expect_error(ErrorCode::kOutOfRange, "1 to 1024", [] { load_demo({.context = 1025}); });
  expect_error(ErrorCode::kInvalidArgument, "threads", [] { load_demo({.threads = -1}); });
  expect_error(ErrorCode::kInvalidArgument, "threads", [] { load_demo({.threads = 100000}); });
  expect_error(ErrorCode::kUnsupported, "Caches of i8",
               [] { load_demo({.cache_dtype = rlx::DType::kI8}); });
  expect_error(ErrorCode::kUnsupported, "q4_0",
               [] { load_demo({.rope_dtype = rlx::DType::kQ4_0}); });
  for (const int64_t bad : {int64_t{0}, int64_t{-1}}) {
    EXPECT_THROW(load_demo({.max_tokens = bad}), Error);
  }
  EXPECT_THROW(load_demo({.context = -1}), Error);
}

TEST(Load, AcceptsEveryCacheType) {
  const std::vector<int32_t> expected = load_demo().generate(kBeginning, greedy(8)).tokens;
  for (const rlx::DType dtype : {rlx::DType::kF32, rlx::DType::kBF16}) {
    EXPECT_EQ(load_demo({.cache_dtype = dtype}).generate(kBeginning, greedy(8)).tokens, expected);
  }
}

TEST(Load, MakesAModelThatMoves) {
  LanguageModel first = load_demo();
  const std::vector<int32_t> expected = first.generate(kBeginning, greedy(4)).tokens;
  LanguageModel second = std::move(first);
  EXPECT_EQ(second.generate(kBeginning, greedy(4)).tokens, expected);
  LanguageModel third = load_demo({.context = 8});
  third = std::move(second);
  EXPECT_EQ(third.context(), 128);
  EXPECT_EQ(third.generate(kBeginning, greedy(4)).tokens, expected);
}

TEST(Tokenize, GoesBothWays) {
  const LanguageModel model = load_demo();
  EXPECT_THAT(model.tokenize(kBeginning), testing::ElementsAre(2046, 1276, 258, 1932, 1299));
  EXPECT_EQ(model.detokenize(model.tokenize(kBeginning)), kBeginning);
  EXPECT_EQ(model.detokenize({}), "");
  const std::vector<int32_t> bad = {kVocab};
  expect_error(ErrorCode::kOutOfRange, "2048", [&] { model.detokenize(bad); });
}

TEST(Plan, IsThatOfTheLoadedModel) {
  const LanguageModelOptions options{.context = 64, .max_tokens = 16, .threads = 2};
  const rlx::PlanReport plan = LanguageModel::plan(kDemo, options);
  const LanguageModel model = LanguageModel::load(kDemo, options);
  EXPECT_EQ(to_string(plan), to_string(model.plan_report()));
  EXPECT_EQ(plan.arena_bytes, model.plan_report().arena_bytes);
}

TEST(Plan, CountsEverySegment) {
  const rlx::PlanReport plan = LanguageModel::plan(kDemo, {.context = 64});
  std::vector<std::string> names;
  int64_t arena_bytes = 0;
  for (const rlx::PlanSegment& segment : plan.segments) {
    names.push_back(segment.name);
    EXPECT_GT(segment.size_bytes, 0);
    EXPECT_GE(segment.size_bytes, segment.lower_bound_bytes);
    if (segment.name != "weights") arena_bytes += segment.size_bytes;
  }
  EXPECT_THAT(names, testing::ElementsAre("weights", "state", "io", "work"));
  EXPECT_GE(plan.arena_bytes, arena_bytes);
  EXPECT_LE(plan.arena_bytes, arena_bytes + 3 * 4096);
  // Keys and values, f16, 6 layers, 64 rows, 2 heads of 64.
  EXPECT_EQ(plan.segment("state").size_bytes, 2 * 2 * 6 * 64 * 2 * 64);
  EXPECT_LE(plan.mapped_weight_bytes, plan.segment("weights").size_bytes);
  EXPECT_THAT(plan.weight_files, testing::ElementsAre(kDemo));
  expect_error(ErrorCode::kNotFound, "'scratch'", [&] { plan.segment("scratch"); });
}

TEST(Plan, PutsTheLargestValuesOfThePeakFirst) {
  const rlx::PlanReport plan = LanguageModel::plan(kDemo, {.context = 64});
  ASSERT_FALSE(plan.peak_values.empty());
  int64_t sum = 0;
  for (size_t i = 0; i < plan.peak_values.size(); ++i) {
    sum += plan.peak_values[i].size_bytes;
    if (i > 0) {
      EXPECT_LE(plan.peak_values[i].size_bytes, plan.peak_values[i - 1].size_bytes);
    }
  }
  EXPECT_LE(sum, plan.segment("work").size_bytes);
  EXPECT_GE(plan.peak_step, 0);
  EXPECT_LT(plan.peak_step, plan.num_steps);
}

TEST(Rewind, GoesBackToWhatWasReadBefore) {
  LanguageModel model = load_demo();
  const std::vector<int32_t> tokens = model.tokenize(kBeginning);
  const std::vector<float> expected = copy(model.evaluate(tokens));
  EXPECT_THAT(model.past_tokens(), testing::ElementsAreArray(tokens));
  model.rewind(2);
  EXPECT_EQ(model.num_past_tokens(), 2);
  const auto again = model.evaluate(std::span(tokens).subspan(2));
  EXPECT_THAT(again, testing::ElementsAreArray(expected));
  expect_error(ErrorCode::kOutOfRange, "cannot go back to 6 tokens: it has read 5",
               [&] { model.rewind(6); });
}

// A file that is gone when the test is over.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& name)
      : path(std::filesystem::temp_directory_path() / (std::to_string(getpid()) + name)) {}
  ~TemporaryFile() { std::filesystem::remove(path); }
  const std::string path;
};

// What a model says to the last of these tokens, after the others.
std::vector<float> continue_with(LanguageModel& model, std::span<const int32_t> tokens) {
  return copy(model.evaluate(tokens));
}

TEST(State, GoesOnBitForBit) {
  const TemporaryFile file("rlx_a.state");
  const std::vector<int32_t> next = {5, 6, 7};
  LanguageModel first = load_demo();
  const std::vector<int32_t> tokens = first.tokenize(kBeginning);
  first.evaluate(tokens);
  first.save_state(file.path);
  const std::vector<float> expected = continue_with(first, next);
  // Another context and batch are no other model.
  for (const LanguageModelOptions& options :
       {LanguageModelOptions{}, {.context = 64}, {.context = 256, .max_tokens = 2}}) {
    LanguageModel second = load_demo(options);
    second.evaluate(std::vector<int32_t>{1, 2, 3});
    second.load_state(file.path);
    EXPECT_THAT(second.past_tokens(), testing::ElementsAreArray(tokens));
    EXPECT_EQ(continue_with(second, next), expected);
  }
}

TEST(State, KeepsSlidingWindowsThatHaveGoneAround) {
  const TemporaryFile file("rlx_b.state");
  const auto load = [](int64_t context, int64_t max_tokens) {
    return LanguageModel::load(
        "tests/data/small/mistral",
        {.context = context, .max_tokens = max_tokens, .threads = 1, .load_tokenizer = false});
  };
  LanguageModel first = load(256, 8);
  std::vector<int32_t> tokens(150);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>(i * 37 % 300);
  first.evaluate(tokens);
  first.rewind(147);
  first.save_state(file.path);
  const std::vector<float> expected = continue_with(first, std::vector<int32_t>{9});
  LanguageModel second = load(256, 8);
  second.load_state(file.path);
  EXPECT_EQ(continue_with(second, std::vector<int32_t>{9}), expected);
  LanguageModel other = load(256, 16);
  expect_error(ErrorCode::kInvalidArgument, "give the batch and the context",
               [&] { other.load_state(file.path); });
}

TEST(State, IsRefusedWhereItDoesNotBelongAndChangesNothing) {
  const TemporaryFile file("rlx_c.state");
  LanguageModel model = load_demo();
  expect_error(ErrorCode::kInvalidArgument, "read nothing", [&] { model.save_state(file.path); });
  model.evaluate(model.tokenize(kBeginning));
  model.save_state(file.path);
  LanguageModel other = load_demo({.cache_dtype = rlx::DType::kF32});
  other.evaluate(std::vector<int32_t>{1, 2, 3});
  expect_error(ErrorCode::kInvalidArgument,
               "cache in f16, but the model is loaded with a cache in f32",
               [&] { other.load_state(file.path); });
  EXPECT_EQ(other.num_past_tokens(), 3);
  expect_error(ErrorCode::kNotFound, "none.state", [&] { model.load_state("none.state"); });
}

TEST(ChatTemplates, ComeFromTheModelOrByName) {
  const LanguageModel model = load_demo();
  expect_error(ErrorCode::kNotFound, "demo-Q8_0.gguf: The model has no chat template",
               [&] { model.chat_template(); });
  EXPECT_THAT(rlx::list_builtin_chat_templates(), testing::Contains("chatml"));
  const rlx::ChatTemplate plain =
      model.make_chat_template(rlx::find_builtin_chat_template("plain"), "plain");
  EXPECT_EQ(plain.render(std::vector<rlx::ChatMessage>{{"user", "Hi"}}),
            "<|begin_of_text|>User: Hi\nAssistant:");
  EXPECT_EQ(model.tokenize(plain.render({}), {.add_special = false})[0], 2046);
}

TEST(ChatTemplates, TakeVariablesAsJson) {
  const rlx::ChatTemplate own("{{ tools is none }} {{ x.y }} {{ eos_token }}", "own",
                              {.eos = "</s>"});
  EXPECT_EQ(own.render_json(R"({"x": {"y": [1, "a"]}})"), "True [1, 'a'] </s>");
  EXPECT_EQ(own.render_json(R"({"x": {"y": 1}, "tools": []})"), "False 1 </s>");
  expect_error(ErrorCode::kInvalidArgument, "own: line 1: 'x' is undefined.",
               [&] { own.render_json("{}"); });
  expect_error(ErrorCode::kInvalidArgument, "not JSON at byte", [&] { own.render_json("{"); });
  expect_error(ErrorCode::kUnsupported, "own: line 2: The statement 'import' is not supported.",
               [] { rlx::ChatTemplate("\n{% import 'x' %}", "own"); });
}

TEST(Version, HasThreeNumbers) {
  EXPECT_THAT(rlx::version(), testing::MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"));
}

TEST(Budget, TakesWhatKeepsResultsFirstAndThenOnlyWhatIsAllowed) {
  const rlx::LanguageModelOptions options{.context = 512, .max_tokens = 64};
  const auto bytes_with = [&](int64_t context, int64_t batch, DType cache) {
    return rlx::total_bytes(rlx::LanguageModel::plan(
        kDemo, {.context = context, .max_tokens = batch, .cache_dtype = cache}));
  };
  const auto fit = [&](rlx::BudgetRequest request) {
    return rlx::fit_to_budget(kDemo, options, request).options;
  };
  const int64_t whole = bytes_with(512, 64, DType::kF16);
  EXPECT_EQ(fit({.budget_bytes = whole}).max_tokens, 64);
  EXPECT_EQ(fit({.budget_bytes = whole - 1}).max_tokens, 16);

  const int64_t least_batch = bytes_with(512, 1, DType::kF16);
  expect_error(ErrorCode::kOutOfMemory, "smallest budget that works",
               [&] { fit({.budget_bytes = least_batch - 1}); });
  rlx::LanguageModelOptions narrow =
      fit({.budget_bytes = least_batch - 1, .least_cache_dtype = DType::kQ8_0});
  EXPECT_EQ(narrow.cache_dtype, DType::kQ8_0);
  EXPECT_EQ(narrow.context, 512);
  const rlx::LanguageModelOptions shorter =
      fit({.budget_bytes = least_batch - 1, .least_context = 64});
  EXPECT_EQ(shorter.cache_dtype, DType::kF16);
  EXPECT_LT(shorter.context, 512);
  EXPECT_LE(bytes_with(shorter.context, 1, DType::kF16), least_batch - 1);
  EXPECT_GT(bytes_with(shorter.context + 1, 1, DType::kF16), least_batch - 1);
}

TEST(Blocks, HoldWholeValues) {
  const rlx::PlanReport whole = rlx::LanguageModel::plan(kDemo, {.context = 512, .max_tokens = 32});
  const rlx::PlanReport cut = rlx::LanguageModel::plan(
      kDemo, {.context = 512, .max_tokens = 32, .max_allocation_bytes = 256 << 10});
  EXPECT_EQ(whole.blocks.size(), 3u);
  EXPECT_GT(cut.blocks.size(), 4u);
  for (const rlx::PlanBlock& block : cut.blocks) {
    EXPECT_LE(block.size_bytes, 256 << 10);
    EXPECT_EQ(block.begin_bytes % (256 << 10), 0);
  }
}

TEST(Blocks, RefuseAValueThatIsLargerThanOne) {
  try {
    rlx::LanguageModel::plan("tests/data/gguf-small/qwen3.gguf", {.max_allocation_bytes = 4096});
    FAIL() << "no error";
  } catch (const rlx::Error& error) {
    EXPECT_EQ(error.code(), rlx::ErrorCode::kOutOfMemory);
    EXPECT_NE(std::string(error.what()).find("largest allocation is 4096"), std::string::npos);
  }
}

}  // namespace
