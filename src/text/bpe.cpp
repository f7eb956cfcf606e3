#include "text/bpe.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>

#include "base/error.h"
#include "text/unicode.h"

namespace rlx {
namespace {

constexpr int32_t kNoRank = std::numeric_limits<int32_t>::max();
constexpr uint64_t kEmptyPair = ~uint64_t{0};  // ids are not negative, so no pair is this
// Up to this many symbols a scan for the lowest rank beats a heap; most words are far shorter.
constexpr size_t kShortPiece = 32;

uint64_t pair_key(int32_t left, int32_t right) {
  return (static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32) | static_cast<uint32_t>(right);
}

size_t pair_hash(uint64_t pair) {
  pair *= 0x9E3779B97F4A7C15u;
  return static_cast<size_t>(pair ^ (pair >> 32));
}

}  // namespace

Bpe::Bpe(const Vocab& vocab, std::span<const Merge> merges, BpeOptions options)
    : vocab_(vocab), options_(std::move(options)) {
  if (!options_.unk_token.empty()) {
    unk_id_ = vocab_.find(options_.unk_token);
    if (unk_id_ == Vocab::kNone) {
      throw_error(ErrorCode::kCorruptData, "The unknown token '{}' is not in the vocabulary.",
                  options_.unk_token);
    }
  }
  byte_ids_.fill(Vocab::kNone);
  if (options_.byte_fallback) {
    for (uint32_t byte = 0; byte < 256; ++byte) {
      byte_ids_[byte] = vocab_.find_in_model(fmt::format("<0x{:02X}>", byte));
    }
  }
  std::string text;
  for (uint32_t c = 0; c < character_ids_.size(); ++c) {
    text.clear();
    append_utf8(c, text);
    character_ids_[c] = vocab_.find_in_model(text);
  }
  add_merges(merges);
}

void Bpe::add_merges(std::span<const Merge> merges) {
  if (merges.size() >= static_cast<size_t>(kNoRank)) {
    throw_error(ErrorCode::kCorruptData, "There are {} merges, more than {}.", merges.size(),
                kNoRank - 1);
  }
  pairs_.assign(std::bit_ceil(std::max<size_t>(16, 2 * merges.size())), {kEmptyPair, kNoRank, -1});
  // The parts of merges are looked up in batches. What they make is guessed first: vocabularies
  // list the merged tokens in the order of their merges, so it is the last one again or the one
  // after it.
  constexpr size_t kBatch = Vocab::kMaxBatch / 2;
  std::array<std::string_view, 2 * kBatch> texts;
  std::array<int32_t, 2 * kBatch> ids;
  std::array<int32_t, kBatch> merged_ids;
  std::string joined;
  int32_t last_merged = Vocab::kNone;
  for (size_t first = 0; first < merges.size(); first += kBatch) {
    const std::span<const Merge> batch =
        merges.subspan(first, std::min(kBatch, merges.size() - first));
    for (size_t i = 0; i < batch.size(); ++i) {
      texts[2 * i] = batch[i].left;
      texts[2 * i + 1] = batch[i].right;
    }
    vocab_.find_in_model(std::span(texts).first(2 * batch.size()),
                         std::span(ids).first(2 * batch.size()));
    const auto fail = [&](size_t i, std::string_view missing) {
      throw_error(ErrorCode::kCorruptData,
                  "Merge {} joins '{}' and '{}', but '{}' is not in the vocabulary.", first + i,
                  batch[i].left, batch[i].right, missing);
    };
    for (size_t i = 0; i < batch.size(); ++i) {
      for (size_t part = 2 * i; part < 2 * i + 2; ++part) {
        if (ids[part] == Vocab::kNone) fail(i, texts[part]);
      }
      __builtin_prefetch(
          &pairs_[pair_hash(pair_key(ids[2 * i], ids[2 * i + 1])) & (pairs_.size() - 1)], 1);
      joined.assign(batch[i].left);
      joined += without_subword_prefix(batch[i].right);
      if (vocab_.is_model_text(last_merged + 1, joined)) {
        ++last_merged;
      } else if (!vocab_.is_model_text(last_merged, joined)) {
        last_merged = vocab_.find_in_model(joined);
        if (last_merged == Vocab::kNone) fail(i, joined);
      }
      merged_ids[i] = last_merged;
    }
    for (size_t i = 0; i < batch.size(); ++i) {
      insert_pair(pair_key(ids[2 * i], ids[2 * i + 1]), static_cast<int32_t>(first + i),
                  merged_ids[i]);
    }
  }
}

std::string_view Bpe::without_subword_prefix(std::string_view token) const {
  const std::string& prefix = options_.continuing_subword_prefix;
  return token.starts_with(prefix) ? token.substr(prefix.size()) : token;
}

void Bpe::insert_pair(uint64_t pair, int32_t rank, int32_t merged_id) {
  const size_t mask = pairs_.size() - 1;
  size_t at = pair_hash(pair) & mask;
  while (pairs_[at].pair != kEmptyPair && pairs_[at].pair != pair) at = (at + 1) & mask;
  // A pair that is listed twice keeps its later rank, as in the reference (a map insert).
  pairs_[at] = {pair, rank, merged_id};
}

Bpe::Ranked Bpe::find_merge(int32_t left, int32_t right) const {
  const uint64_t key = pair_key(left, right);
  const size_t mask = pairs_.size() - 1;
  for (size_t at = pair_hash(key) & mask;; at = (at + 1) & mask) {
    const PairSlot& slot = pairs_[at];
    if (slot.pair == key) return {slot.rank, slot.merged_id};
    if (slot.pair == kEmptyPair) return {kNoRank, Vocab::kNone};
  }
}

void Bpe::encode(std::string_view piece, std::vector<int32_t>& ids) const {
  if (options_.ignore_merges) {
    const int32_t whole = vocab_.find_in_model(piece);
    if (whole != Vocab::kNone) {
      ids.push_back(whole);
      return;
    }
  }
  // The symbols are written behind the ids that are there and merged in place.
  const size_t begin = ids.size();
  if (options_.continuing_subword_prefix.empty() && options_.end_of_word_suffix.empty()) {
    append_characters(piece, ids);
  } else {
    append_decorated_characters(piece, ids);
  }
  if (ids.size() - begin <= kShortPiece) {
    merge_short(ids, begin);
  } else {
    merge_long(ids, begin);
  }
}

void Bpe::append_characters(std::string_view piece, std::vector<int32_t>& symbols) const {
  bool after_unk = false;
  for (size_t at = 0; at < piece.size();) {
    const DecodedCharacter c = decode_utf8(piece, at);
    const std::string_view character = piece.substr(at, c.length_bytes);
    at += c.length_bytes;
    const int32_t id = c.valid && c.code_point < character_ids_.size()
                           ? character_ids_[c.code_point]
                           : vocab_.find_in_model(character);
    if (id != Vocab::kNone) {
      symbols.push_back(id);
      after_unk = false;
    } else {
      append_unknown(character, after_unk, symbols);
    }
  }
}

void Bpe::append_decorated_characters(std::string_view piece, std::vector<int32_t>& symbols) const {
  bool after_unk = false;
  std::string decorated;
  for (size_t at = 0; at < piece.size();) {
    const DecodedCharacter c = decode_utf8(piece, at);
    const std::string_view character = piece.substr(at, c.length_bytes);
    decorated.clear();
    if (at > 0) decorated += options_.continuing_subword_prefix;
    decorated += character;
    at += c.length_bytes;
    if (at == piece.size()) decorated += options_.end_of_word_suffix;
    const int32_t id = vocab_.find_in_model(decorated);
    if (id != Vocab::kNone) {
      symbols.push_back(id);
      after_unk = false;
    } else {
      append_unknown(decorated, after_unk, symbols);
    }
  }
}

void Bpe::append_unknown(std::string_view character, bool& after_unk,
                         std::vector<int32_t>& symbols) const {
  if (options_.byte_fallback) {
    const bool all_known = std::all_of(character.begin(), character.end(), [this](char byte) {
      return byte_ids_[static_cast<uint8_t>(byte)] != Vocab::kNone;
    });
    if (all_known) {
      for (const char byte : character) symbols.push_back(byte_ids_[static_cast<uint8_t>(byte)]);
      after_unk = false;
      return;
    }
  }
  if (unk_id_ == Vocab::kNone || (after_unk && options_.fuse_unk)) return;
  symbols.push_back(unk_id_);
  after_unk = true;
}

void Bpe::merge_short(std::vector<int32_t>& ids, size_t begin) const {
  int32_t* symbols = ids.data() + begin;
  size_t count = ids.size() - begin;
  if (count < 2) return;
  // pairs[i] is the merge of symbols i and i + 1.
  std::array<Ranked, kShortPiece> pairs;
  for (size_t i = 0; i + 1 < count; ++i) pairs[i] = find_merge(symbols[i], symbols[i + 1]);
  for (;;) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < count; ++i) {
      if (pairs[i].rank < pairs[best].rank) best = i;
    }
    if (pairs[best].rank == kNoRank) break;
    symbols[best] = pairs[best].merged_id;
    std::copy(symbols + best + 2, symbols + count, symbols + best + 1);
    --count;
    if (count < 2) break;
    for (size_t i = best + 1; i + 1 < count; ++i) pairs[i] = pairs[i + 1];
    if (best > 0) pairs[best - 1] = find_merge(symbols[best - 1], symbols[best]);
    if (best + 1 < count) pairs[best] = find_merge(symbols[best], symbols[best + 1]);
  }
  ids.resize(begin + count);
}

