// A model as it lies on disk: a .gguf file, or a folder with config.json and safetensors. It hands
// out configuration values and weights under either format's names, so that a model family is
// written once: where the two formats spell a thing differently, the caller gives both spellings.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontends/gguf/gguf_file.h"
#include "frontends/safetensors/safetensors_file.h"
#include "program/weight_store.h"

namespace rlx {

class AssembledWeights;

enum class ModelFormat : uint8_t { kGguf, kSafetensors };

// A configuration value's name in both formats. `gguf` starting with '.' gets the architecture in
// front
// (".block_count" is "llama.block_count"); `hf` is a path into config.json
// ("rope_parameters.factor"). An empty name: the format has no such value.
struct ConfigKey {
  std::string_view gguf;
  std::string_view hf;
};

class ModelFile final : public WeightStore {
 public:
  // Opens a .gguf file or a folder; reads headers only. Throws rlx::Error naming the file.
  static std::shared_ptr<const ModelFile> open(const std::string& path);
  ~ModelFile() override;

  ModelFormat format() const { return gguf_ ? ModelFormat::kGguf : ModelFormat::kSafetensors; }
  const std::string& path() const { return path_; }
  // "llama", "qwen3": general.architecture, or config.json's model_type.
  const std::string& architecture() const { return architecture_; }
  // What holds the configuration, for errors: the .gguf file or config.json.
  const std::string& config_path() const { return config_path_; }
  // Null in the other format.
  const GgufFile* gguf() const { return gguf_ ? &*gguf_ : nullptr; }

  // Values of the configuration; nothing when absent (or null in config.json). A value of another
  // type throws kCorruptData naming the file, the key, and both types.
  std::optional<int64_t> find_int(ConfigKey key) const;
  std::optional<double> find_float(ConfigKey key) const;
  std::optional<bool> find_bool(ConfigKey key) const;
  std::optional<std::string> find_string(ConfigKey key) const;
  // One number or a list of them.
  std::optional<std::vector<int64_t>> find_ints(ConfigKey key) const;
  // Lists, of config.json only: families whose GGUF files have such a list do without.
  std::optional<std::vector<double>> find_floats(ConfigKey key) const;
  std::optional<std::vector<std::string>> find_strings(ConfigKey key) const;
  // The same, but an absent value throws kCorruptData naming it.
  int64_t read_int(ConfigKey key) const;
  double read_float(ConfigKey key) const;

  // Ids that end a text, from every place that the format has for them; may be empty.
  std::vector<int32_t> list_end_tokens() const;

  // All metadata as key and printable value, for people.
  std::vector<std::pair<std::string, std::string>> list_metadata() const;
  // Bytes of the files that hold weights.
  int64_t mapped_bytes() const;
  std::vector<std::string> list_files() const;

  // Besides the tensors of the files, those that are assembled from several of them; see
  // assembled_weights.h. list_names leaves these out: their parts are in it.
  const WeightInfo* find(std::string_view name) const override;
  std::vector<std::string> list_names() const override;
  // An assembled weight is put together at the first call. Any thread may call.
  std::span<const std::byte> bytes(std::string_view name) const override;
  // Whether the weight takes memory of its own, because it is not in a file as it is used.
  bool is_assembled(std::string_view name) const;

 private:
  struct Entry {
    WeightInfo info;
    std::span<const std::byte> bytes;
  };

  ModelFile();
  void open_gguf(const std::string& path);
  void open_folder(const std::string& path);
  std::string gguf_key(std::string_view key) const;
  const nlohmann::json* find_json(std::string_view path) const;
  template <typename T>
  std::optional<T> find_value(ConfigKey key,
                              std::optional<T> (GgufFile::*find_gguf)(std::string_view) const,
                              bool (nlohmann::json::*is_type)() const, const char* type_name) const;
  template <typename T>
  std::optional<std::vector<T>> find_list(ConfigKey key, bool (nlohmann::json::*is_type)() const,
                                          const char* type_name) const;
  [[noreturn]] void fail_missing(ConfigKey key) const;

  std::string path_, architecture_, config_path_;
  std::optional<GgufFile> gguf_;
  std::optional<SafetensorsFolder> folder_;
  std::unique_ptr<nlohmann::json> config_;             // of a folder
  std::unique_ptr<nlohmann::json> generation_config_;  // of a folder; null object when absent
  std::map<std::string, Entry, std::less<>> weights_;
  std::unique_ptr<AssembledWeights> assembled_;  // of a folder; null otherwise
};

}  // namespace rlx
