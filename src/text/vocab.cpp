#include "text/vocab.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include "base/error.h"

namespace rlx {
namespace {

constexpr size_t kMaxTextBytes = (size_t{1} << 30) - 1;  // what an entry's length can hold

}  // namespace

uint64_t hash_bytes(std::string_view bytes) {
  // Multiply and fold, eight bytes a step. The constants are odd with well-mixed bits: the fraction
  // of the golden ratio and a factor of SplitMix64 (Steele, Lea, Flood 2014).
  constexpr uint64_t kMultiplier = 0x9E3779B97F4A7C15u;
  uint64_t hash = bytes.size() * 0xBF58476D1CE4E5B9u;
  const char* data = bytes.data();
  size_t left = bytes.size();
  const auto mix = [&hash](uint64_t word) {
    hash = (hash ^ word) * kMultiplier;
    hash ^= hash >> 29;
  };
  for (; left >= 8; left -= 8, data += 8) {
    uint64_t word;
    std::memcpy(&word, data, 8);
    if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
    mix(word);
  }
  uint64_t tail = 0;
  for (size_t i = 0; i < left; ++i) {
    tail |= static_cast<uint64_t>(static_cast<uint8_t>(data[i])) << (8 * i);
  }
  mix(tail);
  hash *= kMultiplier;
  return hash ^ (hash >> 32);
}

void Vocab::reserve(size_t num_entries, size_t text_bytes) {
  entries_.reserve(num_entries);
  texts_.reserve(text_bytes);
  const size_t num_slots = std::bit_ceil(std::max<size_t>(16, num_entries + num_entries / 3 + 1));
  if (num_slots > slots_.size()) rehash(num_slots);
}

void Vocab::rehash(size_t num_slots) {
  std::vector<Slot> old(num_slots);
  old.swap(slots_);
  for (const Slot& slot : old) {
    if (slot.id == kNone) continue;
    size_t at = slot.hash & (num_slots - 1);
    while (slots_[at].id != kNone) at = (at + 1) & (num_slots - 1);
    slots_[at] = slot;
  }
}

void Vocab::extend_to(int32_t size) {
  if (size > static_cast<int32_t>(entries_.size())) entries_.resize(static_cast<size_t>(size));
}

void Vocab::add(int32_t id, std::string_view text, bool in_model) {
  if (id < 0 || id >= kMaxSize) {
    throw_error(ErrorCode::kOutOfRange, "The token '{}' has the id {}, but ids must be in [0, {}).",
                text, id, kMaxSize);
  }
  if (text.size() > kMaxTextBytes - texts_.size()) {
    throw_error(ErrorCode::kCorruptData,
                "The token {} brings the texts of the vocabulary over {} bytes.", id,
                kMaxTextBytes);
  }
  if (4 * (num_used_ + 1) > 3 * slots_.size()) rehash(std::max<size_t>(16, 2 * slots_.size()));

  const uint32_t hash = hash_of(text);
  if (const Slot* slot = find_slot(text, hash)) {
    if (slot->id == id) return;
    throw_error(ErrorCode::kCorruptData, "The token '{}' has two ids, {} and {}.", text, slot->id,
                id);
  }
  extend_to(id + 1);
  Entry& entry = entries_[static_cast<size_t>(id)];
  if (entry.used) {
    throw_error(ErrorCode::kCorruptData, "The id {} belongs to two tokens, '{}' and '{}'.", id,
                this->text(id), text);
  }
  const auto offset = static_cast<uint32_t>(texts_.size());
  const auto length = static_cast<uint32_t>(text.size());
  entry = {offset, length, 1, in_model};
  texts_.append(text);
  const size_t mask = slots_.size() - 1;
  size_t at = hash & mask;
  while (slots_[at].id != kNone) at = (at + 1) & mask;
  slots_[at] = {hash, id, offset, length, in_model};
  ++num_used_;
  max_text_bytes_ = std::max(max_text_bytes_, text.size());
}

const Vocab::Slot* Vocab::find_slot(std::string_view text, uint32_t hash) const {
  if (slots_.empty() || text.size() > max_text_bytes_) return nullptr;
  const size_t mask = slots_.size() - 1;
  for (size_t at = hash & mask; slots_[at].id != kNone; at = (at + 1) & mask) {
    const Slot& slot = slots_[at];
    if (slot.hash == hash && std::string_view(texts_.data() + slot.offset, slot.length) == text) {
      return &slot;
    }
  }
  return nullptr;
}

void Vocab::find_in_model(std::span<const std::string_view> texts, std::span<int32_t> ids) const {
  RLX_CHECK(texts.size() <= kMaxBatch && ids.size() == texts.size());
  if (slots_.empty()) {
    std::fill(ids.begin(), ids.end(), kNone);
    return;
  }
  std::array<uint32_t, kMaxBatch> hashes;
  const size_t mask = slots_.size() - 1;
  for (size_t i = 0; i < texts.size(); ++i) {
    hashes[i] = hash_of(texts[i]);
    __builtin_prefetch(&slots_[hashes[i] & mask]);
  }
  for (size_t i = 0; i < texts.size(); ++i) {
    __builtin_prefetch(texts_.data() + slots_[hashes[i] & mask].offset);
  }
  for (size_t i = 0; i < texts.size(); ++i) {
    const Slot* slot = find_slot(texts[i], hashes[i]);
    ids[i] = slot == nullptr || !slot->in_model ? kNone : slot->id;
  }
}

}  // namespace rlx
