// SentencePiece's BPE, as GGUF files with model "llama" carry it: there is no list of merges. Two
// neighbours join if their text together is a token, the one with the highest score first, leftmost
// first among equals. Characters that stay without a token become the tokens of their bytes.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "text/token_model.h"
#include "text/vocab.h"

namespace rlx {

class SentencePieceBpe final : public TokenModel {
 public:
  // `scores` and `can_merge` have one entry per id. Only tokens with `can_merge` are built from
  // text: control and byte tokens are not. `vocab` must outlive the model.
  SentencePieceBpe(const Vocab& vocab, std::vector<float> scores, std::vector<bool> can_merge,
                   std::optional<int32_t> unk_id);

  // Throws kUnsupported if a byte has no token and there is no unknown token.
  void encode(std::string_view piece, std::vector<int32_t>& ids) const override;

 private:
  int32_t find_mergeable(std::string_view text) const;
  void append_bytes(std::string_view text, std::vector<int32_t>& ids) const;

  const Vocab& vocab_;
  std::vector<float> scores_;
  std::vector<bool> can_merge_;
  int32_t unk_id_;                     // or kNone
  std::array<int32_t, 256> byte_ids_;  // of <0xNN>, or kNone
};

}  // namespace rlx
