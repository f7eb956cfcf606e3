// Key/value caches: rings of sliding windows against caches of all rows, and q8_0 caches.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>

#include "base/error.h"
#include "model_runner.h"
#include "rlx/language_model.h"

namespace rlx {
namespace {

using namespace model_testing;

LanguageModelOptions exact_options() {
  LanguageModelOptions options;
  options.cache_dtype = DType::kF32;
  options.quantize_activations = false;
  options.load_tokenizer = false;
  options.threads = 1;
  return options;
}

std::vector<int32_t> make_tokens(int64_t count) {
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < count; ++i) {
    tokens.push_back(static_cast<int32_t>((i * i * 7 + i * 13) % 320));
  }
  return tokens;
}

// The logits after each of the pieces, which are of `sizes` in turn.
std::vector<float> evaluate_pieces(LanguageModel& model, std::span<const int32_t> tokens,
                                   std::span<const int64_t> sizes) {
  std::vector<float> all;
  size_t next = 0;
  for (size_t piece = 0; next < tokens.size(); ++piece) {
    const auto size =
        std::min(tokens.size() - next, static_cast<size_t>(sizes[piece % sizes.size()]));
    const std::span<const float> logits = model.evaluate(tokens.subspan(next, size));
    all.insert(all.end(), logits.begin(), logits.end());
    next += size;
  }
  return all;
}

// A copy of a fixture whose config.json has `from` replaced by `to`.
void copy_model(const std::string& family, const TemporaryFolder& folder, const std::string& from,
                const std::string& to) {
  const std::string source = "tests/data/small/" + family;
  std::filesystem::copy(source, folder.path());
  std::string config = read_file(source + "/config.json");
  const size_t at = config.find(from);
  ASSERT_NE(at, std::string::npos) << from;
  config.replace(at, from.size(), to);
  std::filesystem::remove(folder.path("config.json"));
  write_file(folder.path("config.json"), config);
}

struct WindowedModel {
  const char* family;
  int64_t window;     // as the test sets it
  int64_t num_rings;  // layers of the two that slide
  const char* given;  // the window's line in the fixture
};

void PrintTo(const WindowedModel& model, std::ostream* out) { *out << model.family; }

class SlidingWindows : public testing::TestWithParam<WindowedModel> {
 protected:
  void SetUp() override {
    copy_model(GetParam().family, folder_, GetParam().given,
               "\"sliding_window\": " + std::to_string(GetParam().window));
  }

  TemporaryFolder folder_;
};

INSTANTIATE_TEST_SUITE_P(Families, SlidingWindows,
                         testing::Values(WindowedModel{"mistral", 3, 2, "\"sliding_window\": 16"},
                                         WindowedModel{"gemma3", 5, 1, "\"sliding_window\": 16"},
                                         WindowedModel{"gpt_oss", 4, 1, "\"sliding_window\": 16"},
                                         WindowedModel{"phi3", 7, 2, "\"sliding_window\": null"}),
                         [](const auto& info) { return info.param.family; });

// Each ring of at most 16 rows goes round ten times or more.
TEST_P(SlidingWindows, GiveTheBitsOfACacheWithAllRowsHoweverOftenTheyWrap) {
  const std::vector<int32_t> tokens = make_tokens(160);
  LanguageModelOptions options = exact_options();
  options.context = 160;
  // With so large a batch a ring would not be smaller, so that all rows are kept.
  options.max_tokens = 160;
  LanguageModel whole = LanguageModel::load(folder_.path(), options);
  options.max_tokens = 9;
  LanguageModel ring = LanguageModel::load(folder_.path(), options);
  EXPECT_LT(ring.plan_report().segment("state").size_bytes,
            whole.plan_report().segment("state").size_bytes);
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{9}, {1}, {9, 1, 1, 4}}) {
    whole.reset();
    ring.reset();
    EXPECT_EQ(evaluate_pieces(ring, tokens, sizes), evaluate_pieces(whole, tokens, sizes))
        << "pieces of " << testing::PrintToString(sizes);
  }
}

