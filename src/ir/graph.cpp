#include "ir/graph.h"

#include <algorithm>
#include <cctype>
#include <cstring>

#include "ir/op_kind.h"

namespace rlx {

template const OpKind& op_kind<Input>();
template const OpKind& op_kind<Weight>();
template const OpKind& op_kind<State>();
template const OpKind& op_kind<Constant>();

namespace {

[[noreturn]] std::vector<TensorType> fail_source(const InferContext& context) {
  context.fail("A source's type is declared, not inferred.");
}

}  // namespace

std::vector<TensorType> Input::infer(const InferContext& context) const { fail_source(context); }
std::vector<TensorType> Weight::infer(const InferContext& context) const { fail_source(context); }
std::vector<TensorType> State::infer(const InferContext& context) const { fail_source(context); }
std::vector<TensorType> Constant::infer(const InferContext& context) const { fail_source(context); }

bool Constant::operator==(const Constant& other) const {
  if (data == other.data) return true;
  return data != nullptr && other.data != nullptr && data->bytes == other.data->bytes;
}

int32_t Graph::append(Op op, std::vector<ValueId> inputs, std::vector<TensorType> types,
                      std::string source) {
  for (ValueId input : inputs) {
    RLX_CHECK(input.index >= 0 && input.index < static_cast<int32_t>(values_.size()));
  }
  const int32_t index = static_cast<int32_t>(nodes_.size());
  Node node{std::move(op), std::move(inputs), {}, std::move(source)};
  for (TensorType& type : types) {
    const int32_t output = static_cast<int32_t>(node.outputs.size());
    node.outputs.push_back({static_cast<int32_t>(values_.size())});
    values_.push_back({std::move(type), "", index, output});
  }
  nodes_.push_back(std::move(node));
  return index;
}

void Graph::add_output(std::string name, ValueId value) {
  RLX_CHECK(value.index >= 0 && value.index < static_cast<int32_t>(values_.size()));
  for (const GraphOutput& output : outputs_) {
    if (output.name == name) {
      throw_error(ErrorCode::kInvalidArgument, "The graph '{}' already has an output '{}'.", name_,
                  name);
    }
  }
  outputs_.push_back({std::move(name), value});
}

void Graph::name_value(ValueId value, std::string_view name) {
  std::string clean(name);
  for (char& c : clean) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '.') c = '_';
  }
  const bool all_digits = std::all_of(clean.begin(), clean.end(), [](char c) {
    return std::isdigit(static_cast<unsigned char>(c));
  });
  if (all_digits) return;  // includes the empty name
  std::string unique = clean;
  for (int suffix = 1; names_.contains(unique); ++suffix) {
    unique = fmt::format("{}_{}", clean, suffix);
  }
  std::string& stored = values_[value.index].name;
  if (!stored.empty()) names_.erase(stored);
  stored = unique;
  names_.emplace(std::move(unique), value.index);
}

ValueId Graph::find_value(std::string_view name) const {
  const auto found = names_.find(std::string(name));
  return found == names_.end() ? ValueId{} : ValueId{found->second};
}

std::vector<std::vector<int32_t>> Graph::list_users() const {
  std::vector<std::vector<int32_t>> users(values_.size());
  for (size_t i = 0; i < nodes_.size(); ++i) {
    for (ValueId input : nodes_[i].inputs) users[input.index].push_back(static_cast<int32_t>(i));
  }
  return users;
}

std::vector<int32_t> Graph::count_uses() const {
  std::vector<int32_t> uses(values_.size(), 0);
  for (const Node& node : nodes_) {
    for (ValueId input : node.inputs) ++uses[input.index];
  }
  for (const GraphOutput& output : outputs_) ++uses[output.value.index];
  return uses;
}

namespace {

ValueId append_source(Graph& graph, Op op, TensorType type, std::string_view name,
                      const std::string& source) {
  const int32_t node = graph.append(std::move(op), {}, {std::move(type)}, source);
  const ValueId value = graph.node(node).outputs[0];
  graph.name_value(value, name);
  return value;
}

}  // namespace

ValueId Builder::add_input(std::string name, TensorType type) {
  return append_source(*graph_, Input{name}, std::move(type), name, source_);
}

ValueId Builder::add_weight(std::string name, TensorType type) {
  return append_source(*graph_, Weight{name}, std::move(type), name, source_);
}

ValueId Builder::add_state(std::string name, TensorType type) {
  return append_source(*graph_, State{name}, std::move(type), name, source_);
}

ValueId Builder::add_constant(TensorType type, std::vector<std::byte> bytes) {
  auto data = std::make_shared<ConstantData>(ConstantData{std::move(bytes)});
  return append_source(*graph_, Constant{std::move(data)}, std::move(type), "", source_);
}

ValueId Builder::add_scalar(DType dtype, double value) {
  ReferenceTensor tensor = make_reference_tensor(dtype, {});
  tensor.set(0, value);
  return add_constant({dtype, {}}, to_bytes(tensor));
}

std::vector<ValueId> Builder::add_many(Op op, std::vector<ValueId> inputs) {
  std::vector<TensorType> types;
  types.reserve(inputs.size());
  for (ValueId input : inputs) types.push_back(graph_->type(input));
  std::vector<TensorType> results;
  try {
    results = op.infer(types, graph_->symbols());
  } catch (Error& error) {
    if (!source_.empty()) error.add_context(source_);
    throw;
  }
  const int32_t node =
      graph_->append(std::move(op), std::move(inputs), std::move(results), source_);
  return graph_->node(node).outputs;
}

ValueId Builder::add(Op op, std::vector<ValueId> inputs, std::string_view name) {
  const std::vector<ValueId> outputs = add_many(std::move(op), std::move(inputs));
  RLX_CHECK(outputs.size() == 1, "add() on an op of {} outputs", outputs.size());
  graph_->name_value(outputs[0], name);
  return outputs[0];
}

}  // namespace rlx