void Bpe::merge_long(std::vector<int32_t>& ids, size_t begin) const {
  // A linked list of symbols in place and a heap of candidate merges, each a rank and a position in
  // one integer: the smallest is the lowest rank, leftmost. A candidate whose place has changed
  // since has another rank there and is dropped when it comes up: symbols only grow, so a pair of
  // the same rank at the same position is the same pair.
  struct Links {
    uint32_t previous, next;
  };
  constexpr uint32_t kEnd = std::numeric_limits<uint32_t>::max();
  constexpr int32_t kRemoved = -2;
  const size_t count = ids.size() - begin;
  if (count >= kEnd) {
    throw_error(ErrorCode::kUnsupported, "A word of {} symbols is too long to tokenize.", count);
  }
  int32_t* symbols = ids.data() + begin;
  std::vector<Links> links(count);
  std::vector<uint64_t> heap;
  heap.reserve(count);
  const std::greater<uint64_t> later;
  const auto append = [&](uint32_t position, uint32_t next) {
    const int32_t rank = find_merge(symbols[position], symbols[next]).rank;
    if (rank == kNoRank) return false;
    heap.push_back((static_cast<uint64_t>(rank) << 32) | position);
    return true;
  };
  for (uint32_t i = 0; i < count; ++i) {
    links[i] = {i == 0 ? kEnd : i - 1, i + 1 == count ? kEnd : i + 1};
    if (i + 1 < count) append(i, i + 1);
  }
  std::make_heap(heap.begin(), heap.end(), later);
  const auto push = [&](uint32_t position, uint32_t next) {
    if (append(position, next)) std::push_heap(heap.begin(), heap.end(), later);
  };
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), later);
    const auto position = static_cast<uint32_t>(heap.back());
    const auto rank = static_cast<int32_t>(heap.back() >> 32);
    heap.pop_back();
    const uint32_t next = links[position].next;
    if (symbols[position] == kRemoved || next == kEnd) continue;
    const Ranked merge = find_merge(symbols[position], symbols[next]);
    if (merge.rank != rank) continue;
    symbols[position] = merge.merged_id;
    symbols[next] = kRemoved;
    const uint32_t after = links[next].next;
    links[position].next = after;
    if (after != kEnd) {
      links[after].previous = position;
      push(position, after);
    }
    const uint32_t previous = links[position].previous;
    if (previous != kEnd) push(previous, position);
  }
  ids.erase(std::remove(ids.begin() + static_cast<ptrdiff_t>(begin), ids.end(), kRemoved),
            ids.end());
}

}  // namespace rlx