// Going back a little finds the rows still there; going back further runs the tokens again.
TEST_P(SlidingWindows, GiveTheSameBitsAfterGoingBack) {
  const std::vector<int32_t> tokens = make_tokens(80);
  LanguageModelOptions options = exact_options();
  options.context = 100;
  options.max_tokens = 6;
  LanguageModel model = LanguageModel::load(folder_.path(), options);
  for (const int64_t kept : {78, 75, 60, 3, 0}) {
    model.reset();
    model.evaluate(std::span(tokens).first(static_cast<size_t>(kept) + 2));
    const auto fresh = evaluate_pieces(model, std::span(tokens).first(20), std::vector<int64_t>{5});
    model.reset();
    model.evaluate(tokens);
    for (int round = 0; round < 2; ++round) {
      model.rewind(kept);
      EXPECT_EQ(model.num_past_tokens(), kept);
      model.evaluate(std::span(tokens).subspan(static_cast<size_t>(kept), 2));
      EXPECT_EQ(evaluate_pieces(model, std::span(tokens).first(20), std::vector<int64_t>{5}), fresh)
          << "back to " << kept;
    }
  }
}

TEST_P(SlidingWindows, TakeAsManyBytesForALongContextAsForAShortOne) {
  LanguageModelOptions options = exact_options();
  options.max_tokens = 8;
  const auto state_bytes = [&](int64_t context) {
    options.context = context;
    return LanguageModel::plan(folder_.path(), options).segment("state").size_bytes;
  };
  const int64_t row_bytes = 2 * 2 * 16 * 4;  // keys and values, 2 heads of 16 floats
  const int64_t rings = GetParam().num_rings, rows = GetParam().window + 8 - 1;
  for (int64_t context : {64, 512}) {
    EXPECT_EQ(state_bytes(context), rings * rows * row_bytes + (2 - rings) * context * row_bytes);
  }
  options.context = 512;
  EXPECT_THAT(LanguageModel::plan(folder_.path(), options).state_description,
              testing::HasSubstr("rows of a sliding window ("));
  options.max_tokens = 512;
  EXPECT_THAT(LanguageModel::plan(folder_.path(), options).state_description,
              testing::HasSubstr("which with the token batch takes no less"));
}

// The window of Qwen3 MoE holds for all layers, that of Qwen3 from max_window_layers on.
TEST(QwenWindows, HoldForTheLayersThatTheReferenceHas) {
  for (const auto& [family, rings] : {std::pair{"qwen3_moe", 2}, {"qwen3", 1}}) {
    TemporaryFolder folder;
    copy_model(family, folder, "\"use_sliding_window\": false",
               "\"use_sliding_window\": true, \"max_window_layers\": 1, \"sliding_window\": 5");
    std::string config = read_file(folder.path("config.json"));
    for (const char* other :
         {"\"max_window_layers\": 28", "\"sliding_window\": null", "\"layer_types\""}) {
      const size_t at = config.rfind(other);
      if (at != std::string::npos) config.replace(at, 2, "\"_");
    }
    write_file(folder.path("config.json"), config);
    LanguageModelOptions options = exact_options();
    options.max_tokens = 4;
    EXPECT_THAT(LanguageModel::plan(folder.path(), options).state_description,
                testing::HasSubstr(std::to_string(rings) + " layers x 8 rows of a sliding window"))
        << family;
  }
}

// The program for several texts reads one text as the program for one does.
TEST_P(SlidingWindows, GiveTheSameBitsInAProgramForSeveralTexts) {
  const std::vector<int32_t> tokens = make_tokens(90);
  LanguageModelOptions options = exact_options();
  options.context = 100;
  options.max_tokens = 6;
  LanguageModel one = LanguageModel::load(folder_.path(), options);
  options.parallel = 3;
  LanguageModel several = LanguageModel::load(folder_.path(), options);
  const std::vector<int64_t> sizes = {6, 1, 4};
  EXPECT_EQ(evaluate_pieces(several, tokens, sizes), evaluate_pieces(one, tokens, sizes));
}

const std::string kDemo = "models/demo/demo-Q8_0.gguf";

