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

Graph build_graph(const ModelFile& file, const GraphOptions& options) {
  std::string known;
  for (const ModelFamily& family : model_families()) {
    if (family.name != file.architecture()) {
      known += (known.empty() ? "" : ", ") + std::string(family.name);
      continue;
    }
    try {
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

void check_gated_silu(const ModelFile& file) {
  static constexpr std::string_view kSilu[] = {"silu", "swish"};
  check_choice(file, {"", "hidden_act"}, kSilu);
}

}  // namespace rlx
