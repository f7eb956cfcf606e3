// The middle of a tokenizer: one piece of normalised, pre-split text becomes token ids.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace rlx {

class TokenModel {
 public:
  virtual ~TokenModel() = default;
  // Appends the ids of `piece`, which is not empty and is valid UTF-8. Const use is thread-safe.
  virtual void encode(std::string_view piece, std::vector<int32_t>& ids) const = 0;
};

}  // namespace rlx
