#include "text/sentencepiece_bpe.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "text/unicode.h"

namespace rlx {

SentencePieceBpe::SentencePieceBpe(const Vocab& vocab, std::vector<float> scores,
                                   std::vector<bool> can_merge, std::optional<int32_t> unk_id)
    : vocab_(vocab),
      scores_(std::move(scores)),
      can_merge_(std::move(can_merge)),
      unk_id_(unk_id.value_or(Vocab::kNone)) {
  RLX_CHECK(scores_.size() == static_cast<size_t>(vocab.size()) &&
            can_merge_.size() == scores_.size());
  for (uint32_t byte = 0; byte < 256; ++byte) {
    byte_ids_[byte] = vocab.find(fmt::format("<0x{:02X}>", byte));
  }
}

int32_t SentencePieceBpe::find_mergeable(std::string_view text) const {
  const int32_t id = vocab_.find_in_model(text);
  return id != Vocab::kNone && can_merge_[static_cast<size_t>(id)] ? id : Vocab::kNone;
}

void SentencePieceBpe::encode(std::string_view piece, std::vector<int32_t>& ids) const {
  constexpr uint32_t kEnd = std::numeric_limits<uint32_t>::max();
  // Symbols are ranges of the piece in a linked list; length 0 marks one that is gone.
  struct Symbol {
    uint32_t begin, length, previous, next;
  };
  struct Candidate {
    float score;
    uint32_t left, right;
    uint32_t length;  // of both together; tells whether the candidate still describes its place
  };
  if (piece.size() >= kEnd) {
    throw_error(ErrorCode::kUnsupported, "A text of {} bytes is too long to tokenize at once.",
                piece.size());
  }
  std::vector<Symbol> symbols;
  symbols.reserve(piece.size());
  for (uint32_t at = 0; at < piece.size();) {
    const auto index = static_cast<uint32_t>(symbols.size());
    const uint32_t length = decode_utf8(piece, at).length_bytes;
    symbols.push_back({at, length, index == 0 ? kEnd : index - 1, index + 1});
    at += length;
  }
  if (symbols.empty()) return;
  symbols.back().next = kEnd;

  std::vector<Candidate> heap;
  heap.reserve(symbols.size());
  const auto worse = [](const Candidate& a, const Candidate& b) {
    return a.score != b.score ? a.score < b.score : a.left > b.left;
  };
  const auto push = [&](uint32_t left, uint32_t right, bool keep_heap) {
    const uint32_t length = symbols[left].length + symbols[right].length;
    const int32_t id = find_mergeable(piece.substr(symbols[left].begin, length));
    if (id == Vocab::kNone) return;
    heap.push_back({scores_[static_cast<size_t>(id)], left, right, length});
    if (keep_heap) std::push_heap(heap.begin(), heap.end(), worse);
  };
  for (uint32_t i = 0; i + 1 < symbols.size(); ++i) push(i, i + 1, false);
  std::make_heap(heap.begin(), heap.end(), worse);
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), worse);
    const Candidate top = heap.back();
    heap.pop_back();
    Symbol& left = symbols[top.left];
    Symbol& right = symbols[top.right];
    if (left.length == 0 || right.length == 0 || left.length + right.length != top.length) continue;
    left.length = top.length;
    left.next = right.next;
    right.length = 0;
    if (left.next != kEnd) {
      symbols[left.next].previous = top.left;
      push(top.left, left.next, true);
    }
    if (left.previous != kEnd) push(left.previous, top.left, true);
  }
  for (uint32_t i = 0; i != kEnd; i = symbols[i].next) {
    const std::string_view text = piece.substr(symbols[i].begin, symbols[i].length);
    const int32_t id = find_mergeable(text);
    if (id != Vocab::kNone) {
      ids.push_back(id);
    } else {
      append_bytes(text, ids);
    }
  }
}

void SentencePieceBpe::append_bytes(std::string_view text, std::vector<int32_t>& ids) const {
  const bool all_known = std::all_of(text.begin(), text.end(), [this](char byte) {
    return byte_ids_[static_cast<uint8_t>(byte)] != Vocab::kNone;
  });
  if (all_known) {
    for (const char byte : text) ids.push_back(byte_ids_[static_cast<uint8_t>(byte)]);
    return;
  }
  if (unk_id_ == Vocab::kNone) {
    throw_error(
        ErrorCode::kUnsupported,
        "The text '{}' has no token, and the vocabulary has neither tokens for its bytes nor "
        "one for the unknown.",
        text);
  }
  ids.push_back(unk_id_);
}

}  // namespace rlx
