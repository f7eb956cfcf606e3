// Runs a whole graph by the reference meaning of its ops, value by value in double: slow, plain,
// and what every other backend is compared with. It needs no compiler and no plan.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/reference_tensor.h"

namespace rlx {

class Interpreter {
 public:
  // Gives a weight's values, decoded where the type is packed, with the type's dtype and shape.
  using LoadWeight =
      std::function<ReferenceTensor(const std::string& name, const TensorType& type)>;
  using Tensors = std::map<std::string, ReferenceTensor>;

  // Weights of up to this many elements stay loaded; larger ones are loaded for each use, so that
  // a model's weights never lie decoded in memory all at once.
  static constexpr int64_t kKeptWeightElements = 1 << 16;

  // Keeps its own copy of the graph. A graph with weights needs `load_weight`. Throws kUnsupported
  // when a state's shape depends on a symbol, or when an op would write a state through a view.
  explicit Interpreter(Graph graph, LoadWeight load_weight = nullptr);

  const Graph& graph() const { return graph_; }

  // The outputs by name. `inputs` holds every input of the graph by name (others are refused), and
  // `symbol_values` one value per symbol, in order of declaration and within its bounds. States are
  // zero before the first run and keep from run to run what in-place ops wrote. Throws what
  // `evaluate` throws, with the node in the context; states may then hold some of the run's writes.
  Tensors run(const Tensors& inputs, std::span<const int64_t> symbol_values = {});

  // The states by name, to look at or to set before a run.
  Tensors& states() { return states_; }
  // Fills the states with zeros.
  void reset_states();

 private:
  struct Run;

  void check_in_place(const Node& node) const;
  void check_run(const Tensors& inputs, std::span<const int64_t> symbol_values) const;
  const ReferenceTensor* find_value(Run& run, ValueId id);
  void run_node(Run& run, const Node& node);
  void write_state(const std::string& name, const ReferenceTensor& written);

  Graph graph_;
  LoadWeight load_weight_;
  Tensors states_;
  Tensors kept_weights_;
  std::vector<std::string> state_of_;  // by value: the state whose bytes it shares, or empty
};

}  // namespace rlx
