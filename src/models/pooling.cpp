#include "models/pooling.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/mapped_file.h"

namespace rlx {
namespace {

using nlohmann::json;

// Nothing when the file is not there.
std::optional<json> find_json_file(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return std::nullopt;
  const MappedFile file(path.string());
  const char* begin = reinterpret_cast<const char*>(file.bytes().data());
  json value = json::parse(begin, begin + file.size_bytes(), nullptr, /*allow_exceptions=*/false);
  if (value.is_discarded()) {
    throw_error(ErrorCode::kCorruptData, "{}: The file is not JSON.", path.string());
  }
  return value;
}

// Several at once are concatenated by the original; only one at a time is supported here.
PoolingKind read_kind(const std::filesystem::path& path, const json& config) {
  struct Named {
    const char* key;
    PoolingKind kind;
  };
  static constexpr Named kKinds[] = {
      {"pooling_mode_mean_tokens", PoolingKind::kMean},
      {"pooling_mode_mean_sqrt_len_tokens", PoolingKind::kMeanSquareRoot},
      {"pooling_mode_max_tokens", PoolingKind::kMax},
      {"pooling_mode_cls_token", PoolingKind::kFirst}};
  std::vector<PoolingKind> chosen;
  for (const auto& [key, value] : config.items()) {
    if (!key.starts_with("pooling_mode_") || value != true) continue;
    const auto* found = std::find_if(std::begin(kKinds), std::end(kKinds),
                                     [&](const Named& named) { return key == named.key; });
    if (found == std::end(kKinds)) {
      throw_error(ErrorCode::kUnsupported, "{}: The pooling '{}' is not supported.", path.string(),
                  key);
    }
    chosen.push_back(found->kind);
  }
  if (chosen.size() != 1) {
    throw_error(ErrorCode::kUnsupported, "{}: {} poolings are asked for, but 1 is supported.",
                path.string(), chosen.size());
  }
  return chosen[0];
}

Pooling read_folder(const std::filesystem::path& folder) {
  Pooling pooling;
  if (const auto sizes = find_json_file(folder / "sentence_bert_config.json")) {
    const auto found = sizes->is_object() ? sizes->find("max_seq_length") : sizes->end();
    if (found != sizes->end() && found->is_number_integer()) {
      pooling.max_tokens = found->get<int64_t>();
    }
  }
  const std::filesystem::path modules_path = folder / "modules.json";
  const auto modules = find_json_file(modules_path);
  if (!modules) return pooling;
  const auto fail = [&] {
    throw_error(ErrorCode::kCorruptData, "{}: A list of modules with type and path is expected.",
                modules_path.string());
  };
  if (!modules->is_array()) fail();
  for (const json& module : *modules) {
    if (!module.is_object() || !module.contains("type") || !module["type"].is_string() ||
        !module.contains("path") || !module["path"].is_string()) {
      fail();
    }
    const std::string type = module["type"].get<std::string>();
    const std::string kind = type.substr(type.rfind('.') + 1);
    if (kind == "Pooling") {
      const std::filesystem::path path = folder / module["path"].get<std::string>() / "config.json";
      const auto config = find_json_file(path);
      if (!config || !config->is_object()) {
        throw_error(ErrorCode::kCorruptData, "{}: A JSON object is expected.", path.string());
      }
      pooling.kind = read_kind(path, *config);
    } else if (kind == "Normalize") {
      pooling.normalize = true;
    } else if (kind != "Transformer") {
      throw_error(ErrorCode::kUnsupported, "{}: The module '{}' is not supported.",
                  modules_path.string(), type);
    }
  }
  return pooling;
}

}  // namespace

Pooling read_pooling(const ModelFile& file) {
  if (file.format() == ModelFormat::kSafetensors) return read_folder(file.path());
  // The numbers of the format: 0 none, 1 mean, 2 first token, 3 last token, 4 rank.
  const int64_t type = file.find_int({".pooling_type", ""}).value_or(1);
  if (type != 1 && type != 2) {
    throw_error(ErrorCode::kUnsupported,
                "{}: The pooling type {} is not supported; 1 (mean) and 2 (first token) are.",
                file.path(), type);
  }
  return {type == 1 ? PoolingKind::kMean : PoolingKind::kFirst, true, std::nullopt};
}

}  // namespace rlx
