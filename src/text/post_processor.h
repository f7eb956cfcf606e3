// The last step of encoding: the tokens that the model wants around one text.
#pragma once

#include <cstdint>
#include <vector>

namespace rlx {

struct PostProcessor {
  std::vector<int32_t> prefix, suffix;

  // Puts the tokens of `outer` around what this one makes.
  void wrap(const PostProcessor& outer) {
    prefix.insert(prefix.begin(), outer.prefix.begin(), outer.prefix.end());
    suffix.insert(suffix.end(), outer.suffix.begin(), outer.suffix.end());
  }
};

}  // namespace rlx
