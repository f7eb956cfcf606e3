#include "ir/verify.h"

#include <set>

#include "base/checked.h"

namespace rlx {
namespace {

class Verifier {
 public:
  explicit Verifier(const Graph& graph) : graph_(graph) {}

  void run() {
    std::set<std::string> names;
    for (const Value& value : graph_.values()) {
      if (!value.name.empty() && !names.insert(value.name).second) {
        fail(graph_.node(value.node), "V4", fmt::format("two values are named '{}'", value.name));
      }
    }
    for (size_t i = 0; i < graph_.nodes().size(); ++i) check_node(static_cast<int32_t>(i));
    std::set<std::string> outputs;
    for (const GraphOutput& output : graph_.outputs()) {
      if (output.value.index < 0 ||
          output.value.index >= static_cast<int32_t>(graph_.values().size())) {
        fail_graph("V5", fmt::format("output '{}' names no value", output.name));
      }
      if (!outputs.insert(output.name).second) {
        fail_graph("V4", fmt::format("two outputs are named '{}'", output.name));
      }
    }
  }

 private:
  [[noreturn]] void fail_graph(const char* rule, const std::string& message) {
    throw_error(ErrorCode::kInternal, "Graph '{}' breaks rule {}: {}.", graph_.name(), rule,
                message);
  }
  [[noreturn]] void fail(const Node& node, const char* rule, const std::string& message) {
    fail_graph(rule, fmt::format("at op '{}'{}, {}", node.op.name(),
                                 node.source.empty() ? "" : " of '" + node.source + "'", message));
  }

  void check_node(int32_t index) {
    const Node& node = graph_.node(index);
    const int count = static_cast<int>(node.inputs.size());
    const Arity arity = node.op.kind().arity;
    if (count < arity.min || (arity.max >= 0 && count > arity.max)) {
      fail(node, "V3", fmt::format("it has {} inputs", count));
    }
    std::vector<TensorType> types;
    for (ValueId input : node.inputs) {
      if (input.index < 0 || input.index >= static_cast<int32_t>(graph_.values().size()) ||
          graph_.value(input).node >= index) {
        fail(node, "V1", "an input is not defined before its use");
      }
      types.push_back(graph_.type(input));
    }
    for (ValueId output : node.outputs) check_dims(node, graph_.type(output));
    if (node.op.kind().meaning == Meaning::kSource) {
      check_constant(node);
      return;
    }
    const std::vector<TensorType> inferred = node.op.infer(types, graph_.symbols());
    if (inferred.size() != node.outputs.size()) {
      fail(node, "V2",
           fmt::format("it has {} outputs, but {} are inferred", node.outputs.size(),
                       inferred.size()));
    }
    for (size_t i = 0; i < inferred.size(); ++i) {
      const TensorType& written = graph_.type(node.outputs[i]);
      if (inferred[i] != written) {
        fail(node, "V2",
             fmt::format("output {} is {}, but {} is inferred", i, to_string(written),
                         to_string(inferred[i])));
      }
    }
  }

  void check_dims(const Node& node, const TensorType& type) {
    for (const Dim& extent : type.shape) {
      for (const Dim::Term& term : extent.terms()) {
        for (const std::string& name : term.symbols) {
          if (graph_.symbols().find(name) == nullptr) {
            fail(node, "V6", fmt::format("symbol '{}' is not declared", name));
          }
        }
      }
      if (extent.is_constant() && extent.constant() < 0) {
        fail(node, "V6", fmt::format("an extent is {}", extent.constant()));
      }
    }
  }

  void check_constant(const Node& node) {
    const Constant* constant = node.op.as<Constant>();
    if (constant == nullptr) return;
    const int64_t expected = upper_bound_bytes(graph_.type(node.outputs[0]), graph_.symbols());
    const int64_t given =
        constant->data == nullptr ? 0 : static_cast<int64_t>(constant->data->bytes.size());
    if (given != expected) {
      fail(node, "V7",
           fmt::format("the constant has {} bytes, but its type takes {}", given, expected));
    }
  }

  const Graph& graph_;
};

}  // namespace

void verify(const Graph& graph) { Verifier(graph).run(); }

}  // namespace rlx
