#include "text/unigram.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "text/unicode.h"

namespace rlx {
namespace {

// An unknown character costs this much more than the least likely token (SentencePiece).
constexpr double kUnknownPenalty = 10.0;

}  // namespace

Unigram::Unigram(const Vocab& vocab, std::vector<double> scores, std::optional<int32_t> unk_id,
                 bool byte_fallback)
    : scores_(std::move(scores)), unk_id_(unk_id.value_or(Vocab::kNone)) {
  if (unk_id && (*unk_id < 0 || *unk_id >= vocab.size())) {
    throw_error(ErrorCode::kOutOfRange,
                "The unknown token has the id {}, but the vocabulary has {} tokens.", *unk_id,
                vocab.size());
  }
  RLX_CHECK(scores_.size() == static_cast<size_t>(vocab.size()));
  double min_score = std::numeric_limits<double>::infinity();
  size_t key_bytes = 0;
  for (int32_t id = 0; id < vocab.size(); ++id) key_bytes += vocab.text(id).size();
  // Prefixes are shared: published vocabularies have about half as many nodes as bytes.
  trie_.reserve(key_bytes / 2);
  for (int32_t id = 0; id < vocab.size(); ++id) {
    trie_.add(vocab.text(id), id);
    min_score = std::min(min_score, scores_[static_cast<size_t>(id)]);
  }
  unk_score_ = min_score - kUnknownPenalty;
  byte_ids_.fill(Vocab::kNone);
  if (byte_fallback) {
    for (uint32_t byte = 0; byte < 256; ++byte) {
      byte_ids_[byte] = vocab.find(fmt::format("<0x{:02X}>", byte));
    }
  }
}

void Unigram::encode(std::string_view piece, std::vector<int32_t>& ids) const {
  // best[i] is the best way to cover the first i bytes: its last token and where that begins.
  struct Node {
    double score = 0;
    size_t begin = 0;
    int32_t id = Vocab::kNone;  // an unknown character, if the node is reached
    bool reached = false;
  };
  std::vector<Node> best(piece.size() + 1);
  const auto offer = [&best](size_t end, double score, size_t begin, int32_t id) {
    Node& node = best[end];
    if (!node.reached || score > node.score) node = {score, begin, id, true};
  };
  for (size_t begin = 0; begin < piece.size();) {
    const size_t character_bytes = decode_utf8(piece, begin).length_bytes;
    const double score = best[begin].score;
    bool has_character = false;
    trie_.for_each_prefix(piece, begin, [&](size_t length, int32_t id) {
      offer(begin + length, score + scores_[static_cast<size_t>(id)], begin, id);
      has_character |= length == character_bytes;
    });
    if (!has_character) offer(begin + character_bytes, score + unk_score_, begin, unk_id_);
    begin += character_bytes;
  }

  const size_t first = ids.size();
  struct Span {
    size_t begin, end;
    int32_t id;
  };
  std::vector<Span> path;
  for (size_t end = piece.size(); end > 0; end = best[end].begin) {
    path.push_back({best[end].begin, end, best[end].id});
  }
  std::reverse(path.begin(), path.end());
  // A run of unknown characters is one token.
  for (size_t i = 0; i < path.size();) {
    if (path[i].id != unk_id_ && path[i].id != Vocab::kNone) {
      ids.push_back(path[i++].id);
      continue;
    }
    size_t next = i + 1;
    while (next < path.size() && path[next].id == path[i].id) ++next;
    append_unknown(piece.substr(path[i].begin, path[next - 1].end - path[i].begin), ids);
    i = next;
  }
  RLX_CHECK(ids.size() > first);
}

void Unigram::append_unknown(std::string_view text, std::vector<int32_t>& ids) const {
  const bool all_bytes_known = std::all_of(text.begin(), text.end(), [this](char byte) {
    return byte_ids_[static_cast<uint8_t>(byte)] != Vocab::kNone;
  });
  if (all_bytes_known) {
    for (const char byte : text) ids.push_back(byte_ids_[static_cast<uint8_t>(byte)]);
    return;
  }
  if (unk_id_ == Vocab::kNone) {
    throw_error(ErrorCode::kUnsupported,
                "The text '{}' has no token and the vocabulary has no token for the unknown.",
                text);
  }
  ids.push_back(unk_id_);
}

}  // namespace rlx
