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
  // An encoder has the inputs and outputs that bert.cpp names instead of a decoder's.
  bool is_encoder = false;
};

std::span<const ModelFamily> model_families();

// The graph of the model in the file. Throws kUnsupported naming an unknown architecture and the
// known ones, kOutOfRange for a context beyond the model's, kCorruptData for missing or misshapen
// tensors; the file is in the context.
Graph build_graph(const ModelFile& file, const GraphOptions& options);

// Throws kUnsupported when the file's model is an encoder, which writes no text.
void check_decoder(const ModelFile& file);

// Throws kUnsupported when it is none.
void check_encoder(const ModelFile& file);

// Throws kUnsupported unless the gates of the feed-forward are SiLU, as the name says or by
// default.
void check_gated_silu(const ModelFile& file);

// One function per family.
Graph build_bert(const ModelFile& file, const GraphOptions& options);
Graph build_gemma3(const ModelFile& file, const GraphOptions& options);
Graph build_gpt2(const ModelFile& file, const GraphOptions& options);
Graph build_gpt_oss(const ModelFile& file, const GraphOptions& options);
Graph build_llama(const ModelFile& file, const GraphOptions& options);
Graph build_mistral(const ModelFile& file, const GraphOptions& options);
Graph build_phi3(const ModelFile& file, const GraphOptions& options);
Graph build_qwen2(const ModelFile& file, const GraphOptions& options);
Graph build_qwen3(const ModelFile& file, const GraphOptions& options);
Graph build_qwen3_moe(const ModelFile& file, const GraphOptions& options);

}  // namespace rlx
