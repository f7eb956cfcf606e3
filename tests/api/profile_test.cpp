// The floor of decoding is reading each weight and the used part of the cache once; what a step
// moves besides must stay small. Counted from the program, so no timing is involved.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "frontends/gguf/gguf_file.h"
#include "rlx/language_model.h"
#include "write_random_model.h"

namespace rlx {
namespace {

class RandomModel {
 public:
  RandomModel(std::string_view shape, std::string_view type)
      : path_(std::filesystem::temp_directory_path() /
              ("rlx-profile-" + std::to_string(getpid()) + ".gguf")) {
    bench::write_random_model(bench::find_model_shape(shape), type, 1, path_);
  }
  ~RandomModel() { std::filesystem::remove(path_); }
  RandomModel(const RandomModel&) = delete;
  RandomModel& operator=(const RandomModel&) = delete;
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
};

// Bytes of all tensors, which a model with tied embeddings reads whole for each token.
int64_t count_tensor_bytes(const std::string& path) {
  const GgufFile file(path);
  int64_t bytes = 0;
  for (const GgufTensor& tensor : file.tensors()) bytes += tensor.size_bytes;
  return bytes;
}

std::vector<ProfiledStep> decode_one(LanguageModel& model, int64_t past) {
  std::vector<int32_t> prompt(static_cast<size_t>(past), 7);
  model.reset();
  model.evaluate(prompt);
  const int32_t token = 9;
  model.evaluate({&token, 1});
  return model.profile_last_run();
}

int64_t sum_bytes(const std::vector<ProfiledStep>& steps) {
  int64_t bytes = 0;
  for (const ProfiledStep& step : steps) bytes += step.bytes();
  return bytes;
}

TEST(Profile, OfADecodeStepMovesLittleMoreThanTheWeightsAndTheCache) {
  const bench::ModelShape& shape = bench::find_model_shape("tiny");
  for (const char* type : {"f16", "q8_0", "q4_k_m"}) {
    const RandomModel file("tiny", type);
    auto model = LanguageModel::load(file.path(), {.threads = 2});
    constexpr int64_t kPast = 99;
    const int64_t cache_bytes =
        shape.layers * 2 * (kPast + 1) * shape.kv_heads * shape.head_size * 2;
    const int64_t floor_bytes = count_tensor_bytes(file.path()) + cache_bytes;
    const int64_t moved_bytes = sum_bytes(decode_one(model, kPast));
    EXPECT_GE(moved_bytes, floor_bytes) << type;
    EXPECT_LE(static_cast<double>(moved_bytes), 1.05 * static_cast<double>(floor_bytes)) << type;
  }
}

TEST(Profile, OfADecodeStepReadsOnlyTheExpertsThatAreChosen) {
  const bench::ModelShape& shape = bench::find_model_shape("tiny-moe");
  const RandomModel file("tiny-moe", "mxfp4");
  auto model = LanguageModel::load(file.path(), {.threads = 1});
  int64_t bank_bytes = 0, read_bytes = 0;
  const GgufFile gguf(file.path());
  for (const GgufTensor& tensor : gguf.tensors()) {
    if (tensor.dtype == DType::kMXFP4) bank_bytes += tensor.size_bytes;
  }
  for (const ProfiledStep& step : decode_one(model, 5)) {
    if (step.weight_dtype == "mxfp4") read_bytes += step.weight_bytes;
  }
  EXPECT_EQ(read_bytes, bank_bytes / shape.experts * shape.active_experts);
}

TEST(Profile, TimesEachStepOnEachThreadOnlyWhileItIsOn) {
  auto model = LanguageModel::load("models/demo/demo-Q8_0.gguf", {.context = 32, .threads = 2});
  EXPECT_TRUE(model.profile_last_run().empty());
  for (const ProfiledStep& step : decode_one(model, 3)) EXPECT_TRUE(step.threads.empty());
  model.set_profiling(true);
  EXPECT_TRUE(model.profile_last_run().empty());
  int64_t last_end = 0;
  for (const ProfiledStep& step : decode_one(model, 3)) {
    ASSERT_EQ(step.threads.size(), 2u);
    EXPECT_GE(step.threads[0].begin_ns, last_end);
    EXPECT_GE(step.threads[0].end_ns, step.threads[0].begin_ns);
    last_end = step.threads[0].end_ns;
  }
  model.set_profiling(false);
  for (const ProfiledStep& step : decode_one(model, 3)) EXPECT_TRUE(step.threads.empty());
}

}  // namespace
}  // namespace rlx
