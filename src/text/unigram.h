// Unigram: among all ways to cut a piece into tokens, the one with the highest sum of scores (log
// probabilities), found by dynamic programming over the piece's bytes.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "text/byte_trie.h"
#include "text/token_model.h"
#include "text/vocab.h"

namespace rlx {

class Unigram final : public TokenModel {
 public:
  // `scores` has one entry per id and is finite. Throws kOutOfRange if `unk_id` is not an id.
  Unigram(const Vocab& vocab, std::vector<double> scores, std::optional<int32_t> unk_id,
          bool byte_fallback);

  // Throws kUnsupported if a character has no token and there is no unknown token.
  void encode(std::string_view piece, std::vector<int32_t>& ids) const override;

 private:
  void append_unknown(std::string_view text, std::vector<int32_t>& ids) const;

  ByteTrie trie_;
  std::vector<double> scores_;
  int32_t unk_id_;  // or kNone
  double unk_score_;
  std::array<int32_t, 256> byte_ids_;  // of <0xNN> with byte fallback, or kNone
};

}  // namespace rlx
