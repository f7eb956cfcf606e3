#include <cstdio>

#include "base/error.h"
#include "commands.h"
#include "frontends/npy/npy.h"
#include "rlx/embedding_model.h"

namespace rlx::cli {
namespace {

void write_vectors(const std::string& file, const std::vector<std::vector<float>>& vectors,
                   int64_t num_dimensions) {
  std::vector<float> all;
  for (const auto& vector : vectors) all.insert(all.end(), vector.begin(), vector.end());
  const int64_t shape[] = {static_cast<int64_t>(vectors.size()), num_dimensions};
  write_npy(file, DType::kF32, shape, std::as_bytes(std::span(all)));
}

// A JSON array with an array for each text, on a line of its own.
void print_vectors(const std::vector<std::vector<float>>& vectors) {
  fmt::print("[");
  for (size_t i = 0; i < vectors.size(); ++i) {
    fmt::print("{}[{}]", i == 0 ? "" : ",\n ", fmt::join(vectors[i], ", "));
  }
  fmt::print("]\n");
}

}  // namespace

int embed(const EmbedOptions& options) {
  std::vector<std::string> texts = options.texts;
  if (!options.file.empty()) {
    for (std::string& line : read_lines(options.file)) texts.push_back(std::move(line));
  }
  if (texts.empty()) {
    throw_error(ErrorCode::kInvalidArgument, "There is no text to embed.");
  }
  EmbeddingModel model =
      EmbeddingModel::load(options.model, {.max_tokens = options.max_tokens,
                                           .max_batch = options.max_batch,
                                           .threads = options.threads,
                                           .quantize_activations = options.activations == "int8",
                                           .truncate = options.truncate});
  const auto vectors = model.embed(texts);
  if (options.output.empty()) {
    print_vectors(vectors);
  } else {
    write_vectors(options.output, vectors, model.num_dimensions());
  }
  return 0;
}

}  // namespace rlx::cli
