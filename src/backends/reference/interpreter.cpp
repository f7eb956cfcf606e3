#include "backends/reference/interpreter.h"

#include <algorithm>

#include "ops/evaluate.h"
#include "ops/reference_loops.h"

namespace rlx {
namespace {

std::string describe(const Node& node) {
  return node.source.empty() ? fmt::format("op '{}'", node.op.name())
                             : fmt::format("op '{}' of '{}'", node.op.name(), node.source);
}

}  // namespace

// What lives during one run.
struct Interpreter::Run {
  const Tensors& inputs;
  std::span<const int64_t> symbol_values;
  std::vector<ReferenceTensor> values;       // by value index; empty when not there (any more)
  std::vector<int32_t> remaining_uses;       // graph outputs included
  std::vector<ReferenceTensor> loaded = {};  // large weights of the current node

  std::vector<int64_t> evaluate(const Graph& graph, const Shape& shape) const {
    std::vector<int64_t> extents;
    for (const Dim& extent : shape) {
      extents.push_back(extent.evaluate(graph.symbols(), symbol_values));
    }
    return extents;
  }
};

Interpreter::Interpreter(Graph graph, LoadWeight load_weight)
    : graph_(std::move(graph)), load_weight_(std::move(load_weight)) {
  state_of_.resize(graph_.values().size());
  for (const Node& node : graph_.nodes()) {
    if (const State* state = node.op.as<State>()) {
      const TensorType& type = graph_.type(node.outputs[0]);
      std::vector<int64_t> extents;
      with_context(fmt::format("state '{}'", state->name), [&] {
        for (const Dim& extent : type.shape) extents.push_back(extent.constant());
      });
      states_[state->name] = make_reference_tensor(type.dtype, std::move(extents));
      state_of_[node.outputs[0].index] = state->name;
    }
    const int in_place = node.op.kind().in_place_input;
    if (in_place >= 0) {
      check_in_place(node);
      state_of_[node.outputs[0].index] = state_of_[node.inputs[in_place].index];
    }
  }
}

void Interpreter::check_in_place(const Node& node) const {
  ValueId input = node.inputs[node.op.kind().in_place_input];
  bool is_view = false;
  while (graph_.producer(input).op.kind().meaning == Meaning::kLayout) {
    input = graph_.producer(input).inputs[0];
    is_view = true;
  }
  if (is_view && !state_of_[input.index].empty()) {
    throw_error(ErrorCode::kUnsupported,
                "The {} writes the state '{}' through a view; the state itself is expected.",
                describe(node), state_of_[input.index]);
  }
}

void Interpreter::reset_states() {
  for (auto& [name, tensor] : states_) {
    tensor = make_reference_tensor(tensor.dtype, tensor.shape);
  }
}

void Interpreter::check_run(const Tensors& inputs, std::span<const int64_t> symbol_values) const {
  const std::span<const Symbol> symbols = graph_.symbols().symbols();
  if (symbol_values.size() != symbols.size()) {
    throw_error(ErrorCode::kInvalidArgument,
                "{} symbol values are given, but the graph '{}' has {} symbols.",
                symbol_values.size(), graph_.name(), symbols.size());
  }
  for (size_t i = 0; i < symbols.size(); ++i) {
    if (symbol_values[i] < symbols[i].lower || symbol_values[i] > symbols[i].upper) {
      throw_error(ErrorCode::kOutOfRange, "{} = {} is given, but {} to {} is declared.",
                  symbols[i].name, symbol_values[i], symbols[i].lower, symbols[i].upper);
    }
  }
  size_t found = 0;
  for (const Node& node : graph_.nodes()) {
    const Input* input = node.op.as<Input>();
    if (input == nullptr) continue;
    if (!inputs.contains(input->name)) {
      throw_error(ErrorCode::kNotFound, "The input '{}' of the graph '{}' is not given.",
                  input->name, graph_.name());
    }
    ++found;
  }
  if (found != inputs.size()) {
    throw_error(ErrorCode::kInvalidArgument, "{} inputs are given, but the graph '{}' has {}.",
                inputs.size(), graph_.name(), found);
  }
}

const ReferenceTensor* Interpreter::find_value(Run& run, ValueId id) {
  const Node& producer = graph_.producer(id);
  const TensorType& type = graph_.type(id);
  if (const Input* input = producer.op.as<Input>()) return &run.inputs.at(input->name);
  if (const State* state = producer.op.as<State>()) return &states_.at(state->name);
  if (const Weight* weight = producer.op.as<Weight>()) {
    const auto kept = kept_weights_.find(weight->name);
    if (kept != kept_weights_.end()) return &kept->second;
    if (!load_weight_) {
      throw_error(ErrorCode::kNotFound, "The graph '{}' has the weight '{}', but no weights.",
                  graph_.name(), weight->name);
    }
    ReferenceTensor loaded = load_weight_(weight->name, type);
    if (loaded.num_elements() <= kKeptWeightElements) {
      return &(kept_weights_[weight->name] = std::move(loaded));
    }
    run.loaded.push_back(std::move(loaded));
    return &run.loaded.back();
  }
  if (const Constant* constant = producer.op.as<Constant>()) {
    ReferenceTensor& value = run.values[id.index];
    value =
        reference_from_bytes(type.dtype, run.evaluate(graph_, type.shape), constant->data->bytes);
    return &value;
  }
  return &run.values[id.index];
}

void Interpreter::write_state(const std::string& name, const ReferenceTensor& written) {
  ReferenceTensor& state = states_.at(name);
  const std::vector<int64_t> strides = contiguous_strides(state.shape);
  for_each_index(written.shape, [&](int64_t n, std::span<const int64_t> index) {
    int64_t place = 0;
    for (size_t d = 0; d < index.size(); ++d) place += index[d] * strides[d];
    copy_element(written, n, state, place);
  });
}

void Interpreter::run_node(Run& run, const Node& node) {
  run.loaded.clear();
  run.loaded.reserve(node.inputs.size());  // pointers into it are handed out
  std::vector<const ReferenceTensor*> inputs;
  std::vector<TensorType> types;
  for (ValueId id : node.inputs) {
    inputs.push_back(find_value(run, id));
    types.push_back(graph_.type(id));
  }
  std::vector<ReferenceTensor> outputs =
      evaluate(node.op, inputs, types, graph_.symbols(), run.symbol_values);
  if (node.op.kind().in_place_input >= 0) {
    const std::string& state = state_of_[node.outputs[0].index];
    if (!state.empty()) write_state(state, outputs[0]);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    const ValueId id = node.outputs[i];
    if (run.remaining_uses[id.index] > 0) run.values[id.index] = std::move(outputs[i]);
  }
  for (ValueId id : node.inputs) {
    if (--run.remaining_uses[id.index] == 0) run.values[id.index] = ReferenceTensor{};
  }
}

Interpreter::Tensors Interpreter::run(const Tensors& inputs,
                                      std::span<const int64_t> symbol_values) {
  check_run(inputs, symbol_values);
  Run run{inputs, symbol_values, std::vector<ReferenceTensor>(graph_.values().size()),
          graph_.count_uses()};
  for (const Node& node : graph_.nodes()) {
    if (node.op.kind().meaning == Meaning::kSource) continue;
    with_context(describe(node), [&] { run_node(run, node); });
  }
  run.loaded.clear();
  run.loaded.reserve(graph_.outputs().size());
  Tensors outputs;
  for (const GraphOutput& output : graph_.outputs()) {
    outputs[output.name] = *find_value(run, output.value);
  }
  return outputs;
}

}  // namespace rlx
