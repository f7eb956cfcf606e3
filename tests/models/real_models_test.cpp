// Real models that are not in the repository; docs/models.md says how to get them. Each test is
// skipped unless an environment variable tells where its model lies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "base/error.h"
#include "model_runner.h"
#include "rlx/embedding_model.h"
#include "rlx/language_model.h"

namespace rlx {
namespace {

using namespace model_testing;

double multiply(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * b[i];
  return sum;
}

// The values come from a program of our own in double, with the ids of the tokenizers library.
TEST(MiniLm, GivesTheReferenceVectors) {
  const char* path = std::getenv("RLX_TEST_MINILM");
  if (path == nullptr) GTEST_SKIP() << "RLX_TEST_MINILM does not name the folder";
  const std::string texts[] = {"How old are you?", "What is your age?", "The train leaves at noon.",
                               "A man is eating a piece of bread, and nobody minds."};
  const FloatTensor expected =
      Expected("tests/data/minilm/expected.safetensors").floats("embeddings");
  for (const int64_t max_batch : {1, 3}) {
    EmbeddingModel model = EmbeddingModel::load(path, {.max_batch = max_batch});
    EXPECT_EQ(model.num_dimensions(), 384);
    EXPECT_EQ(model.max_tokens(), 256);
    const auto vectors = model.embed(texts);
    for (int64_t i = 0; i < 4; ++i) {
      EXPECT_LT(relative_error(vectors[static_cast<size_t>(i)], expected.row(i)), 1e-5);
    }
    // A paraphrase stands nearer than an unrelated sentence.
    EXPECT_GT(multiply(vectors[0], vectors[1]), 0.7);
    EXPECT_LT(multiply(vectors[0], vectors[2]), 0.1);
  }
}

TEST(MiniLm, RefusesTextsThatAreTooLongUnlessItMayCutThem) {
  const char* path = std::getenv("RLX_TEST_MINILM");
  if (path == nullptr) GTEST_SKIP() << "RLX_TEST_MINILM does not name the folder";
  const std::vector<std::string> texts = {"short", "one two three four five six seven eight"};
  try {
    EmbeddingModel::load(path, {.max_tokens = 6}).embed(texts);
    FAIL() << "nothing is thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kOutOfRange);
    EXPECT_THAT(error.what(), testing::HasSubstr("Text 2 has 10 tokens, but the model takes 6"));
  }
  const auto cut = EmbeddingModel::load(path, {.max_tokens = 6, .truncate = true}).embed(texts);
  const std::vector<std::string> beginning = {"one two three four"};
  EXPECT_LT(relative_error(cut[1], EmbeddingModel::load(path).embed(beginning)[0]), 1e-5);
}

TEST(SmolLm2, SaysWhatTheCapitalOfFranceIs) {
  const char* path = std::getenv("RLX_TEST_SMOLLM2");
  if (path == nullptr) GTEST_SKIP() << "RLX_TEST_SMOLLM2 does not name the file";
  LanguageModel model = LanguageModel::load(path, {.context = 256});
  GenerateOptions generate;
  generate.temperature = 0;
  generate.max_new_tokens = 8;
  EXPECT_THAT(model.generate("The capital of France is", generate).text,
              testing::HasSubstr("Paris"));
}

TEST(Embeddings, AreRefusedForADecoder) {
  try {
    EmbeddingModel::load("tests/data/small/llama");
    FAIL() << "nothing is thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
    EXPECT_THAT(error.what(), testing::HasSubstr("'llama' is not an encoder"));
  }
}

}  // namespace
}  // namespace rlx
