// Writes a whole GGUF file of random weights and a random vocabulary in the shape of a known model.
#pragma once

#include <cstdint>
#include <string>

#include "model_shapes.h"

namespace rlx::bench {

// `type` is a kind of file as choose_dtype takes it. The same seed gives the same file. Throws kIo
// naming the path, and what choose_dtype throws.
void write_random_model(const ModelShape& shape, std::string_view type, uint64_t seed,
                        const std::string& path);

}  // namespace rlx::bench