const std::vector<std::string> kPrompts = {
    "In the beginning",
    "O",
    "And it came to pass, that when the king heard these words",
    "KING RICHARD:\nWhat say you?",
    "The Lord said unto Moses, Speak",
    "Blessed"};

class ParallelTexts : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(Caches, ParallelTexts,
                         testing::Values(DType::kF32, DType::kF16, DType::kQ8_0),
                         [](const auto& info) { return std::string(to_string(info.param)); });

// Texts of different lengths end at different times, and waiting prompts take their places.
TEST_P(ParallelTexts, AreEachWhatTheyAreAlone) {
  LanguageModelOptions options;
  options.context = 48;
  options.max_tokens = 7;  // prompts go through in parts, beside tokens of other texts
  options.cache_dtype = GetParam();
  options.threads = 2;
  GenerateOptions generate;
  generate.seed = 11;
  generate.max_new_tokens = 14;
  generate.stop = {"the"};
  std::vector<GenerateResult> alone;
  LanguageModel single = LanguageModel::load(kDemo, options);
  for (const std::string& prompt : kPrompts) alone.push_back(single.generate(prompt, generate));
  for (const int64_t parallel : {1, 2, 4}) {
    options.parallel = parallel;
    LanguageModel model = LanguageModel::load(kDemo, options);
    std::vector<size_t> finished;
    const auto all = model.generate_all(kPrompts, generate, [&](size_t index, const auto& result) {
      finished.push_back(index);
      EXPECT_EQ(result.tokens, alone[index].tokens);
    });
    ASSERT_EQ(all.size(), kPrompts.size());
    EXPECT_THAT(finished, testing::UnorderedElementsAre(0, 1, 2, 3, 4, 5));
    for (size_t i = 0; i < all.size(); ++i) {
      EXPECT_EQ(all[i].tokens, alone[i].tokens) << "prompt " << i << ", " << parallel << " at once";
      EXPECT_EQ(all[i].text, alone[i].text);
      EXPECT_EQ(all[i].stop_reason, alone[i].stop_reason);
      EXPECT_EQ(all[i].prompt_tokens, alone[i].prompt_tokens);
    }
  }
}

TEST(SeveralTexts, TakeARowOfCacheEach) {
  LanguageModelOptions options;
  options.context = 64;
  const auto state_bytes = [&](int64_t parallel) {
    options.parallel = parallel;
    return LanguageModel::plan(kDemo, options).segment("state").size_bytes;
  };
  EXPECT_EQ(state_bytes(5), 5 * state_bytes(1));
  options.parallel = 0;
  EXPECT_THROW(LanguageModel::plan(kDemo, options), Error);
  options.parallel = 2;
  options.all_logits = true;
  EXPECT_THROW(LanguageModel::plan(kDemo, options), Error);
}

TEST(SeveralTexts, NameThePromptThatDoesNotFit) {
  LanguageModelOptions options;
  options.context = 6;
  options.parallel = 2;
  LanguageModel model = LanguageModel::load(kDemo, options);
  try {
    model.generate_all(kPrompts);
    FAIL() << "nothing is thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kOutOfRange);
    EXPECT_THAT(error.what(), testing::HasSubstr("prompt 3"));
  }
}

TEST(SeveralTexts, StopTogetherWhenTheyAreCancelled) {
  LanguageModelOptions options;
  options.context = 64;
  options.parallel = 2;
  LanguageModel model = LanguageModel::load(kDemo, options);
  const std::atomic<bool> cancel = true;
  GenerateOptions generate;
  generate.cancel = &cancel;
  for (const GenerateResult& result : model.generate_all(kPrompts, generate)) {
    EXPECT_EQ(result.stop_reason, StopReason::kCancelled);
    EXPECT_TRUE(result.tokens.empty());
  }
}

