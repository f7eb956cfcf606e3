// Model files that are wrong in one place: each is refused with an error that names the file and
// the tensor or key. The bad files are made from the good ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "api/compiled_model.h"
#include "base/error.h"
#include "gguf_writer.h"
#include "model_runner.h"
#include "rlx/language_model.h"
#include "safetensors_writer.h"

namespace rlx {
namespace {

using namespace model_testing;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

class BadModels : public testing::Test {
 protected:
  // A copy of a fixture, changed.
  void make(const std::string& family, const std::function<void(json&)>& change_config,
            const std::function<void(StoredTensors&)>& change_tensors = {}) {
    const std::string source = "tests/data/small/" + family;
    json config = json::parse(read_file(source + "/config.json"));
    if (change_config) change_config(config);
    write_file(folder_.path("config.json"), config.dump());
    StoredTensors tensors = read_safetensors(source + "/model.safetensors");
    if (change_tensors) change_tensors(tensors);
    write_file(folder_.path("model.safetensors"), make_safetensors(tensors));
  }

  // What compiling the folder, or the file in it, throws.
  std::string find_message(const std::string& file = "", GraphOptions options = {}) {
    try {
      compile_model(ModelFile::open(folder_.path(file)), options, {});
    } catch (const Error& error) {
      code_ = error.code();
      return error.what();
    }
    return "nothing is thrown";
  }

  void expect_config_error(const std::string& family, const std::function<void(json&)>& change,
                           const std::string& message) {
    make(family, change);
    EXPECT_THAT(find_message(), AllOf(HasSubstr("config.json"), HasSubstr(message)));
  }

