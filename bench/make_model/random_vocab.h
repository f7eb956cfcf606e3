// A vocabulary of byte-level BPE that nobody trained: tokens grow by merging earlier ones, as in a
// real one, so that loaders have as many strings, merges and hash entries to deal with, and any
// text can be tokenized.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "random_blocks.h"

namespace rlx::bench {

struct VocabShape {
  int32_t size = 0;         // of the embedding: all ids
  int32_t num_words = 0;    // the ids from 0 on that text is made of, the 256 bytes among them
  int32_t num_control = 0;  // the ids after those; what is left is unused
  int32_t num_merges = 0;   // at least num_words - 256; more where a word has several splits
};

struct RandomVocab {
  std::vector<std::string> tokens;
  std::vector<int32_t> types;  // tokenizer.ggml.token_type
  std::vector<std::string> merges;
};

// The merges may fall short of what is asked for where the words have too few splits.
RandomVocab make_random_vocab(const VocabShape& shape, RandomBits& random);

}  // namespace rlx::bench
