#include "text/word_piece.h"

#include <algorithm>

#include "base/error.h"
#include "text/unicode.h"

namespace rlx {

WordPiece::WordPiece(const Vocab& vocab, WordPieceOptions options)
    : vocab_(vocab), options_(std::move(options)), unk_id_(vocab.find(options_.unk_token)) {
  if (unk_id_ == Vocab::kNone) {
    throw_error(ErrorCode::kCorruptData, "The unknown token '{}' is not in the vocabulary.",
                options_.unk_token);
  }
}

void WordPiece::encode(std::string_view piece, std::vector<int32_t>& ids) const {
  size_t num_characters = 0;
  for (const char c : piece) num_characters += (static_cast<uint8_t>(c) & 0xC0) != 0x80;
  if (num_characters > options_.max_characters_per_word) {
    ids.push_back(unk_id_);
    return;
  }
  const size_t first = ids.size();
  std::string candidate;
  for (size_t begin = 0; begin < piece.size();) {
    const std::string& prefix =
        begin == 0 ? options_.word_prefix : options_.continuing_subword_prefix;
    // No token is longer than the longest, so the search starts there.
    const size_t room = vocab_.max_text_bytes() - std::min(vocab_.max_text_bytes(), prefix.size());
    size_t end = std::min(piece.size(), begin + room);
    candidate.assign(prefix);
    candidate.append(piece.substr(begin, end - begin));
    int32_t id = Vocab::kNone;
    while (end > begin) {
      const bool at_character =
          end == piece.size() || (static_cast<uint8_t>(piece[end]) & 0xC0) != 0x80;
      if (at_character) {
        id = vocab_.find_in_model(candidate);
        if (id != Vocab::kNone) break;
      }
      candidate.pop_back();
      --end;
    }
    if (id == Vocab::kNone) {
      ids.resize(first);
      ids.push_back(unk_id_);
      return;
    }
    ids.push_back(id);
    begin = end;
  }
}

}  // namespace rlx