  TemporaryFolder folder_;
  ErrorCode code_ = ErrorCode::kInternal;
};

TEST_F(BadModels, NameAMissingTensor) {
  for (const auto& [family, name] : std::vector<std::pair<std::string, std::string>>{
           {"llama", "model.layers.1.mlp.up_proj.weight"},
           {"llama", "lm_head.weight"},
           {"qwen2", "model.layers.0.self_attn.v_proj.bias"},
           {"qwen3_moe", "model.layers.1.mlp.experts.5.down_proj.weight"},
           {"qwen3_moe", "model.layers.1.mlp.gate.weight"},
           {"gemma3", "model.layers.0.pre_feedforward_layernorm.weight"},
           {"phi3", "model.layers.0.self_attn.qkv_proj.weight"},
           {"gpt2", "transformer.h.1.ln_2.bias"},
           {"gpt_oss", "model.layers.0.self_attn.sinks"},
           {"gpt_oss", "model.layers.0.mlp.experts.down_proj_bias"},
           {"bert", "encoder.layer.1.output.LayerNorm.weight"}}) {
    make(family, {}, [&](StoredTensors& tensors) { ASSERT_EQ(tensors.erase(name), 1u) << name; });
    EXPECT_THAT(find_message(),
                AllOf(HasSubstr(folder_.path()), HasSubstr("'" + name + "' is missing")));
    EXPECT_EQ(code_, ErrorCode::kNotFound);
  }
}

TEST_F(BadModels, NameThePackedExpertsWhenTheirScalesAreMissing) {
  make("gpt_oss", {}, [](StoredTensors& tensors) {
    tensors.erase("model.layers.1.mlp.experts.gate_up_proj_scales");
  });
  EXPECT_THAT(find_message(), HasSubstr("'model.layers.1.mlp.experts.gate_up_proj' is missing"));
}

TEST_F(BadModels, NameATensorOfAnotherShape) {
  for (const auto& [family, name] : std::vector<std::pair<std::string, std::string>>{
           {"llama", "model.layers.1.self_attn.k_proj.weight"},
           {"llama", "model.norm.weight"},
           {"qwen3_moe", "model.layers.0.mlp.experts.3.up_proj.weight"},
           {"bert", "pooler.dense.bias"}}) {
    make(family, {}, [&](StoredTensors& tensors) {
      StoredTensor& tensor = tensors.at(name);
      tensor.shape.insert(tensor.shape.begin(), 1);
    });
    EXPECT_THAT(find_message(), AllOf(HasSubstr(folder_.path()), HasSubstr("'" + name + "'"),
                                      HasSubstr("[1, "), HasSubstr("the configuration asks for")));
    EXPECT_EQ(code_, ErrorCode::kCorruptData);
  }
}

TEST_F(BadModels, NameExpertsOfDifferentElementTypes) {
  make("qwen3_moe", {}, [](StoredTensors& tensors) {
    StoredTensor& tensor = tensors.at("model.layers.0.mlp.experts.3.up_proj.weight");
    tensor.dtype = DType::kF16;
    tensor.bytes.resize(tensor.bytes.size() / 2);
  });
  EXPECT_THAT(find_message(), AllOf(HasSubstr("model.layers.0.mlp.experts.*.up_proj.weight"),
                                    HasSubstr("their element types differ")));
}

TEST_F(BadModels, NameAConfigurationValueOfAnotherType) {
  expect_config_error(
      "llama", [](json& config) { config["hidden_size"] = "64"; },
      "The key 'hidden_size' is \"64\", but a whole number is expected.");
  expect_config_error(
      "llama", [](json& config) { config["rms_norm_eps"] = nullptr; },
      "The key 'rms_norm_eps' is missing.");
  expect_config_error(
      "llama", [](json& config) { config["tie_word_embeddings"] = 1; },
      "The key 'tie_word_embeddings' is 1, but true or false is expected.");
  expect_config_error(
      "gemma3", [](json& config) { config["layer_types"] = "full"; },
      "The key 'layer_types' is \"full\", but a list of strings is expected.");
  expect_config_error(
      "llama", [](json& config) { config.erase("model_type"); },
      "The key 'model_type' is missing.");
}

TEST_F(BadModels, NameAnImpossibleConfigurationValue) {
  const auto set = [](const char* key, auto value) {
    return [key, value](json& config) { config[key] = value; };
  };
  expect_config_error("llama", set("num_attention_heads", 0), "The number of heads is 0");
  expect_config_error("llama", set("num_attention_heads", -4), "The number of heads is -4");
  expect_config_error("llama", set("num_key_value_heads", 3),
                      "4 heads cannot be grouped over 3 key/value heads.");
  expect_config_error("llama", set("num_hidden_layers", 1 << 20),
                      "The number of layers is 1048576");
  expect_config_error("llama", set("intermediate_size", int64_t{1} << 62),
                      "The feed-forward size is 4611686018427387904");
  expect_config_error("llama", set("head_dim", int64_t{1} << 40), "The head size is 1099511627776");
  expect_config_error("llama", set("head_dim", 15), "15 rotated elements are asked for");
  expect_config_error("bert", set("num_attention_heads", 3),
                      "A hidden size of 64 does not divide into 3 heads.");
  expect_config_error("qwen3_moe", set("num_experts_per_tok", 9),
                      "The number of active experts is 9, but 1 to 8 is expected.");
  expect_config_error("gemma3", set("layer_types", json::array({"full_attention"})),
                      "The types of 1 layers are listed, but there are 2 layers.");
  expect_config_error("mistral", set("sliding_window", -1), "The sliding window is -1");
}

TEST_F(BadModels, NameWhatAConfigurationAsksForThatIsNotSupported) {
  expect_config_error(
      "llama", [](json& config) { config["hidden_act"] = "relu2"; },
      "The key 'hidden_act' is 'relu2', but only silu, swish is supported.");
  expect_config_error(
      "llama", [](json& config) { config["rope_parameters"]["rope_type"] = "spiral"; },
      "Rope scaling 'spiral' is not supported; default, linear, llama3, yarn and longrope are.");
  expect_config_error(
      "gpt2", [](json& config) { config["activation_function"] = "mish"; },
      "The activation 'mish' is not supported; these are: gelu,");
  expect_config_error(
      "bert", [](json& config) { config["position_embedding_type"] = "relative_key"; },
      "'relative_key', but only absolute is supported.");
  expect_config_error(
      "gemma3", [](json& config) { config["layer_types"][1] = "chunked_attention"; },
      "Layer 1 is of the type 'chunked_attention'");
  expect_config_error(
      "llama",
      [](json& config) {
        config["quantization_config"] = {{"quant_method", "gptq"}};
      },
      "The weights are quantised by the method 'gptq', which is not supported.");
  EXPECT_EQ(code_, ErrorCode::kUnsupported);
}

TEST_F(BadModels, NameWhatAGgufFileAsksForThatIsNotSupported) {
  const auto expect_refusal = [&](const std::function<void(GgufWriter&)>& add,
                                  const std::string& message) {
    GgufWriter writer;
    writer.add("general.architecture", "llama");
    add(writer);
    write_file(folder_.path("bad.gguf"), writer.finish());
    EXPECT_THAT(find_message("bad.gguf"), AllOf(HasSubstr("bad.gguf"), HasSubstr(message)));
    EXPECT_EQ(code_, ErrorCode::kUnsupported);
  };
  expect_refusal([](GgufWriter& file) { file.add("llama.logit_scale", 0.5f); },
                 "The key 'llama.logit_scale' is 0.5, but only 1 is supported.");
  expect_refusal([](GgufWriter& file) { file.add("llama.expert_count", uint32_t{8}); },
                 "The model has 8 experts, but the architecture 'llama' is supported without.");
  expect_refusal([](GgufWriter& file) { file.add("llama.expert_shared_count", uint32_t{1}); },
                 "The key 'llama.expert_shared_count' is 1, but only 0 is supported.");
  expect_refusal([](GgufWriter& file) { file.add("llama.final_logit_softcapping", 30.0f); },
                 "Soft caps of logits are not supported with the architecture 'llama'.");
}

TEST_F(BadModels, NameABiasThatTheConfigurationPromises) {
  make("llama", [](json& config) { config["mlp_bias"] = true; });
  EXPECT_THAT(find_message(), HasSubstr("'model.layers.0.mlp.gate_proj.bias' is missing"));
}

TEST_F(BadModels, NameARopeParameterThatIsMissingOrImpossible) {
  expect_config_error(
      "llama3-rope", [](json& config) { config["rope_parameters"].erase("high_freq_factor"); },
      "The rope parameter 'high_freq_factor' is missing.");
  expect_config_error(
      "gpt_oss", [](json& config) { config["rope_parameters"]["factor"] = 0; },
      "The rope parameter 'factor' is 0, but it must be positive.");
  expect_config_error(
      "llama", [](json& config) { config["rope_parameters"]["rope_theta"] = -1; },
      "The rope parameter 'rope_theta' is -1, but it must be positive.");
}

TEST_F(BadModels, NameAConfigurationThatIsCutShort) {
  make("llama", {});
  const std::string config = read_file(folder_.path("config.json"));
  for (size_t size : {size_t{0}, size_t{1}, config.size() / 2, config.size() - 1}) {
    write_file(folder_.path("config.json"), config.substr(0, size));
    EXPECT_THAT(find_message(), HasSubstr("config.json"));
  }
}

TEST_F(BadModels, RefuseAContextBeyondTheModels) {
  make("llama", {});
  GraphOptions options;
  options.context = 513;
  EXPECT_THAT(find_message("", options),
              AllOf(HasSubstr(folder_.path()),
                    HasSubstr("A context of 513 tokens is asked for, but the model is made for 1 "
                              "to 512.")));
  EXPECT_EQ(code_, ErrorCode::kOutOfRange);
  options.context = -1;
  EXPECT_THAT(find_message("", options), HasSubstr("A context of -1 tokens"));
}

TEST_F(BadModels, NameAGgufFileThatIsCutShort) {
  const std::string whole = read_file("tests/data/gguf-small/qwen2.gguf");
  for (size_t step = 0; step < 64; ++step) {
    write_file(folder_.path("cut.gguf"), whole.substr(0, whole.size() * step / 64));
    EXPECT_THAT(find_message("cut.gguf"), HasSubstr("cut.gguf")) << step << "/64";
  }
  write_file(folder_.path("cut.gguf"), whole.substr(0, whole.size() - 1));
  EXPECT_THAT(find_message("cut.gguf"), HasSubstr("cut.gguf"));
}

TEST_F(BadModels, NameAGgufKeyThatIsMissing) {
  std::string file = read_file("tests/data/gguf-small/qwen2.gguf");
  const size_t key = file.find("qwen2.block_count");
  ASSERT_NE(key, std::string::npos);
  file[key + 6] = 'B';
  write_file(folder_.path("bad.gguf"), file);
  EXPECT_THAT(find_message("bad.gguf"),
              AllOf(HasSubstr("bad.gguf"), HasSubstr("The key 'qwen2.block_count' is missing.")));
}

TEST_F(BadModels, SayWhichFilesAFolderLacks) {
  EXPECT_THAT(find_message(), HasSubstr("config.json"));
  write_file(folder_.path("config.json"), R"({"model_type": "llama"})");
  EXPECT_THAT(find_message(), HasSubstr("model.safetensors"));
  EXPECT_THAT(find_message("none.gguf"), HasSubstr("none.gguf"));
}

}  // namespace
}  // namespace rlx
