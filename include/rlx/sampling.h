// What a caller may ask of the choice of the next token beyond plain numbers.
#pragma once

#include <cstdint>

namespace rlx {

// A value that is added to the logit of one token before anything else looks at the logits.
struct LogitBias {
  int32_t token = 0;
  float bias = 0;  // finite, or -infinity, which excludes the token
};

}  // namespace rlx
