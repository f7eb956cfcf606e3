#include "models/families.h"

#include "base/error.h"

namespace rlx {

std::span<const ModelFamily> model_families() {
  // Where the two formats call a family by different names, both stand here.
  static constexpr ModelFamily kFamilies[] = {
      {"bert", build_bert, true},    {"gemma3", build_gemma3},   {"gemma3_text", build_gemma3},
      {"gpt-oss", build_gpt_oss},    {"gpt2", build_gpt2},       {"gpt_oss", build_gpt_oss},
      {"llama", build_llama},        {"mistral", build_mistral}, {"phi3", build_phi3},
      {"qwen2", build_qwen2},        {"qwen3", build_qwen3},     {"qwen3_moe", build_qwen3_moe},
      {"qwen3moe", build_qwen3_moe},
  };
  return kFamilies;
}

namespace {

// Values of GGUF files that change what a model means and that no family here builds: only the one
// that changes nothing is taken.
void check_gguf_values(const ModelFile& file) {
  const auto check_value = [&](std::string_view key, auto value, auto neutral) {
    if (!value || *value == neutral) return;
    throw_error(ErrorCode::kUnsupported, "{}: The key '{}{}' is {}, but only {} is supported.",
                file.config_path(), file.architecture(), key, *value, neutral);
  };
  for (const auto& [key, neutral] : {std::pair{".logit_scale", 1.0},
                                     {".residual_scale", 1.0},
                                     {".embedding_scale", 1.0},
                                     {".attention.scale", 0.0},
                                     {".attention.clamp_kqv", 0.0},
                                     {".attention.max_alibi_bias", 0.0},
                                     {".rope.scale_linear", 1.0}}) {
    check_value(key, file.find_float({key, ""}), neutral);
  }
  for (const char* key :
       {".expert_shared_count", ".leading_dense_block_count", ".attention.kv_lora_rank"}) {
    check_value(key, file.find_int({key, ""}), int64_t{0});
  }
  const std::string_view name = file.architecture();
  const bool has_experts = name == "qwen3moe" || name == "gpt-oss";
  const int64_t experts = file.find_int({".expert_count", ""}).value_or(0);
  if (experts > 0 && !has_experts) {
    throw_error(ErrorCode::kUnsupported,
                "{}: The model has {} experts, but the architecture '{}' is supported without.",
                file.config_path(), experts, name);
  }
  if (name != "gemma3" && (file.find_float({".attn_logit_softcapping", ""}).value_or(0) != 0 ||
                           file.find_float({".final_logit_softcapping", ""}).value_or(0) != 0)) {
    throw_error(ErrorCode::kUnsupported,
                "{}: Soft caps of logits are not supported with the architecture '{}'.",
                file.config_path(), name);
  }
}

// Weights quantised by another program lie in tensors that the families do not know.
void check_quantization(const ModelFile& file) {
  const auto method = file.find_string({"", "quantization_config.quant_method"});
  if (!method || (*method == "mxfp4" && file.architecture() == "gpt_oss")) return;
  throw_error(ErrorCode::kUnsupported,
              "{}: The weights are quantised by the method '{}', which is not supported.",
              file.config_path(), *method);
}

}  // namespace

Graph build_graph(const ModelFile& file, const GraphOptions& options) {
  std::string known;
  for (const ModelFamily& family : model_families()) {
    if (family.name != file.architecture()) {
      known += (known.empty() ? "" : ", ") + std::string(family.name);
      continue;
    }
    try {
      check_gguf_values(file);
      check_quantization(file);
      return family.build(file, options);
    } catch (Error& error) {
      // Errors about the configuration name its file, which lies in the folder or is the model.
      const bool is_named = std::string_view(error.what()).find(file.path()) != std::string::npos;
      if (!is_named) error.add_context(file.path());
      throw;
    }
  }
  throw_error(ErrorCode::kUnsupported, "{}: The architecture '{}' is not supported; these are: {}.",
              file.path(), file.architecture(), known);
}

void check_decoder(const ModelFile& file) {
  for (const ModelFamily& family : model_families()) {
    if (family.is_encoder && family.name == file.architecture()) {
      throw_error(ErrorCode::kUnsupported,
                  "{}: A model of the architecture '{}' is an encoder: it takes tensors and writes "
                  "no text.",
                  file.path(), family.name);
    }
  }
}

void check_encoder(const ModelFile& file) {
  std::string known;
  for (const ModelFamily& family : model_families()) {
    if (!family.is_encoder) continue;
    if (family.name == file.architecture()) return;
    known += (known.empty() ? "" : ", ") + std::string(family.name);
  }
  throw_error(ErrorCode::kUnsupported,
              "{}: A model of the architecture '{}' is not an encoder; these are: {}.", file.path(),
              file.architecture(), known);
}

void check_gated_silu(const ModelFile& file) {
  static constexpr std::string_view kSilu[] = {"silu", "swish"};
  check_choice(file, {"", "hidden_act"}, kSilu);
}

}  // namespace rlx
