// Byte pair encoding: a piece starts as its characters, and the adjacent pair with the lowest merge
// rank (leftmost first) is joined until no pair has a rank. Cost is n log n in the piece's length.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/token_model.h"
#include "text/vocab.h"

namespace rlx {

struct BpeOptions {
  std::string unk_token;                  // empty: characters without a token are dropped
  std::string continuing_subword_prefix;  // before every character but a piece's first
  std::string end_of_word_suffix;         // behind a piece's last character
  bool fuse_unk = false;                  // a run of unknown characters is one token
  bool byte_fallback = false;  // an unknown character becomes the tokens <0xNN> of its bytes
  bool ignore_merges = false;  // a piece that is itself a token is not split
};

class Bpe final : public TokenModel {
 public:
  struct Merge {
    std::string_view left, right;
  };

  // Merges are in rank order; the views need to live only during the call. `vocab` must outlive the
  // model. Throws kCorruptData if a merge or the unknown token names a token that is not there.
  Bpe(const Vocab& vocab, std::span<const Merge> merges, BpeOptions options);

  void encode(std::string_view piece, std::vector<int32_t>& ids) const override;

 private:
  struct PairSlot {
    uint64_t pair;
    int32_t rank;
    int32_t merged_id;
  };
  struct Ranked {
    int32_t rank;  // kNoRank if the pair does not merge
    int32_t merged_id;
  };

  void add_merges(std::span<const Merge> merges);
  void insert_pair(uint64_t pair, int32_t rank, int32_t merged_id);
  std::string_view without_subword_prefix(std::string_view token) const;
  Ranked find_merge(int32_t left, int32_t right) const;
  void append_characters(std::string_view piece, std::vector<int32_t>& symbols) const;
  void append_decorated_characters(std::string_view piece, std::vector<int32_t>& symbols) const;
  void append_unknown(std::string_view character, bool& after_unk,
                      std::vector<int32_t>& symbols) const;
  void merge_short(std::vector<int32_t>& ids, size_t begin) const;
  void merge_long(std::vector<int32_t>& ids, size_t begin) const;

  const Vocab& vocab_;
  BpeOptions options_;
  int32_t unk_id_ = Vocab::kNone;
  std::array<int32_t, 256> byte_ids_;         // of <0xNN>, or kNone
  std::array<int32_t, 0x250> character_ids_;  // of the first code points, or kNone
  std::vector<PairSlot> pairs_;               // a power of two, at most half full
};

}  // namespace rlx
