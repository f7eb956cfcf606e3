// The graph: what a model computes, as a list of nodes in execution order over typed values. Each
// value has one producer. Passes do not edit a graph in place: they write a new one (see
// ir/rewrite.h), so a graph never holds a dangling value or a cycle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/op.h"
#include "tensor/shape.h"

namespace rlx {

// The bytes of a constant: row-major, without gaps, in the dtype of its value.
struct ConstantData {
  std::vector<std::byte> bytes;
};

// The ops that bring values into a graph; they take no inputs and their type is declared.
struct Input {  // given by the caller at each run
  static constexpr std::string_view kName = "input";
  static constexpr Arity kArity{0, 0};
  static constexpr bool kIsSource = true;
  std::string name;
  bool operator==(const Input&) const = default;
  std::vector<TensorType> infer(const InferContext& context) const;
};
struct Weight {  // read-only, by name from the model's file; shared by all programs of the model
  static constexpr std::string_view kName = "weight";
  static constexpr Arity kArity{0, 0};
  static constexpr bool kIsSource = true;
  std::string name;
  bool operator==(const Weight&) const = default;
  std::vector<TensorType> infer(const InferContext& context) const;
};
struct State {  // stays in the arena from run to run (key/value caches); zero at first
  static constexpr std::string_view kName = "state";
  static constexpr Arity kArity{0, 0};
  static constexpr bool kIsSource = true;
  std::string name;
  bool operator==(const State&) const = default;
  std::vector<TensorType> infer(const InferContext& context) const;
};
struct Constant {  // held in the graph itself
  static constexpr std::string_view kName = "constant";
  static constexpr Arity kArity{0, 0};
  static constexpr bool kIsSource = true;
  std::shared_ptr<const ConstantData> data;
  // The same bytes; whether the values are equal also depends on their types.
  bool operator==(const Constant& other) const;
  std::vector<TensorType> infer(const InferContext& context) const;
};

struct Node {
  Op op;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  std::string source;  // where it comes from, in the model's own words: "blk.0.attn_norm"
};

struct Value {
  TensorType type;
  std::string name;  // unique within the graph, or empty
  int32_t node = -1;
  int32_t output_index = 0;
};

struct GraphOutput {
  std::string name;
  ValueId value;
};

class Graph {
 public:
  explicit Graph(std::string name = "graph") : name_(std::move(name)) {}

  const std::string& name() const { return name_; }
  void set_name(std::string name) { name_ = std::move(name); }
  const SymbolTable& symbols() const { return symbols_; }
  void declare_symbol(Symbol symbol) { symbols_.declare(std::move(symbol)); }

  std::span<const Node> nodes() const { return nodes_; }
  std::span<const Value> values() const { return values_; }
  std::span<const GraphOutput> outputs() const { return outputs_; }
  const Node& node(int32_t index) const { return nodes_[index]; }
  const Value& value(ValueId id) const { return values_[id.index]; }
  const TensorType& type(ValueId id) const { return values_[id.index].type; }
  const Node& producer(ValueId id) const { return nodes_[values_[id.index].node]; }

  // Appends a node whose outputs have the given types; inputs must exist. Most callers use Builder,
  // which infers the types. Returns the node's index.
  int32_t append(Op op, std::vector<ValueId> inputs, std::vector<TensorType> types,
                 std::string source = "");
  // Throws kInvalidArgument when the name is taken by another output.
  void add_output(std::string name, ValueId value);
  // Names a value; a name already taken gets a suffix. Characters other than letters, digits, '_'
  // and
  // '.' become '_'. An empty or all-digit name leaves the value unnamed.
  void name_value(ValueId value, std::string_view name);
  ValueId find_value(std::string_view name) const;  // invalid when there is none

  // Users of each value by value index: node indices, once per use. Outputs are not counted here.
  std::vector<std::vector<int32_t>> list_users() const;
  // How often each value is used, graph outputs included.
  std::vector<int32_t> count_uses() const;

 private:
  std::string name_;
  SymbolTable symbols_;
  std::vector<Node> nodes_;
  std::vector<Value> values_;
  std::vector<GraphOutput> outputs_;
  std::unordered_map<std::string, int32_t> names_;  // value index by name
};

// Appends nodes to a graph, inferring the types. Errors name the op and the current source.
class Builder {
 public:
  explicit Builder(Graph& graph) : graph_(&graph) {}

  Graph& graph() { return *graph_; }
  const TensorType& type(ValueId value) const { return graph_->type(value); }
  // What nodes added from now on come from ("blk.0.attn_norm").
  void set_source(std::string source) { source_ = std::move(source); }
  const std::string& source() const { return source_; }

  ValueId add_input(std::string name, TensorType type);
  ValueId add_weight(std::string name, TensorType type);
  ValueId add_state(std::string name, TensorType type);
  ValueId add_constant(TensorType type, std::vector<std::byte> bytes);
  // A scalar constant of a float or integer dtype.
  ValueId add_scalar(DType dtype, double value);

  // Adds a node with one output and returns it; `name` (optional) names the value.
  ValueId add(Op op, std::vector<ValueId> inputs, std::string_view name = "");
  // Adds a node and returns all outputs.
  std::vector<ValueId> add_many(Op op, std::vector<ValueId> inputs);

 private:
  Graph* graph_;
  std::string source_;
};

}  // namespace rlx
