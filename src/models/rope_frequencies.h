// The angles of rotary position embedding: per pair of elements a frequency (radians per token),
// and a factor on cosine and sine, after the scaling that lets a model read beyond its training
// length.
#pragma once

#include <cstdint>
#include <vector>

#include "models/model_file.h"

namespace rlx {

struct RopeFrequencies {
  std::vector<float> inverse;  // [rotary / 2], radians per token
  double scale = 1;            // on cosine and sine
};

// Reads base and scaling of the model ("default", "linear", "llama3", "yarn") and computes the
// frequencies of `rotary` (even) rotated elements. Throws kUnsupported naming another kind of
// scaling. Formulas: base^(-2i/rotary); linear (kaiokendev, 2023); llama3 (Llama 3.1 model card's
// reference code); yarn (Peng et al., "YaRN", 2023, as transformers computes it).
RopeFrequencies read_rope_frequencies(const ModelFile& file, int64_t rotary, double default_base);

}  // namespace rlx
