// Experts as safetensors folders hold them: a tensor per expert, one bank, packed in two parts, not
// packed. The results are the same, and the plan counts what has to be put together.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "model_runner.h"
#include "rlx/language_model.h"
#include "safetensors_writer.h"

namespace rlx {
namespace {

using namespace model_testing;

class ExpertLayouts : public testing::Test {
 protected:
  FloatTensor run(const std::string& path, const std::string& family) {
    RunOptions options;
    options.quantize_activations = false;
    options.graph.cache_dtype = DType::kF32;
    options.graph.all_logits = true;
    const Expected expected("tests/data/small/" + family + "/expected.safetensors");
    return run_model(path, {{"input_ids", expected.ints("input_ids")}}, options).at("logits");
  }

  // The folder of the family with other tensors.
  std::string write(const std::string& family, const StoredTensors& tensors) {
    write_file(folder_.path("config.json"),
               read_file("tests/data/small/" + family + "/config.json"));
    write_file(folder_.path("model.safetensors"), make_safetensors(tensors));
    return folder_.path();
  }

  PlanReport plan(const std::string& path) {
    LanguageModelOptions options;
    options.load_tokenizer = false;
    return LanguageModel::plan(path, options);
  }

  TemporaryFolder folder_;
};

StoredTensor take(StoredTensors& tensors, const std::string& name) {
  const auto found = tensors.find(name);
  EXPECT_NE(found, tensors.end()) << name;
  StoredTensor tensor = std::move(found->second);
  tensors.erase(found);
  return tensor;
}

TEST_F(ExpertLayouts, GiveTheSameBitsAsABankAndAsATensorPerExpert) {
  const std::string family = "tests/data/small/qwen3_moe";
  StoredTensors tensors = read_safetensors(family + "/model.safetensors");
  for (int layer = 0; layer < 2; ++layer) {
    const std::string experts = "model.layers." + std::to_string(layer) + ".mlp.experts.";
    StoredTensor gate_up{DType::kF32, {8, 64, 64}, ""}, down{DType::kF32, {8, 64, 32}, ""};
    for (int expert = 0; expert < 8; ++expert) {
      const std::string prefix = experts + std::to_string(expert);
      gate_up.bytes += take(tensors, prefix + ".gate_proj.weight").bytes;
      gate_up.bytes += take(tensors, prefix + ".up_proj.weight").bytes;
      down.bytes += take(tensors, prefix + ".down_proj.weight").bytes;
    }
    tensors[experts + "gate_up_proj"] = gate_up;
    tensors[experts + "down_proj"] = down;
  }
  const std::string fused = write("qwen3_moe", tensors);
  EXPECT_EQ(run(fused, "qwen3_moe").values, run(family, "qwen3_moe").values);
  EXPECT_EQ(plan(fused).assembled_weight_bytes, 0);
}

// [experts, out, blocks] of 32 elements to [experts, in, out] of floats.
StoredTensor unpack(const StoredTensor& blocks, const StoredTensor& scales) {
  static constexpr float kValues[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  const size_t experts = static_cast<size_t>(blocks.shape[0]);
  const size_t rows = static_cast<size_t>(blocks.shape[1]);
  const size_t depth = static_cast<size_t>(blocks.shape[2]) * 32;
  std::vector<float> values(experts * rows * depth);
  for (size_t i = 0; i < values.size(); ++i) {
    const uint8_t pair = static_cast<uint8_t>(blocks.bytes[i / 2]);
    const uint8_t code = i % 2 == 0 ? pair & 15 : pair >> 4;
    const int exponent = static_cast<uint8_t>(scales.bytes[i / 32]) - 127;
    const float magnitude = std::ldexp(kValues[code & 7], exponent);
    const size_t expert = i / (rows * depth), row = i / depth % rows, column = i % depth;
    values[(expert * depth + column) * rows + row] = code >= 8 ? -magnitude : magnitude;
  }
  std::string bytes(values.size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return {DType::kF32,
          {blocks.shape[0], static_cast<int64_t>(depth), blocks.shape[1]},
          std::move(bytes)};
}

TEST_F(ExpertLayouts, GiveTheReferenceLogitsWhenMxfp4IsUnpackedInTheFile) {
  StoredTensors tensors = read_safetensors("tests/data/small/gpt_oss/model.safetensors");
  for (int layer = 0; layer < 2; ++layer) {
    for (const char* bank : {"gate_up_proj", "down_proj"}) {
      const std::string name = "model.layers." + std::to_string(layer) + ".mlp.experts." + bank;
      const StoredTensor blocks = take(tensors, name + "_blocks");
      tensors[name] = unpack(blocks, take(tensors, name + "_scales"));
    }
  }
  const std::string folder = write("gpt_oss", tensors);
  const FloatTensor expected =
      Expected("tests/data/small/gpt_oss/expected.safetensors").floats("logits");
  EXPECT_LT(relative_error(run(folder, "gpt_oss").values, expected.values), 1e-5);
  EXPECT_EQ(plan(folder).assembled_weight_bytes, 0);
}

TEST_F(ExpertLayouts, AreCountedInThePlanWhereTheyArePutTogether) {
  // 2 layers of 8 experts with 3 matrices of 32 x 64 floats.
  const PlanReport experts = plan("tests/data/small/qwen3_moe");
  EXPECT_EQ(experts.assembled_weight_bytes, 2 * 8 * 3 * 32 * 64 * 4);
  // 2 layers of 8 experts with 128 and 64 rows of 2 blocks of 17 bytes.
  const PlanReport packed = plan("tests/data/small/gpt_oss");
  EXPECT_EQ(packed.assembled_weight_bytes, 2 * 8 * (128 + 64) * 2 * 17);
  for (const PlanReport* report : {&experts, &packed}) {
    EXPECT_GE(report->segment("weights").size_bytes,
              report->mapped_weight_bytes + report->assembled_weight_bytes);
    EXPECT_NE(to_string(*report).find(" B assembled"), std::string::npos) << to_string(*report);
  }
  // GGUF holds the bank as it is used.
  EXPECT_EQ(plan("tests/data/gguf-small/qwen3_moe.gguf").assembled_weight_bytes, 0);
  EXPECT_EQ(plan("tests/data/small/llama").assembled_weight_bytes, 0);
}

}  // namespace
}  // namespace rlx
