// What a pass is: one free function, graph in and graph out, in a file named after it. A pass knows
// nothing of backends; what it may ask about the target stands in PassContext.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace rlx {

// What a pass may know of the target.
struct PassContext {
  // True when the target has a kernel for this op on these input types. A fusion asks before it
  // fuses. An empty function is a target without kernels of its own.
  std::function<bool(const Op& op, std::span<const TensorType> inputs, const SymbolTable& symbols)>
      claims;
  // The largest constant that fold_constants makes, in bytes.
  int64_t max_folded_bytes = 1 << 20;
};

// Throws rlx::Error only for what the graph's maker can cause; never returns a graph that breaks
// the verifier's rules. The new graph has the same outputs, by name and by meaning.
using PassFunction = Graph (*)(const Graph& graph, const PassContext& context);

struct Pass {
  std::string_view name;
  PassFunction run;
};

// The types of some values.
inline std::vector<TensorType> list_types(const Graph& graph, std::span<const ValueId> values) {
  std::vector<TensorType> types;
  types.reserve(values.size());
  for (ValueId value : values) types.push_back(graph.type(value));
  return types;
}

// Whether the target has a kernel for the op on these values of the graph.
inline bool is_claimed(const PassContext& context, const Op& op, const Graph& graph,
                       std::span<const ValueId> inputs) {
  return context.claims && context.claims(op, list_types(graph, inputs), graph.symbols());
}

}  // namespace rlx
