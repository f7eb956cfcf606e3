#include "models/families.h"

#include "base/error.h"

namespace rlx {

std::span<const ModelFamily> model_families() {
  static constexpr ModelFamily kFamilies[] = {
      {"llama", build_llama},
      {"qwen3", build_qwen3},
  };
  return kFamilies;
}

Graph build_graph(const ModelFile& file, const GraphOptions& options) {
  std::string known;
  for (const ModelFamily& family : model_families()) {
    if (family.name == file.architecture()) {
      return family.build(file, options);
    }
    known += (known.empty() ? "" : ", ") + std::string(family.name);
  }
  throw_error(ErrorCode::kUnsupported, "{}: The architecture '{}' is not supported; these are: {}.",
              file.path(), file.architecture(), known);
}

}  // namespace rlx
