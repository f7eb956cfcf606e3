#include "write_random_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "frontends/gguf/gguf_file.h"
#include "rlx/language_model.h"

namespace rlx::bench {
namespace {

// A file that is gone when the test ends.
class TemporaryModel {
 public:
  TemporaryModel(std::string_view shape, std::string_view type)
      : path_(std::filesystem::temp_directory_path() /
              ("rlx-random-model-" + std::to_string(getpid()) + ".gguf")) {
    write_random_model(find_model_shape(shape), type, 1, path_);
  }
  ~TemporaryModel() { std::filesystem::remove(path_); }
  TemporaryModel(const TemporaryModel&) = delete;
  TemporaryModel& operator=(const TemporaryModel&) = delete;
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
};

void expect_usable(std::string_view shape, std::string_view type) {
  const TemporaryModel file(shape, type);
  auto model = LanguageModel::load(file.path(), {.threads = 1});
  const std::vector<int32_t> tokens = model.tokenize("the thing that is in the air");
  ASSERT_FALSE(tokens.empty());
  EXPECT_EQ(model.detokenize(tokens), "the thing that is in the air");
  double squares = 0;
  const auto logits = model.evaluate(tokens);
  for (const float logit : logits) squares += double{logit} * logit;
  const double spread = std::sqrt(squares / static_cast<double>(logits.size()));
  EXPECT_GT(spread, 0.2) << shape << " " << type;
  EXPECT_LT(spread, 5.0) << shape << " " << type;
}

TEST(WriteRandomModel, MakesDenseFilesThatRunWithSaneLogits) {
  for (const char* type : {"f16", "bf16", "q8_0", "q4_0", "q4_k_m", "q5_k_m", "iq4_xs"}) {
    expect_usable("tiny", type);
  }
}

TEST(WriteRandomModel, MakesExpertFilesThatRunWithSaneLogits) {
  expect_usable("tiny-moe", "mxfp4");
}

TEST(WriteRandomModel, WritesTheSameFileForTheSameSeed) {
  const TemporaryModel file("tiny", "q4_0");
  const GgufFile first(file.path());
  const std::vector<std::byte> bytes(first.bytes().begin(), first.bytes().end());
  write_random_model(find_model_shape("tiny"), "q4_0", 1, file.path() + ".again");
  const GgufFile second(file.path() + ".again");
  std::filesystem::remove(file.path() + ".again");
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), second.bytes().begin(), second.bytes().end()));
}

// llama.cpp's quantiser gave these to SmolLM2-135M, whose rows of 576 fill no block of 256.
TEST(ChooseDtype, FollowsTheMixtureOfTheQuantiser) {
  const ModelShape& small = find_model_shape("smollm2-135m");
  const ModelShape& llama = find_model_shape("llama-3.2-1b");
  const auto choose = [](const ModelShape& shape, std::string_view name, std::string_view type) {
    for (const TensorShape& tensor : list_tensors(shape)) {
      if (tensor.name == name) return choose_dtype(shape, tensor, type);
    }
    ADD_FAILURE() << name;
    return DType::kF64;
  };
  EXPECT_EQ(choose(small, "token_embd.weight", "q4_k_m"), DType::kQ8_0);
  EXPECT_EQ(choose(small, "blk.0.attn_q.weight", "q4_k_m"), DType::kQ5_0);
  EXPECT_EQ(choose(small, "blk.0.ffn_down.weight", "q4_k_m"), DType::kQ6_K);
  EXPECT_EQ(choose(llama, "token_embd.weight", "q4_0"), DType::kQ6_K);
  EXPECT_EQ(choose(llama, "token_embd.weight", "q8_0"), DType::kQ8_0);
  EXPECT_EQ(choose(llama, "blk.2.attn_v.weight", "q4_k_m"), DType::kQ4_K);
  EXPECT_EQ(choose(llama, "blk.4.attn_v.weight", "q4_k_m"), DType::kQ6_K);
  EXPECT_EQ(choose(llama, "blk.14.ffn_down.weight", "q4_k_m"), DType::kQ6_K);
  EXPECT_EQ(choose(llama, "blk.0.attn_norm.weight", "q4_k_m"), DType::kF32);
}

TEST(ChooseDtype, NamesTheKindsWhenOneIsUnknown) {
  const ModelShape& shape = find_model_shape("tiny");
  try {
    choose_dtype(shape, list_tensors(shape)[0], "q9_9");
    FAIL() << "expected an error";
  } catch (const std::exception& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("q4_k_m"));
  }
}

}  // namespace
}  // namespace rlx::bench
