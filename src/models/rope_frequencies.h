// The angles of rotary position embedding: per pair of elements a frequency (radians per token),
// and a factor on cosine and sine, after the scaling that lets a model read beyond its training
// length.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/model_file.h"

namespace rlx {

// Where base and scaling stand, for models whose layers have different ones.
struct RopeSource {
  std::string section = "rope_parameters";             // of config.json
  ConfigKey base = {".rope.freq_base", "rope_theta"};  // where the section has no rope_theta
  double default_base = 10000;                         // where there is neither
  bool scaled = true;                                  // false: rope_scaling is not for these
  bool gguf_truncate = true;      // of yarn, which GGUF does not say: round the bounds of the ramp
  bool yarn_is_longrope = false;  // of config.json: "yarn" is a name of longrope
};

struct RopeFrequencies {
  std::vector<float> inverse;  // [rotary / 2], radians per token
  double scale = 1;            // on cosine and sine
};

// Reads base and scaling of the model ("default", "linear", "llama3", "yarn", "longrope") and
// computes the frequencies of `rotary` (even) rotated elements for sequences of up to `context`
// tokens; only longrope asks how long they get. Throws kUnsupported naming another kind of scaling.
// Formulas: base^(-2i/rotary); linear (kaiokendev, 2023); llama3 (Llama 3.1 model card's reference
// code); yarn (Peng et al., "YaRN", 2023, as transformers computes it); longrope (Ding et al.,
// "LongRoPE", 2024). GGUF keeps the factors of llama3 and longrope in tensors, not here.
RopeFrequencies read_rope_frequencies(const ModelFile& file, int64_t rotary, int64_t context,
                                      const RopeSource& source = {});

}  // namespace rlx
