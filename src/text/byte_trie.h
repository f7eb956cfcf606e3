// A trie over bytes that finds every key that a text starts with. Edges lie in one hash table, so
// that a quarter million keys build in tens of milliseconds and a step costs one probe.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace rlx {

class ByteTrie {
 public:
  static constexpr int32_t kNone = -1;

  ByteTrie();

  // Sizes the table for this many bytes of keys.
  void reserve(size_t key_bytes);
  // `value` must not be negative. A key added again takes the new value. The empty key is ignored.
  void add(std::string_view key, int32_t value);
  bool empty() const { return values_.size() == 1; }

  // Calls visit(length, value) for each key that `text` has at `offset`, shortest first.
  template <typename Visit>
  void for_each_prefix(std::string_view text, size_t offset, Visit&& visit) const {
    uint32_t node = 0;
    for (size_t at = offset; at < text.size(); ++at) {
      node = find_child(node, static_cast<uint8_t>(text[at]));
      if (node == 0) return;
      if (values_[node] != kNone) visit(at + 1 - offset, values_[node]);
    }
  }

  // The longest key that `text` has at `offset`; false if none.
  bool find_longest(std::string_view text, size_t offset, size_t& length, int32_t& value) const {
    bool found = false;
    for_each_prefix(text, offset, [&](size_t key_length, int32_t key_value) {
      length = key_length;
      value = key_value;
      found = true;
    });
    return found;
  }

 private:
  struct Edge {
    uint64_t from;  // node * 256 + byte
    uint32_t to;    // 0: free (no edge leads to the root)
  };

  // 0 if there is none.
  uint32_t find_child(uint32_t node, uint8_t byte) const {
    if (node == 0) return root_children_[byte];
    const uint64_t from = (static_cast<uint64_t>(node) << 8) | byte;
    const size_t mask = edges_.size() - 1;
    for (size_t at = slot_of(from) & mask; edges_[at].to != 0; at = (at + 1) & mask) {
      if (edges_[at].from == from) return edges_[at].to;
    }
    return 0;
  }
  static size_t slot_of(uint64_t from) {
    const uint64_t hash = from * 0x9E3779B97F4A7C15u;
    return static_cast<size_t>(hash ^ (hash >> 32));
  }
  void insert_edge(const Edge& edge);
  void grow(size_t num_slots);

  std::array<uint32_t, 256> root_children_{};
  std::vector<Edge> edges_;  // a power of two, at most half full
  size_t num_edges_ = 0;
  std::vector<int32_t> values_;  // per node; node 0 is the root
};

}  // namespace rlx
