// WordPiece: a word becomes the longest token that it starts with, then the longest continuation,
// and so on; a word that this does not cover is the unknown token as a whole.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/token_model.h"
#include "text/vocab.h"

namespace rlx {

struct WordPieceOptions {
  std::string unk_token;
  std::string word_prefix;                       // before the first token of a word
  std::string continuing_subword_prefix = "##";  // before the others
  size_t max_characters_per_word = 100;          // a longer word is unknown
};

class WordPiece final : public TokenModel {
 public:
  // `vocab` must outlive the model. Throws kCorruptData if the unknown token is not in it.
  WordPiece(const Vocab& vocab, WordPieceOptions options);

  void encode(std::string_view piece, std::vector<int32_t>& ids) const override;

 private:
  const Vocab& vocab_;
  WordPieceOptions options_;
  int32_t unk_id_;
};

}  // namespace rlx