// By hand: what is kept runs again from the start of an empty cache, and the text goes on.
TEST(RollingContext, GoesOnFromTheFirstTokensAndTheNewerHalf) {
  LanguageModelOptions options;
  options.context = 20;
  options.max_tokens = 6;
  LanguageModel model = LanguageModel::load(kDemo, options);
  GenerateOptions generate;
  generate.temperature = 0;
  generate.max_new_tokens = 50;
  GenerateResult stopped = model.generate("In the beginning", generate);
  EXPECT_EQ(stopped.stop_reason, StopReason::kContextFull);
  for (const int64_t keep : {0, 3}) {
    generate.rolling_keep = keep;
    const GenerateResult rolled = model.generate("In the beginning", generate);
    EXPECT_EQ(rolled.tokens.size(), 50);

    std::vector<int32_t> past = model.tokenize("In the beginning"), written;
    LanguageModel other = LanguageModel::load(kDemo, options);
    std::span<const float> logits = other.evaluate(past);
    while (written.size() < 50) {
      written.push_back(find_argmax(logits));
      if (past.size() == 20) {
        const auto dropped = (20 - keep + 1) / 2;
        past.erase(past.begin() + keep, past.begin() + keep + dropped);
        other.reset();
        other.evaluate(past);
      }
      past.push_back(written.back());
      logits = other.evaluate(std::span(&past.back(), 1));
    }
    EXPECT_EQ(rolled.tokens, written) << "keeping " << keep;
    options.parallel = 2;
    LanguageModel parallel = LanguageModel::load(kDemo, options);
    const std::string prompts[] = {"In the beginning", "O"};
    EXPECT_EQ(parallel.generate_all(prompts, generate)[0].tokens, written);
    options.parallel = 1;
  }
  generate.rolling_keep = 19;
  EXPECT_THROW(model.generate("In the beginning", generate), Error);
}

// On the float path, so that the cache alone makes the difference.
FloatTensor run_demo(DType cache) {
  const Expected expected("models/demo/expected-gguf.safetensors");
  RunOptions options;
  options.quantize_activations = false;
  options.graph.cache_dtype = cache;
  options.graph.all_logits = true;
  return run_model("models/demo/demo-Q8_0.gguf", {{"input_ids", expected.ints("input_ids")}},
                   options)
      .at("logits");
}

TEST(CachesOfQ8, StayNearCachesOfF32) {
  const FloatTensor exact = run_demo(DType::kF32);
  for (DType dtype : {DType::kF16, DType::kBF16, DType::kQ8_0}) {
    const double divergence = mean_divergence(run_demo(dtype), exact);
    EXPECT_LT(divergence, 1e-3);
    printf("mean KL of a cache of %s: %.1e\n", std::string(to_string(dtype)).c_str(), divergence);
  }
}

TEST(CachesOfQ8, GiveTheSameBitsForAPromptInParts) {
  const std::vector<int32_t> tokens = make_tokens(40);
  std::vector<std::vector<float>> results;
  for (int64_t max_tokens : {40, 7, 1}) {
    for (int threads : {1, 3}) {
      LanguageModelOptions options;
      options.cache_dtype = DType::kQ8_0;
      options.max_tokens = max_tokens;
      options.threads = threads;
      options.load_tokenizer = false;
      LanguageModel model = LanguageModel::load("models/demo/demo-Q8_0.gguf", options);
      const std::span<const float> logits = model.evaluate(tokens);
      results.emplace_back(logits.begin(), logits.end());
      EXPECT_EQ(results.back(), results.front()) << max_tokens << ", " << threads << " threads";
    }
  }
}

TEST(CachesOfQ8, TakeAQuarterAndASixteenthOfF32) {
  LanguageModelOptions options;
  const auto state_bytes = [&](DType dtype) {
    options.cache_dtype = dtype;
    return LanguageModel::plan("models/demo/demo-Q8_0.gguf", options).segment("state").size_bytes;
  };
  EXPECT_EQ(state_bytes(DType::kQ8_0) * 32 * 4, state_bytes(DType::kF32) * 34);
}

TEST(CachesOfQ8, AreRefusedWhereHeadsAreNotWholeBlocks) {
  LanguageModelOptions options = exact_options();
  options.cache_dtype = DType::kQ8_0;
  try {
    LanguageModel::load("tests/data/small/llama", options);
    FAIL() << "nothing is thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
    EXPECT_THAT(error.what(), testing::HasSubstr("keeps blocks of 32 elements, but the heads of "
                                                 "this model have 16"));
  }
}

}  // namespace
}  // namespace rlx
