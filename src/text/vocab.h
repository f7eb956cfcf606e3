// The two-way table between token texts and ids. All texts lie in one string and the hash table has
// 16 bytes per slot, so that 150,000 tokens load in a few milliseconds.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rlx {

// A 64-bit hash of bytes; the same on every platform.
uint64_t hash_bytes(std::string_view bytes);

class Vocab {
 public:
  // Ids are below this. The largest published vocabularies have 0.3 million tokens; the bound keeps
  // one absurd id in a file from claiming gigabytes.
  static constexpr int32_t kMaxSize = 1 << 22;
  static constexpr int32_t kNone = -1;

  Vocab() = default;
  Vocab(const Vocab&) = delete;
  Vocab& operator=(const Vocab&) = delete;

  // Sizes the tables once for this many entries and bytes of text.
  void reserve(size_t num_entries, size_t text_bytes);

  // Adds an entry; repeating an entry changes nothing. `in_model`: the token model may choose it;
  // false for tokens that are only recognised in the text as a whole. Throws kCorruptData if the
  // text has another id or the id another text, kOutOfRange if the id is not in [0, kMaxSize).
  void add(int32_t id, std::string_view text, bool in_model = true);
  // Brings the place of `text` in the table near, for an `add` that comes about 16 entries later.
  void prefetch(std::string_view text) const {
    if (!slots_.empty()) __builtin_prefetch(&slots_[hash_of(text) & (slots_.size() - 1)], 1);
  }
  // Makes ids below `size` valid (and unused, unless added).
  void extend_to(int32_t size);

  // The id, or kNone.
  int32_t find(std::string_view text) const {
    const Slot* slot = find_slot(text, hash_of(text));
    return slot == nullptr ? kNone : slot->id;
  }
  // The same, among the entries that the token model may choose.
  int32_t find_in_model(std::string_view text) const {
    const Slot* slot = find_slot(text, hash_of(text));
    return slot == nullptr || !slot->in_model ? kNone : slot->id;
  }
  // The same for many texts, at most kMaxBatch: their waits for memory overlap, which makes loading
  // 150,000 merges three times as fast.
  static constexpr size_t kMaxBatch = 96;
  void find_in_model(std::span<const std::string_view> texts, std::span<int32_t> ids) const;
  // Empty for an unused id. `id` must be in [0, size).
  std::string_view text(int32_t id) const {
    const Entry& entry = entries_[static_cast<size_t>(id)];
    return std::string_view(texts_).substr(entry.offset, entry.length);
  }
  // Whether `id`, of any value, is the entry of exactly this text and the token model may choose
  // it. Cheaper than a lookup where the id can be guessed.
  bool is_model_text(int32_t id, std::string_view text) const {
    if (id < 0 || id >= size()) return false;
    const Entry& entry = entries_[static_cast<size_t>(id)];
    return entry.used && entry.in_model && this->text(id) == text;
  }
  bool is_used(int32_t id) const { return entries_[static_cast<size_t>(id)].used; }
  // One more than the largest id.
  int32_t size() const { return static_cast<int32_t>(entries_.size()); }
  // Bytes of the longest text.
  size_t max_text_bytes() const { return max_text_bytes_; }

 private:
  struct Entry {
    uint32_t offset = 0;
    uint32_t length : 30 = 0;
    uint32_t used : 1 = 0;
    uint32_t in_model : 1 = 0;
  };
  // What a lookup needs, so that it touches the slot and the text and nothing else.
  struct Slot {
    uint32_t hash = 0;
    int32_t id = kNone;
    uint32_t offset = 0;
    uint32_t length : 31 = 0;
    uint32_t in_model : 1 = 0;
  };

  static uint32_t hash_of(std::string_view text) { return static_cast<uint32_t>(hash_bytes(text)); }
  const Slot* find_slot(std::string_view text, uint32_t hash) const;
  void rehash(size_t num_slots);

  std::string texts_;
  std::vector<Entry> entries_;
  std::vector<Slot> slots_;  // a power of two, at most 3/4 full; linear probing
  size_t num_used_ = 0;
  size_t max_text_bytes_ = 0;
};

}  // namespace rlx
