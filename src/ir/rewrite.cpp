#include "ir/rewrite.h"

namespace rlx {

Rewriter::Rewriter(const Graph& old_graph)
    : old_(old_graph), new_(old_graph.name()), builder_(new_), map_(old_graph.values().size()) {
  for (const Symbol& symbol : old_.symbols().symbols()) new_.declare_symbol(symbol);
}

ValueId Rewriter::map(ValueId old_value) const {
  const ValueId mapped = map_[old_value.index];
  RLX_CHECK(mapped.is_valid(), "value {} is used before it is mapped", old_value.index);
  return mapped;
}

std::vector<ValueId> Rewriter::map_all(std::span<const ValueId> old_values) const {
  std::vector<ValueId> mapped;
  mapped.reserve(old_values.size());
  for (ValueId value : old_values) mapped.push_back(map(value));
  return mapped;
}

void Rewriter::replace(ValueId old_value, ValueId new_value) {
  map_[old_value.index] = new_value;
  const std::string& name = old_.value(old_value).name;
  if (!name.empty() && new_.value(new_value).name.empty()) new_.name_value(new_value, name);
}

bool Rewriter::keeps_types(const Node& node, std::span<const ValueId> new_inputs) const {
  for (size_t i = 0; i < new_inputs.size(); ++i) {
    if (new_.type(new_inputs[i]) != old_.type(node.inputs[i])) return false;
  }
  return true;
}

void Rewriter::copy(const Node& node) {
  builder_.set_source(node.source);
  std::vector<ValueId> outputs;
  if (node.op.kind().meaning == Meaning::kSource) {
    const int32_t index = new_.append(node.op, {}, {old_.type(node.outputs[0])}, node.source);
    outputs = new_.node(index).outputs;
  } else if (std::vector<ValueId> inputs = map_all(node.inputs); keeps_types(node, inputs)) {
    // Inferring again gives the types of the old graph, and takes a third of a pipeline's time.
    std::vector<TensorType> types;
    types.reserve(node.outputs.size());
    for (const ValueId output : node.outputs) types.push_back(old_.type(output));
    const int32_t index = new_.append(node.op, std::move(inputs), std::move(types), node.source);
    outputs = new_.node(index).outputs;
  } else {
    outputs = builder_.add_many(node.op, std::move(inputs));
  }
  for (size_t i = 0; i < outputs.size(); ++i) replace(node.outputs[i], outputs[i]);
}

Graph Rewriter::finish() {
  for (const GraphOutput& output : old_.outputs()) new_.add_output(output.name, map(output.value));
  return std::move(new_);
}

Graph rewrite_graph(const Graph& graph,
                    const std::function<bool(Rewriter&, const Node&)>& rewrite) {
  Rewriter rewriter(graph);
  for (const Node& node : graph.nodes()) {
    rewriter.builder().set_source(node.source);
    if (!rewrite(rewriter, node)) rewriter.copy(node);
  }
  return rewriter.finish();
}

}  // namespace rlx
