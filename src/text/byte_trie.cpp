#include "text/byte_trie.h"

#include <algorithm>
#include <bit>

namespace rlx {

ByteTrie::ByteTrie() : edges_(16, Edge{0, 0}), values_(1, kNone) {}

void ByteTrie::reserve(size_t key_bytes) {
  const size_t num_slots = std::bit_ceil(std::max<size_t>(16, 2 * key_bytes));
  if (num_slots > edges_.size()) grow(num_slots);
  values_.reserve(key_bytes + 1);
}

void ByteTrie::grow(size_t num_slots) {
  std::vector<Edge> old(num_slots, Edge{0, 0});
  old.swap(edges_);
  for (const Edge& edge : old) {
    if (edge.to != 0) insert_edge(edge);
  }
}

void ByteTrie::insert_edge(const Edge& edge) {
  const size_t mask = edges_.size() - 1;
  size_t at = slot_of(edge.from) & mask;
  while (edges_[at].to != 0) at = (at + 1) & mask;
  edges_[at] = edge;
}

void ByteTrie::add(std::string_view key, int32_t value) {
  if (key.empty()) return;
  uint32_t node = 0;
  for (const char c : key) {
    const auto byte = static_cast<uint8_t>(c);
    uint32_t child = find_child(node, byte);
    if (child == 0) {
      child = static_cast<uint32_t>(values_.size());
      values_.push_back(kNone);
      if (node == 0) {
        root_children_[byte] = child;
      } else {
        if (2 * (num_edges_ + 1) > edges_.size()) grow(2 * edges_.size());
        insert_edge({(static_cast<uint64_t>(node) << 8) | byte, child});
        ++num_edges_;
      }
    }
    node = child;
  }
  values_[node] = value;
}

}  // namespace rlx
