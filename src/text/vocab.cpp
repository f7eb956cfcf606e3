#include "text/vocab.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "base/error.h"

namespace rlx {

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
  const size_t num_slots = std::bit_ceil(std::max<size_t>(16, 2 * num_entries));
  if (num_slots > slots_.size()) rehash(num_slots);
}

void Vocab::rehash(size_t num_slots) {
  slots_.assign(num_slots, Slot{});
  for (size_t id = 0; id < entries_.size(); ++id) {
    if (!entries_[id].used) continue;
    const auto hash = static_cast<uint32_t>(hash_bytes(text(static_cast<int32_t>(id))));
    size_t at = hash & (num_slots - 1);
    while (slots_[at].id != kNone) at = (at + 1) & (num_slots - 1);
    slots_[at] = {hash, static_cast<int32_t>(id)};
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
  if (text.size() > std::numeric_limits<uint32_t>::max()) {
    throw_error(ErrorCode::kCorruptData, "The token {} has {} bytes of text, which is too long.",
                id, text.size());
  }
  if (2 * (num_used_ + 1) > slots_.size()) rehash(std::max<size_t>(16, 2 * slots_.size()));

  const auto hash = static_cast<uint32_t>(hash_bytes(text));
  const size_t mask = slots_.size() - 1;
  size_t at = hash & mask;
  for (; slots_[at].id != kNone; at = (at + 1) & mask) {
    if (slots_[at].hash != hash || this->text(slots_[at].id) != text) continue;
    if (slots_[at].id == id) return;
    throw_error(ErrorCode::kCorruptData, "The token '{}' has two ids, {} and {}.", text,
                slots_[at].id, id);
  }
  extend_to(id + 1);
  Entry& entry = entries_[static_cast<size_t>(id)];
  if (entry.used) {
    throw_error(ErrorCode::kCorruptData, "The id {} belongs to two tokens, '{}' and '{}'.", id,
                this->text(id), text);
  }
  entry = {texts_.size(), static_cast<uint32_t>(text.size()), true, in_model};
  texts_.append(text);
  slots_[at] = {hash, id};
  ++num_used_;
  max_text_bytes_ = std::max(max_text_bytes_, text.size());
}

int32_t Vocab::find(std::string_view text) const {
  if (slots_.empty() || text.size() > max_text_bytes_) return kNone;
  const auto hash = static_cast<uint32_t>(hash_bytes(text));
  const size_t mask = slots_.size() - 1;
  for (size_t at = hash & mask; slots_[at].id != kNone; at = (at + 1) & mask) {
    if (slots_[at].hash == hash && this->text(slots_[at].id) == text) return slots_[at].id;
  }
  return kNone;
}

}  // namespace rlx
