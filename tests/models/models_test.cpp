// Every family against a public reference implementation, from every format that there are
// reference files of: logits, hidden states, greedy tokens, and what must not change the results.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "model_runner.h"
#include "rlx/language_model.h"

namespace rlx {
namespace {

using namespace model_testing;

struct Fixture {
  std::string name;  // of the test
  std::string path;
  std::string expected;
  double tolerance = 1e-5;
};

// GoogleTest prints it when a test fails.
void PrintTo(const Fixture& fixture, std::ostream* out) { *out << fixture.path; }

Fixture make_folder(const std::string& family, double tolerance = 1e-5) {
  std::string name = family + "_safetensors";
  std::replace(name.begin(), name.end(), '-', '_');
  const std::string folder = "tests/data/small/" + family;
  return {name, folder, folder + "/expected.safetensors", tolerance};
}

Fixture make_gguf(const std::string& family) {
  std::string name = family + "_gguf";
  std::replace(name.begin(), name.end(), '-', '_');
  return {name, "tests/data/gguf-small/" + family + ".gguf",
          "tests/data/small/" + family + "/expected.safetensors"};
}

std::vector<Fixture> list_fixtures() {
  std::vector<Fixture> fixtures;
  for (const char* family : {"llama", "llama3-rope", "qwen2", "qwen3", "qwen3_moe"}) {
    fixtures.push_back(make_folder(family));
    fixtures.push_back(make_gguf(family));
  }
  for (const char* family : {"gemma3", "gpt2", "mistral", "phi3"}) {
    fixtures.push_back(make_folder(family));
  }
  fixtures.push_back(make_folder("gpt_oss", 1e-4));
  return fixtures;
}

// Experts in MXFP4 are compared on the float path, as the reference computes.
LanguageModelOptions exact_options() {
  LanguageModelOptions options;
  options.cache_dtype = DType::kF32;
  options.quantize_activations = false;
  options.load_tokenizer = false;
  options.threads = 1;
  return options;
}

class Decoders : public testing::TestWithParam<Fixture> {
 protected:
  std::vector<float> evaluate(const LanguageModelOptions& options) {
    LanguageModel model = LanguageModel::load(GetParam().path, options);
    const std::span<const float> logits =
        model.evaluate(Expected(GetParam().expected).tokens("input_ids"));
    return {logits.begin(), logits.end()};
  }
};

INSTANTIATE_TEST_SUITE_P(Fixtures, Decoders, testing::ValuesIn(list_fixtures()),
                         [](const auto& info) { return info.param.name; });

TEST_P(Decoders, GiveTheReferenceLogitsAndHiddenStates) {
  const Expected expected(GetParam().expected);
  RunOptions options;
  options.quantize_activations = false;
  options.graph.cache_dtype = DType::kF32;
  options.graph.all_logits = true;
  options.graph.hidden_states = true;
  const auto outputs =
      run_model(GetParam().path, {{"input_ids", expected.ints("input_ids")}}, options);

  const FloatTensor logits = expected.floats("logits");
  const double error = relative_error(outputs.at("logits").values, logits.values);
  EXPECT_LT(error, GetParam().tolerance);
  EXPECT_EQ(count_argmax_differences(outputs.at("logits"), logits), 0);

  const FloatTensor hidden = expected.floats("hidden_states");
  const int64_t last = hidden.shape[0] - 1;
  const size_t size = hidden.values.size() / static_cast<size_t>(hidden.shape[0]);
  double worst = 0;
  for (int64_t i = 0; i <= last; ++i) {
    const std::string name = i == last ? "hidden.final" : "hidden." + std::to_string(i);
    worst = std::max(
        worst,
        relative_error(outputs.at(name).values,
                       std::span(hidden.values).subspan(static_cast<size_t>(i) * size, size)));
  }
  EXPECT_LT(worst, GetParam().tolerance);
  RecordProperty("logits_error", std::to_string(error));
  printf("relative error: logits %.1e, hidden states %.1e\n", error, worst);
}

TEST_P(Decoders, WriteTheReferenceTokens) {
  const Expected expected(GetParam().expected);
  LanguageModel model = LanguageModel::load(GetParam().path, exact_options());
  std::vector<int32_t> next = expected.tokens("input_ids"), written;
  const std::vector<int32_t> greedy = expected.tokens("greedy");
  while (written.size() < greedy.size()) {
    next = {find_argmax(model.evaluate(next))};
    written.push_back(next[0]);
  }
  EXPECT_EQ(written, greedy);
}

TEST_P(Decoders, GiveTheSameBitsWhenAPromptIsReadInParts) {
  LanguageModelOptions options = exact_options();
  const std::vector<float> whole = evaluate(options);
  options.max_tokens = 7;
  EXPECT_EQ(evaluate(options), whole);
  options.max_tokens = 1;
  EXPECT_EQ(evaluate(options), whole);
}

TEST_P(Decoders, GiveTheSameBitsForAnyNumberOfThreads) {
  LanguageModelOptions options = exact_options();
  const std::vector<float> one = evaluate(options);
  for (int threads : {2, 3}) {
    options.threads = threads;
    EXPECT_EQ(evaluate(options), one) << threads << " threads";
  }
}

TEST_P(Decoders, StayNearWithCachesOfHalfPrecision) {
  LanguageModelOptions options = exact_options();
  const std::vector<float> exact = evaluate(options);
  options.cache_dtype = DType::kF16;
  EXPECT_LT(relative_error(evaluate(options), exact), 5e-3);
  options.cache_dtype = DType::kBF16;
  EXPECT_LT(relative_error(evaluate(options), exact), 4e-2);
}

TEST_P(Decoders, RefuseTokensOutsideTheVocabularyAndTextsBeyondTheContext) {
  LanguageModelOptions options = exact_options();
  options.context = 8;
  LanguageModel model = LanguageModel::load(GetParam().path, options);
  const auto expect_refusal = [&](std::vector<int32_t> tokens, const char* message) {
    try {
      model.evaluate(tokens);
      ADD_FAILURE() << "nothing is thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kOutOfRange);
      EXPECT_THAT(error.what(), testing::HasSubstr(message));
    }
  };
  expect_refusal({1, 320}, "Token id 320 is outside the vocabulary of 320 tokens.");
  expect_refusal({-1}, "Token id -1 is outside the vocabulary");
  expect_refusal(std::vector<int32_t>(9, 1), "9 tokens after 0 do not fit into the context of 8");
  model.evaluate(std::vector<int32_t>(8, 1));
  expect_refusal({1}, "1 tokens after 8 do not fit into the context of 8 tokens.");
}

const std::string kBert = "tests/data/small/bert";

std::map<std::string, IntTensor> bert_inputs(const Expected& expected) {
  return {{"input_ids", expected.ints("input_ids")},
          {"attention_mask", expected.ints("attention_mask")}};
}

TEST(Bert, GivesTheReferenceOutputsForABatchWithPadding) {
  const Expected expected(kBert + "/expected.safetensors");
  for (int threads : {1, 3}) {
    const auto outputs = run_model(kBert, bert_inputs(expected), {.threads = threads});
    for (const char* name : {"last_hidden_state", "pooler_output", "mean_pooled"}) {
      const FloatTensor reference = expected.floats(name);
      EXPECT_EQ(outputs.at(name).shape, reference.shape) << name;
      const double error = relative_error(outputs.at(name).values, reference.values);
      EXPECT_LT(error, 1e-5) << name;
      printf("relative error: %s %.1e\n", name, error);
    }
  }
}

// A sequence alone and without padding gives what it gives in the batch.
TEST(Bert, GivesASequenceTheSameResultWithAndWithoutOthers) {
  const Expected expected(kBert + "/expected.safetensors");
  const auto inputs = bert_inputs(expected);
  const auto batch = run_model(kBert, inputs, {});
  const std::vector<int64_t>& ids = inputs.at("input_ids").values;
  const int64_t lengths[] = {20, 13, 5};
  for (int64_t i = 0; i < 3; ++i) {
    const IntTensor alone{{1, lengths[i]},
                          {ids.begin() + i * 20, ids.begin() + i * 20 + lengths[i]}};
    const IntTensor mask{{1, lengths[i]}, std::vector<int64_t>(static_cast<size_t>(lengths[i]), 1)};
    const auto single = run_model(kBert, {{"input_ids", alone}, {"attention_mask", mask}}, {});
    for (const char* name : {"pooler_output", "mean_pooled"}) {
      EXPECT_LT(relative_error(single.at(name).values, batch.at(name).row(i)), 2e-6)
          << name << " of sequence " << i;
    }
  }
}

// The values come from the same weights in double, by a program that gives those of
// expected.safetensors to 5e-7.
TEST(Bert, AddsTheSegmentsOfAPairOfTexts) {
  const Expected expected(kBert + "/token_types.safetensors");
  std::map<std::string, IntTensor> inputs = bert_inputs(expected);
  const FloatTensor without = run_model(kBert, inputs, {}).at("mean_pooled");
  inputs.emplace("token_type_ids", expected.ints("token_type_ids"));
  const FloatTensor with = run_model(kBert, inputs, {}).at("mean_pooled");
  const FloatTensor reference = expected.floats("mean_pooled");
  EXPECT_LT(relative_error(with.values, reference.values), 1e-5);
  EXPECT_GT(relative_error(without.values, reference.values), 1e-3);
}

TEST(Bert, IsRefusedAsALanguageModel) {
  try {
    LanguageModel::load(kBert);
    FAIL() << "nothing is thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
    EXPECT_THAT(error.what(), testing::HasSubstr("'bert' is an encoder"));
  }
}

TEST(ModelFamilies, AreListedWhenOneIsUnknown) {
  TemporaryFolder folder;
  write_file(folder.path("config.json"), R"({"model_type": "rwkv"})");
  write_file(folder.path("model.safetensors"), std::string("\2\0\0\0\0\0\0\0{}", 10));
  try {
    build_graph(*ModelFile::open(folder.path()), {});
    FAIL() << "nothing is thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
    for (const char* part : {"'rwkv'", "bert", "gpt_oss", "llama", "qwen3_moe"}) {
      EXPECT_THAT(error.what(), testing::HasSubstr(part));
    }
  }
}

}  // namespace
}  // namespace rlx
