#include "random_vocab.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "text/byte_level.h"

namespace rlx::bench {
namespace {

enum TokenType : int32_t { kNormal = 1, kControl = 3, kUnused = 5 };

constexpr size_t kMostWordBytes = 12;

// Letters by about their frequency in English, and the space that begins a word.
constexpr std::string_view kLetters =
    "      eeeeeeeeeeeetttttttttaaaaaaaaooooooooiiiiiiinnnnnnnsssssshhhhhhrrrrrrddddllllcccuuummm"
    "wwffggyyppbbvvkjxqz";

std::string level(char letter) {
  return std::string(byte_level_character(static_cast<uint8_t>(letter)));
}

class Maker {
 public:
  Maker(const VocabShape& shape, RandomBits& random) : shape_(shape), random_(random) {}

  RandomVocab run() {
    vocab_.tokens.reserve(static_cast<size_t>(shape_.size));  // `known_` looks into the tokens
    for (int byte = 0; byte < 256; ++byte) {
      add_word(level(static_cast<char>(byte)));
    }
    while (num_tokens() < shape_.num_words) grow();
    add_late_splits();
    for (int i = 0; i < shape_.num_control; ++i) {
      add(fmt::format("<|control_{}|>", i), kControl);
    }
    while (num_tokens() < shape_.size) add(fmt::format("[PAD{}]", num_tokens()), kUnused);
    return std::move(vocab_);
  }

 private:
  int32_t num_tokens() const { return static_cast<int32_t>(vocab_.tokens.size()); }

  void add(std::string text, int32_t type) {
    vocab_.tokens.push_back(std::move(text));
    vocab_.types.push_back(type);
  }

  void add_word(std::string text) {
    add(std::move(text), kNormal);
    known_.emplace(vocab_.tokens.back(), num_tokens() - 1);
  }

  // A letter, or an earlier word; early ones are short and more likely.
  std::string pick() {
    const auto num_grown = static_cast<double>(num_tokens() - 256);
    if (num_grown < 1 || random_.uniform() < 0.6) {
      return level(kLetters[random_.below(kLetters.size())]);
    }
    const double u = random_.uniform();
    return vocab_.tokens[256 + static_cast<size_t>(num_grown * u * u)];
  }

  void grow() {
    const std::string left = pick(), right = pick();
    const bool is_inside = right.starts_with(level(' '));  // a space only begins a word
    std::string word = left + right;
    if (is_inside || word.size() > kMostWordBytes || known_.contains(word)) return;
    vocab_.merges.push_back(left + " " + right);
    add_other_splits(word, left.size());
    add_word(std::move(word));
  }

  // Merges by which a word can come about besides its own, while those that the remaining words
  // need leave room.
  void add_other_splits(const std::string& word, size_t own_split) {
    for (size_t at = 1; at < word.size(); ++at) {
      const auto needed = static_cast<size_t>(shape_.num_words - num_tokens() - 1);
      if (vocab_.merges.size() + needed >= static_cast<size_t>(shape_.num_merges)) return;
      const std::string_view text = word;
      if (at != own_split && known_.contains(text.substr(0, at)) &&
          known_.contains(text.substr(at))) {
        vocab_.merges.push_back(fmt::format("{} {}", text.substr(0, at), text.substr(at)));
      }
    }
  }

  // Merges of words that came into the vocabulary before one of their halves did.
  void add_late_splits() {
    for (int32_t id = 256; id < shape_.num_words; ++id) {
      const std::string_view word = vocab_.tokens[static_cast<size_t>(id)];
      for (size_t at = 1; at < word.size(); ++at) {
        if (static_cast<int32_t>(vocab_.merges.size()) >= shape_.num_merges) return;
        const auto left = known_.find(word.substr(0, at));
        const auto right = known_.find(word.substr(at));
        if (left == known_.end() || right == known_.end()) continue;
        if (std::max(left->second, right->second) < id) continue;  // was there at the time
        vocab_.merges.push_back(fmt::format("{} {}", left->first, right->first));
      }
    }
  }

  const VocabShape& shape_;
  RandomBits& random_;
  RandomVocab vocab_;
  std::unordered_map<std::string_view, int32_t> known_;  // the words' ids
};

}  // namespace

RandomVocab make_random_vocab(const VocabShape& shape, RandomBits& random) {
  return Maker(shape, random).run();
}

}  // namespace rlx::bench
