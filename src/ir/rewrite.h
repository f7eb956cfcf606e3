// How passes change a graph: they walk it in order and write a new one. A Rewriter keeps the map
// from old values to new ones; a pass decides per node to copy it or to put something else in its
// place. Nodes that nothing uses any more are left for the dead-code pass.
#pragma once

#include <functional>
#include <vector>

#include "ir/graph.h"

namespace rlx {

class Rewriter {
 public:
  // `old_graph` must outlive the rewriter.
  explicit Rewriter(const Graph& old_graph);

  const Graph& old_graph() const { return old_; }
  Graph& graph() { return new_; }
  Builder& builder() { return builder_; }

  // The new value that stands for an old one; it must have been mapped.
  ValueId map(ValueId old_value) const;
  std::vector<ValueId> map_all(std::span<const ValueId> old_values) const;
  // From now on `new_value` stands for `old_value`; it takes over the name when it has none.
  void replace(ValueId old_value, ValueId new_value);
  // Copies the node with mapped inputs, types inferred anew, and maps its outputs.
  void copy(const Node& node);

  // Copies the outputs and returns the finished graph.
  Graph finish();

 private:
  // Whether inputs of the new graph have the types that the node's own have in the old one.
  bool keeps_types(const Node& node, std::span<const ValueId> new_inputs) const;

  const Graph& old_;
  Graph new_;
  Builder builder_;
  std::vector<ValueId> map_;
};

// Writes a new graph, calling `rewrite(rewriter, node)` for each node in order. When it returns
// false the node is copied; when true, it has mapped the node's outputs itself. The builder's
// source is the node's.
Graph rewrite_graph(const Graph& graph, const std::function<bool(Rewriter&, const Node&)>& rewrite);

}  // namespace rlx
