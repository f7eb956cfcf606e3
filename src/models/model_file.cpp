#include "models/model_file.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/mapped_file.h"
#include "models/assembled_weights.h"

namespace rlx {
namespace {

using nlohmann::json;

json read_json(const std::string& path) {
  const MappedFile file(path);
  const char* begin = reinterpret_cast<const char*>(file.bytes().data());
  json value = json::parse(begin, begin + file.size_bytes(), nullptr, /*allow_exceptions=*/false);
  if (value.is_discarded() || !value.is_object()) {
    throw_error(ErrorCode::kCorruptData, "{}: The file is not a JSON object.", path);
  }
  return value;
}

// Short, and free of the bytes that dump() refuses.
std::string printable_json(const json& value) {
  return value.dump(-1, ' ', true, json::error_handler_t::replace).substr(0, 40);
}

}  // namespace

ModelFile::ModelFile() = default;
ModelFile::~ModelFile() = default;

std::shared_ptr<const ModelFile> ModelFile::open(const std::string& path) {
  // Not make_shared: the constructor is private.
  std::shared_ptr<ModelFile> file(new ModelFile());
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    file->open_folder(path);
  } else {
    file->open_gguf(path);
  }
  return file;
}

void ModelFile::open_gguf(const std::string& path) {
  path_ = path;
  config_path_ = path;
  gguf_.emplace(path);
  if (const auto parts = gguf_->find_int("split.count"); parts.value_or(1) > 1) {
    throw_error(ErrorCode::kUnsupported,
                "{}: The model is split over {} GGUF files; join them into one first.", path,
                *parts);
  }
  const auto architecture = gguf_->find_string("general.architecture");
  if (!architecture) {
    throw_error(ErrorCode::kCorruptData, "{}: The key 'general.architecture' is missing.", path);
  }
  architecture_ = *architecture;
  for (const GgufTensor& tensor : gguf_->tensors()) {
    weights_[tensor.name] = {
        {tensor.dtype, tensor.shape, path, tensor.offset_bytes, tensor.size_bytes},
        gguf_->data(tensor)};
  }
}

void ModelFile::open_folder(const std::string& path) {
  path_ = path;
  const std::filesystem::path folder(path);
  config_path_ = (folder / "config.json").string();
  config_ = std::make_unique<json>(read_json(config_path_));
  generation_config_ = std::make_unique<json>(json::object());
  const std::string generation_path = (folder / "generation_config.json").string();
  if (std::filesystem::exists(generation_path)) {
    *generation_config_ = read_json(generation_path);
  }
  const auto model_type = find_string({"", "model_type"});
  if (!model_type) {
    throw_error(ErrorCode::kCorruptData, "{}: The key 'model_type' is missing.", config_path_);
  }
  architecture_ = *model_type;
  folder_.emplace(path);
  for (const SafetensorsWeight& weight : folder_->tensors()) {
    weights_[weight.tensor->name] = {
        {weight.tensor->dtype, weight.tensor->shape, weight.file->path(),
         weight.tensor->offset_bytes, weight.tensor->size_bytes},
        weight.data()};
  }
  std::vector<AssembledWeights::Part> parts;
  for (const auto& [name, entry] : weights_) parts.push_back({name, &entry.info, entry.bytes});
  assembled_ = std::make_unique<AssembledWeights>(std::move(parts));
}

std::string ModelFile::gguf_key(std::string_view key) const {
  return key.starts_with('.') ? architecture_ + std::string(key) : std::string(key);
}

const json* ModelFile::find_json(std::string_view path) const {
  const json* value = config_.get();
  while (!path.empty()) {
    const size_t dot = path.find('.');
    const std::string key(path.substr(0, dot));
    if (!value->is_object()) return nullptr;
    const auto found = value->find(key);
    if (found == value->end()) return nullptr;
    value = &*found;
    if (dot == std::string_view::npos) break;
    path.remove_prefix(dot + 1);
  }
  return value->is_null() ? nullptr : value;
}

template <typename T>
std::optional<T> ModelFile::find_value(ConfigKey key,
                                       std::optional<T> (GgufFile::*find_gguf)(std::string_view)
                                           const,
                                       bool (json::*is_type)() const, const char* type_name) const {
  if (gguf_) {
    if (key.gguf.empty()) return std::nullopt;
    return ((*gguf_).*find_gguf)(gguf_key(key.gguf));
  }
  if (key.hf.empty()) return std::nullopt;
  const json* value = find_json(key.hf);
  if (value == nullptr) return std::nullopt;
  if (!(value->*is_type)()) {
    throw_error(ErrorCode::kCorruptData, "{}: The key '{}' is {}, but {} is expected.",
                config_path_, key.hf, printable_json(*value), type_name);
  }
  return value->get<T>();
}

std::optional<int64_t> ModelFile::find_int(ConfigKey key) const {
  return find_value<int64_t>(key, &GgufFile::find_int, &json::is_number_integer, "a whole number");
}

std::optional<double> ModelFile::find_float(ConfigKey key) const {
  return find_value<double>(key, &GgufFile::find_float, &json::is_number, "a number");
}

std::optional<bool> ModelFile::find_bool(ConfigKey key) const {
  return find_value<bool>(key, &GgufFile::find_bool, &json::is_boolean, "true or false");
}

std::optional<std::string> ModelFile::find_string(ConfigKey key) const {
  if (gguf_) {
    if (key.gguf.empty()) return std::nullopt;
    const auto text = gguf_->find_string(gguf_key(key.gguf));
    if (!text) return std::nullopt;
    return std::string(*text);
  }
  if (key.hf.empty()) return std::nullopt;
  const json* value = find_json(key.hf);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) {
    throw_error(ErrorCode::kCorruptData, "{}: The key '{}' is {}, but a string is expected.",
                config_path_, key.hf, printable_json(*value));
  }
  return value->get<std::string>();
}

