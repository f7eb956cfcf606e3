// The model families that can be built, by the name that files give their architecture. Adding one
// is a file with a build function, and a line in families.cpp.
#pragma once

#include <span>
#include <string_view>

#include "models/decoder.h"

namespace rlx {

struct ModelFamily {
  std::string_view name;  // general.architecture, or model_type
  Graph (*build)(const ModelFile& file, const GraphOptions& options);
};

std::span<const ModelFamily> model_families();

// The graph of the model in the file. Throws kUnsupported naming an unknown architecture and the
// known ones, kOutOfRange for a context beyond the model's, kCorruptData for missing or misshapen
// tensors; the file is in the context.
Graph build_graph(const ModelFile& file, const GraphOptions& options);

// One function per family file.
Graph build_llama(const ModelFile& file, const GraphOptions& options);
Graph build_qwen3(const ModelFile& file, const GraphOptions& options);

}  // namespace rlx
