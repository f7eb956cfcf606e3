#include "passes/match.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace rlx {

Matcher::Matcher(const Graph& graph)
    : graph_(graph),
      effects_(graph),
      uses_(graph.count_uses()),
      is_output_(graph.values().size(), false),
      users_(graph.list_users()) {
  for (const GraphOutput& output : graph.outputs()) is_output_[output.value.index] = true;
}

std::optional<double> Matcher::find_splat(ValueId value) const {
  while (graph_.producer(value).op.kind().meaning == Meaning::kLayout) {
    value = graph_.producer(value).inputs[0];
  }
  const Constant* constant = graph_.producer(value).op.as<Constant>();
  const TensorType& type = graph_.type(value);
  if (constant == nullptr || is_packed(type.dtype) || is_complex(type.dtype)) return std::nullopt;
  const std::vector<std::byte>& bytes = constant->data->bytes;
  const size_t width = bytes_per_block(type.dtype);
  if (bytes.size() < width) return std::nullopt;
  for (size_t i = width; i < bytes.size(); i += width) {
    if (std::memcmp(bytes.data(), bytes.data() + i, width) != 0) return std::nullopt;
  }
  return reference_from_bytes(type.dtype, {}, {bytes.data(), width}).at(0);
}

bool Matcher::is_splat(ValueId value, double expected) const {
  const std::optional<double> splat = find_splat(value);
  return splat.has_value() && *splat == expected;
}

bool Matcher::is_closed(const std::set<int32_t>& nodes, int32_t root) const {
  return std::all_of(nodes.begin(), nodes.end(), [&](int32_t node) {
    if (node == root) return true;
    return std::ranges::all_of(graph_.node(node).outputs, [&](ValueId output) {
      return !is_output(output) &&
             std::ranges::all_of(users(output), [&](int32_t user) { return nodes.contains(user); });
    });
  });
}

bool Matcher::can_replace(const std::set<int32_t>& nodes, int32_t root,
                          std::span<const ValueId> leaves) const {
  const bool is_apart =
      std::ranges::none_of(leaves, [&](ValueId leaf) { return nodes.contains(node_index(leaf)); });
  return is_apart && is_closed(nodes, root) && can_read_later(leaves);
}

bool Matcher::can_read_later(std::span<const ValueId> values) const {
  return std::ranges::all_of(values, [&](ValueId value) {
    return !effects_.is_written_between(value, node_index(value),
                                        std::numeric_limits<int32_t>::max());
  });
}

std::optional<std::vector<TensorType>> try_infer(const Op& op, std::span<const TensorType> inputs,
                                                 const SymbolTable& symbols) {
  try {
    return op.infer(inputs, symbols);
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace rlx