namespace {

std::vector<int64_t> read_ints(const json& value, const std::string& path, std::string_view key) {
  std::vector<int64_t> numbers;
  const auto append = [&](const json& item) {
    if (!item.is_number_integer()) {
      throw_error(ErrorCode::kCorruptData,
                  "{}: The key '{}' holds {}, but whole numbers are expected.", path, key,
                  printable_json(item));
    }
    numbers.push_back(item.get<int64_t>());
  };
  if (value.is_array()) {
    for (const json& item : value) append(item);
  } else {
    append(value);
  }
  return numbers;
}

}  // namespace

std::optional<std::vector<int64_t>> ModelFile::find_ints(ConfigKey key) const {
  if (gguf_) {
    if (key.gguf.empty()) return std::nullopt;
    const std::string name = gguf_key(key.gguf);
    const GgufValue* value = gguf_->find(name);
    if (value == nullptr) return std::nullopt;
    if (value->type == GgufType::kArray) return gguf_->find_int_array(name);
    return std::vector<int64_t>{*gguf_->find_int(name)};
  }
  if (key.hf.empty()) return std::nullopt;
  const json* value = find_json(key.hf);
  if (value == nullptr) return std::nullopt;
  return read_ints(*value, config_path_, key.hf);
}

void ModelFile::fail_missing(ConfigKey key) const {
  const std::string name = gguf_ ? gguf_key(key.gguf) : std::string(key.hf);
  throw_error(ErrorCode::kCorruptData, "{}: The key '{}' is missing.", config_path_, name);
}

std::optional<std::vector<double>> ModelFile::find_floats(ConfigKey key) const {
  return find_list<double>(key, &json::is_number, "numbers");
}

std::optional<std::vector<std::string>> ModelFile::find_strings(ConfigKey key) const {
  return find_list<std::string>(key, &json::is_string, "strings");
}

template <typename T>
std::optional<std::vector<T>> ModelFile::find_list(ConfigKey key, bool (json::*is_type)() const,
                                                   const char* type_name) const {
  if (gguf_ || key.hf.empty()) return std::nullopt;
  const json* value = find_json(key.hf);
  if (value == nullptr) return std::nullopt;
  std::vector<T> items;
  bool fits = value->is_array();
  if (fits) {
    for (const json& item : *value) {
      fits = fits && (item.*is_type)();
      if (fits) items.push_back(item.get<T>());
    }
  }
  if (!fits) {
    throw_error(ErrorCode::kCorruptData, "{}: The key '{}' is {}, but a list of {} is expected.",
                config_path_, key.hf, printable_json(*value), type_name);
  }
  return items;
}

int64_t ModelFile::read_int(ConfigKey key) const {
  const auto value = find_int(key);
  if (!value) fail_missing(key);
  return *value;
}

double ModelFile::read_float(ConfigKey key) const {
  const auto value = find_float(key);
  if (!value) fail_missing(key);
  return *value;
}

std::vector<int32_t> ModelFile::list_end_tokens() const {
  std::vector<int32_t> tokens;
  const auto append = [&](int64_t token) {
    const int32_t id = static_cast<int32_t>(token);
    if (token < 0 || token > INT32_MAX) return;  // -1 stands for none in some files
    if (std::find(tokens.begin(), tokens.end(), id) == tokens.end()) tokens.push_back(id);
  };
  if (gguf_) {
    for (const char* key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id"}) {
      if (const auto id = gguf_->find_int(key)) append(*id);
    }
    return tokens;
  }
  const auto found = generation_config_->find("eos_token_id");
  if (found != generation_config_->end() && !found->is_null()) {
    for (int64_t id : read_ints(*found, path_ + "/generation_config.json", "eos_token_id"))
      append(id);
  }
  for (int64_t id : find_ints({"", "eos_token_id"}).value_or(std::vector<int64_t>{})) append(id);
  return tokens;
}

std::vector<std::pair<std::string, std::string>> ModelFile::list_metadata() const {
  std::vector<std::pair<std::string, std::string>> entries;
  if (gguf_) {
    for (const GgufValue& value : gguf_->metadata()) {
      entries.emplace_back(std::string(value.key), printable_value(value));
    }
    return entries;
  }
  for (const auto& [key, value] : config_->items()) entries.emplace_back(key, value.dump());
  return entries;
}

int64_t ModelFile::mapped_bytes() const {
  if (gguf_) return static_cast<int64_t>(gguf_->bytes().size());
  int64_t total = 0;
  for (const SafetensorsFile& file : folder_->files()) {
    total += static_cast<int64_t>(file.bytes().size());
  }
  return total;
}

std::vector<std::string> ModelFile::list_files() const {
  if (gguf_) return {path_};
  std::vector<std::string> files;
  for (const SafetensorsFile& file : folder_->files()) files.push_back(file.path());
  return files;
}

const WeightInfo* ModelFile::find(std::string_view name) const {
  const auto found = weights_.find(name);
  if (found != weights_.end()) return &found->second.info;
  return assembled_ ? assembled_->find(name) : nullptr;
}

std::vector<std::string> ModelFile::list_names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : weights_) names.push_back(name);
  return names;
}

bool ModelFile::is_assembled(std::string_view name) const {
  return weights_.find(name) == weights_.end() && assembled_ && assembled_->find(name) != nullptr;
}

std::span<const std::byte> ModelFile::bytes(std::string_view name) const {
  const auto found = weights_.find(name);
  if (found != weights_.end()) return found->second.bytes;
  RLX_CHECK(is_assembled(name), "no weight is named '{}'", name);
  return assembled_->bytes(name);
}

}  // namespace rlx
