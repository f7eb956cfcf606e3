#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "base/error.h"
#include "base/printable_text.h"
#include "frontends/safetensors/safetensors_file.h"
#include "frontends/safetensors/safetensors_header.h"

namespace rlx {
namespace {

constexpr const char* kSingleName = "model.safetensors";
constexpr const char* kIndexName = "model.safetensors.index.json";

bool exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

void check_plain_name(const std::string& name, const std::string& tensor) {
  const bool has_separator = name.find_first_of(std::string_view("/\\\0", 3)) != std::string::npos;
  if (name.empty() || name == "." || name == ".." || has_separator) {
    throw_error(ErrorCode::kCorruptData,
                "The index places tensor {} in {}, but expected the name of a file in its folder.",
                printable_text(tensor), printable_text(name));
  }
}

}  // namespace

SafetensorsFolder::SafetensorsFolder(const std::string& folder) : path_(folder) {
  const std::string single_path = folder + "/" + kSingleName;
  const std::string index_path = folder + "/" + kIndexName;
  if (exists(single_path)) {
    files_.emplace_back(single_path);
    collect_weights();
  } else if (exists(index_path)) {
    open_shards(index_path);
  } else {
    throw_error(ErrorCode::kNotFound, "The folder '{}' holds neither {} nor {}.", folder,
                kSingleName, kIndexName);
  }
}

void SafetensorsFolder::open_shards(const std::string& index_path) {
  with_context(index_path, [&] {
    const MappedFile index_file(index_path);
    const auto weight_map = safetensors::parse_index(index_file.bytes());
    std::map<std::string, std::vector<std::string>> names_of_shard;
    std::set<std::string_view> names;
    for (const auto& [name, shard] : weight_map) {
      check_plain_name(shard, name);
      if (!names.insert(name).second) {
        throw_error(ErrorCode::kCorruptData, "The tensor {} appears twice in the index.",
                    printable_text(name));
      }
      names_of_shard[shard].push_back(name);
    }
    files_.reserve(names_of_shard.size());
    for (const auto& entry : names_of_shard) files_.emplace_back(path_ + "/" + entry.first);
    collect_weights();

    size_t file = 0;
    for (const auto& [shard, expected_names] : names_of_shard) {
      const SafetensorsFile& shard_file = files_[file++];
      std::set<std::string_view> unsupported;
      for (const auto& tensor : shard_file.unsupported_tensors()) unsupported.insert(tensor.name);
      for (const std::string& name : expected_names) {
        if (unsupported.contains(name)) continue;
        if (shard_file.find_tensor(name) == nullptr) {
          throw_error(ErrorCode::kCorruptData,
                      "The tensor {} is not in {}, where the index has it.", printable_text(name),
                      printable_text(shard));
        }
      }
    }
  });
}

void SafetensorsFolder::collect_weights() {
  // All names, so that a tensor which is readable in one shard and not in another is found too.
  std::map<std::string_view, const SafetensorsFile*> holder;
  const auto hold = [&](std::string_view name, const SafetensorsFile& file) {
    const auto [first, is_new] = holder.emplace(name, &file);
    if (!is_new) {
      throw_error(ErrorCode::kCorruptData, "The tensor {} is in two files, '{}' and '{}'.",
                  printable_text(name), first->second->path(), file.path());
    }
  };
  for (const SafetensorsFile& file : files_) {
    for (const SafetensorsTensor& tensor : file.tensors()) {
      hold(tensor.name, file);
      weights_.push_back({&file, &tensor});
    }
    for (const UnsupportedTensor& tensor : file.unsupported_tensors()) hold(tensor.name, file);
  }
  std::sort(weights_.begin(), weights_.end(),
            [](const SafetensorsWeight& a, const SafetensorsWeight& b) {
              return a.tensor->name < b.tensor->name;
            });
}

std::optional<SafetensorsWeight> SafetensorsFolder::find_tensor(std::string_view name) const {
  const auto found = std::lower_bound(weights_.begin(), weights_.end(), name,
                                      [](const SafetensorsWeight& weight, std::string_view wanted) {
                                        return weight.tensor->name < wanted;
                                      });
  if (found != weights_.end() && found->tensor->name == name) return *found;
  for (const SafetensorsFile& file : files_) file.find_tensor(name);  // throws if unsupported
  return std::nullopt;
}

}  // namespace rlx
