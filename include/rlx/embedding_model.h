// An encoder that turns texts into vectors: texts of like meaning get vectors that point the same
// way. Pooling and scaling are those that the model's files ask for.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rlx/plan.h"

namespace rlx {

struct EmbeddingOptions {
  int64_t max_tokens = 0;            // most tokens of a text; 0: what the model is made for
  int64_t max_batch = 8;             // most texts of one run
  int threads = 0;                   // 0: as many as this process may use
  bool quantize_activations = true;  // multiply packed weights in int8; false: in float
  bool truncate = false;             // cut texts that are too long; false: they are an error
};

// Movable. One caller at a time.
class EmbeddingModel {
 public:
  // `path` is a .gguf file, or a folder with config.json, tokenizer.json and *.safetensors. Throws
  // kUnsupported for a model that is no encoder, and what LanguageModel::load throws.
  static EmbeddingModel load(const std::string& path, const EmbeddingOptions& options = {});
  EmbeddingModel(EmbeddingModel&&) noexcept;
  EmbeddingModel& operator=(EmbeddingModel&&) noexcept;
  ~EmbeddingModel();

  // A vector of num_dimensions() for each text, in order. What a text gets does not depend on the
  // others. Throws kOutOfRange naming a text that is too long, unless truncation is on.
  std::vector<std::vector<float>> embed(std::span<const std::string> texts);

  int64_t num_dimensions() const;
  int64_t max_tokens() const;
  const PlanReport& plan_report() const;

  struct Parts;  // internal

 private:
  explicit EmbeddingModel(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace rlx
