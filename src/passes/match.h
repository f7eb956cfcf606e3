// What the rewriting passes ask about the graph that they match against: who made a value, who uses
// it, whether it is one number throughout, and whether it may be read at a later place.
#pragma once

#include <optional>
#include <set>
#include <span>
#include <vector>

#include "ir/rewrite.h"
#include "passes/memory_effects.h"
#include "passes/pass.h"

namespace rlx {

class Matcher {
 public:
  // The graph must outlive the matcher.
  explicit Matcher(const Graph& graph);

  const Graph& graph() const { return graph_; }
  const MemoryEffects& effects() const { return effects_; }
  const TensorType& type(ValueId value) const { return graph_.type(value); }
  int32_t node_index(ValueId value) const { return graph_.value(value).node; }

  // The node that makes the value when its op is a T, else null.
  template <typename T>
  const Node* find(ValueId value) const {
    const Node& node = graph_.producer(value);
    return node.op.is<T>() ? &node : nullptr;
  }

  // Uses by nodes (once per operand) and by graph outputs.
  int32_t count_uses(ValueId value) const { return uses_[value.index]; }
  bool is_output(ValueId value) const { return is_output_[value.index]; }
  std::span<const int32_t> users(ValueId value) const { return users_[value.index]; }

  // The number that every element of the value is, when a constant (seen through views) makes it.
  std::optional<double> find_splat(ValueId value) const;
  bool is_splat(ValueId value, double expected) const;

  // Whether one node that reads `leaves` may take the place of `nodes`, of which `root` is the last
  // and gives the result: nothing outside of them uses what they make, apart from what `root`
  // makes, no leaf is made by them, and the leaves may be read at the root's place.
  bool can_replace(const std::set<int32_t>& nodes, int32_t root,
                   std::span<const ValueId> leaves) const;
  // True when a read of each value may be moved to any later place of the graph.
  bool can_read_later(std::span<const ValueId> values) const;

 private:
  bool is_closed(const std::set<int32_t>& nodes, int32_t root) const;

  const Graph& graph_;
  MemoryEffects effects_;
  std::vector<int32_t> uses_;
  std::vector<bool> is_output_;
  std::vector<std::vector<int32_t>> users_;
};

// The types that the op gives on these values, or nullopt where it refuses them.
std::optional<std::vector<TensorType>> try_infer(const Op& op, std::span<const TensorType> inputs,
                                                 const SymbolTable& symbols);

// Axis `axis` of `rank` dimensions, counted from the front.
inline int64_t normalize_axis(int64_t axis, int rank) { return axis < 0 ? axis + rank : axis; }

}  // namespace rlx
