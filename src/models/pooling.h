// How an encoder's token vectors become one vector for a text: what sentence-transformers keeps
// beside the model (modules.json and the pooling's config.json), or the pooling type of a GGUF
// file.
#pragma once

#include <cstdint>
#include <optional>

#include "models/model_file.h"

namespace rlx {

enum class PoolingKind : uint8_t {
  kMean,            // over the tokens
  kMeanSquareRoot,  // the sum over the root of their number
  kMax,             // of each element
  kFirst,           // the vector of the first token
};

struct Pooling {
  PoolingKind kind = PoolingKind::kMean;
  bool normalize = false;             // to length 1
  std::optional<int64_t> max_tokens;  // of a text, where the model's files bound it further
};

// The mean without scaling when a folder says nothing; GGUF files carry no word on the length, and
// the programs that read them scale to 1. Throws kUnsupported naming another pooling, kCorruptData
// for files that do not hold what they should.
Pooling read_pooling(const ModelFile& file);

}  // namespace rlx
