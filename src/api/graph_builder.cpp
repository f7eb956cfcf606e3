#include "rlx/graph_builder.h"

#include <set>

#include "api/compiled_model.h"
#include "backends/cpu/session.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/thread_pool.h"
#include "ir/text.h"
#include "ops/registry.h"
#include "tensor/storage.h"

namespace rlx {
namespace {

template <typename T>
Array make_array(DType dtype, std::vector<int64_t> shape, std::span<const T> values) {
  int64_t elements = 1;
  for (int64_t extent : shape) {
    if (extent < 0) {
      throw_error(ErrorCode::kInvalidArgument, "An extent is {}, but expected at least 0.", extent);
    }
    elements = checked_mul(elements, extent);
  }
  if (elements != static_cast<int64_t>(values.size())) {
    throw_error(ErrorCode::kInvalidArgument, "{} values are given for a shape of {} elements.",
                values.size(), elements);
  }
  const auto bytes = std::as_bytes(values);
  return {dtype, std::move(shape), {bytes.begin(), bytes.end()}};
}

template <typename T>
std::span<const T> view_as(const Array& array, DType dtype) {
  if (array.dtype != dtype) {
    throw_error(ErrorCode::kInvalidArgument, "The array holds {}, but {} is asked for.",
                to_string(array.dtype), to_string(dtype));
  }
  return {reinterpret_cast<const T*>(array.bytes.data()), array.bytes.size() / sizeof(T)};
}

std::string print_shape(std::span<const int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

}  // namespace

Array Array::from_floats(std::vector<int64_t> shape, std::span<const float> values) {
  return make_array(DType::kF32, std::move(shape), values);
}

Array Array::from_ints(std::vector<int64_t> shape, std::span<const int64_t> values) {
  return make_array(DType::kI64, std::move(shape), values);
}

std::span<const float> Array::floats() const { return view_as<float>(*this, DType::kF32); }
std::span<const int64_t> Array::ints() const { return view_as<int64_t>(*this, DType::kI64); }

struct Executable::Parts {
  std::shared_ptr<const Program> program;
  std::unique_ptr<Session> session;
  PlanReport report;

  // The symbols' values from the inputs' shapes: an extent that is a bare symbol gives its value.
  std::vector<int64_t> find_extents(const std::map<std::string, Array>& inputs) const {
    const SymbolTable& symbols = program->symbols;
    std::vector<int64_t> values(symbols.symbols().size(), -1);
    for (const NamedValue& input : program->inputs) {
      const Shape& shape = program->values[input.value].type.shape;
      const std::vector<int64_t>& given = inputs.at(input.name).shape;
      for (size_t i = 0; i < shape.size() && i < given.size(); ++i) {
        const auto terms = shape[i].terms();
        const bool bare = shape[i].constant_part() == 0 && terms.size() == 1 &&
                          terms[0].coefficient == 1 && terms[0].symbols.size() == 1;
        if (bare) values[symbols.index_of(terms[0].symbols[0])] = given[i];
      }
    }
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i] < 0) {
        throw_error(ErrorCode::kInvalidArgument,
                    "No input's shape gives a value for the symbol '{}'.",
                    symbols.symbols()[i].name);
      }
    }
    return values;
  }

  void check_inputs(const std::map<std::string, Array>& inputs) const {
    for (const auto& [name, array] : inputs) find_input(*program, name);
    for (const NamedValue& input : program->inputs) {
      const auto found = inputs.find(input.name);
      if (found == inputs.end()) {
        throw_error(ErrorCode::kInvalidArgument, "The input '{}' is missing.", input.name);
      }
      const TensorType& type = program->values[input.value].type;
      if (found->second.dtype != type.dtype ||
          static_cast<int>(found->second.shape.size()) != type.rank()) {
        throw_error(ErrorCode::kInvalidArgument, "The input '{}' is {}{}, but {} is expected.",
                    input.name, to_string(found->second.dtype), print_shape(found->second.shape),
                    to_string(type));
      }
    }
  }

  void write_inputs(const std::map<std::string, Array>& inputs) {
    for (size_t i = 0; i < program->inputs.size(); ++i) {
      const NamedValue& input = program->inputs[i];
      const Array& array = inputs.at(input.name);
      const TensorView view = session->input(static_cast<int>(i));
      const std::vector<int64_t> expected(view.extents.begin(), view.extents.begin() + view.rank);
      if (array.shape != expected) {
        throw_error(ErrorCode::kInvalidArgument,
                    "The input '{}' has the shape {}, but {} is expected.", input.name,
                    print_shape(array.shape), print_shape(expected));
      }
      const int64_t size = storage_bytes(array.dtype, view.num_elements());
      if (size != static_cast<int64_t>(array.bytes.size())) {
        throw_error(ErrorCode::kInvalidArgument,
                    "The input '{}' has {} bytes, but its shape takes {}.", input.name,
                    array.bytes.size(), size);
      }
      std::copy(array.bytes.begin(), array.bytes.end(), view.data);
    }
  }
};

Executable::Executable(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Executable::Executable(Executable&&) noexcept = default;
Executable& Executable::operator=(Executable&&) noexcept = default;
Executable::~Executable() = default;

std::map<std::string, Array> Executable::run(const std::map<std::string, Array>& inputs) {
  Parts& p = *parts_;
  p.check_inputs(inputs);
  p.session->set_extents(p.find_extents(inputs)).throw_if_failed();
  p.write_inputs(inputs);
  p.session->run().throw_if_failed();
  std::map<std::string, Array> outputs;
  for (size_t i = 0; i < p.program->outputs.size(); ++i) {
    const TensorView view = p.session->output(static_cast<int>(i));
    Array array;
    array.dtype = view.dtype;
    array.shape.assign(view.extents.begin(), view.extents.begin() + view.rank);
    array.bytes.assign(view.data, view.data + storage_bytes(view.dtype, view.num_elements()));
    outputs.emplace(p.program->outputs[i].name, std::move(array));
  }
  return outputs;
}

const PlanReport& Executable::plan_report() const { return parts_->report; }
std::string Executable::listing() const { return to_string(*parts_->program); }

struct GraphBuilder::Parts {
  explicit Parts(Graph start) : graph(std::move(start)), builder(graph) {}
  Graph graph;
  Builder builder;

  ValueId find(Ref ref) const {
    if (ref.index < 0 || ref.index >= static_cast<int32_t>(graph.values().size())) {
      throw_error(ErrorCode::kInvalidArgument, "The reference {} names no value of this graph.",
                  ref.index);
    }
    return {ref.index};
  }

  // The type of a new input or state, whose name must be free.
  TensorType check_source(const std::string& name, std::string_view type_text) const {
    TensorType type = parse_tensor_type(type_text);
    upper_bound_bytes(type, graph.symbols());  // throws for a symbol that is not declared
    for (const Node& node : graph.nodes()) {
      const Input* input = node.op.as<Input>();
      const State* state = node.op.as<State>();
      if ((input != nullptr && input->name == name) || (state != nullptr && state->name == name)) {
        throw_error(ErrorCode::kInvalidArgument, "The graph has {} '{}' already.",
                    input != nullptr ? "an input" : "a state", name);
      }
    }
    return type;
  }

  void check_dims(const Op& op) const {
    for (const Dim& dim : op.list_dims()) dim.upper_bound(graph.symbols());
  }
};

GraphBuilder::GraphBuilder(const std::string& name)
    : parts_(std::make_unique<Parts>(Graph(name))) {}
GraphBuilder::GraphBuilder(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
GraphBuilder::GraphBuilder(GraphBuilder&&) noexcept = default;
GraphBuilder& GraphBuilder::operator=(GraphBuilder&&) noexcept = default;
GraphBuilder::~GraphBuilder() = default;

GraphBuilder GraphBuilder::parse(std::string_view text) {
  return GraphBuilder(std::make_unique<Parts>(parse_graph(text)));
}

void GraphBuilder::symbol(const std::string& name, int64_t upper, int64_t lower) {
  parts_->graph.declare_symbol({name, lower, upper});
}

GraphBuilder::Ref GraphBuilder::input(const std::string& name, std::string_view type) {
  return {parts_->builder.add_input(name, parts_->check_source(name, type)).index};
}

GraphBuilder::Ref GraphBuilder::state(const std::string& name, std::string_view type) {
  return {parts_->builder.add_state(name, parts_->check_source(name, type)).index};
}

GraphBuilder::Ref GraphBuilder::constant(const Array& array) {
  TensorType type{array.dtype, {}};
  for (int64_t extent : array.shape) type.shape.push_back(extent);
  const int64_t size = upper_bound_bytes(type, parts_->graph.symbols());
  if (size != static_cast<int64_t>(array.bytes.size())) {
    throw_error(ErrorCode::kInvalidArgument, "The constant has {} bytes, but {} takes {}.",
                array.bytes.size(), to_string(type), size);
  }
  return {parts_->builder.add_constant(std::move(type), array.bytes).index};
}

GraphBuilder::Ref GraphBuilder::op(std::string_view name, const std::vector<Ref>& inputs,
                                   std::string_view attributes) {
  const std::vector<Ref> outputs = ops(name, inputs, attributes);
  if (outputs.size() != 1) {
    throw_error(ErrorCode::kInvalidArgument, "Op '{}' has {} outputs; use ops() to get them all.",
                name, outputs.size());
  }
  return outputs[0];
}

std::vector<GraphBuilder::Ref> GraphBuilder::ops(std::string_view name,
                                                 const std::vector<Ref>& inputs,
                                                 std::string_view attributes) {
  std::vector<ValueId> values;
  for (Ref input : inputs) values.push_back(parts_->find(input));
  std::vector<Ref> outputs;
  const Op op = parse_op(name, attributes, all_ops());
  parts_->check_dims(op);
  for (ValueId output : parts_->builder.add_many(op, std::move(values))) {
    outputs.push_back({output.index});
  }
  return outputs;
}

void GraphBuilder::output(const std::string& name, Ref value) {
  parts_->graph.add_output(name, parts_->find(value));
}

std::string GraphBuilder::to_text() const { return to_string(parts_->graph); }

Executable GraphBuilder::compile(const ExecutableOptions& options) const {
  for (const Node& node : parts_->graph.nodes()) {
    if (const Weight* weight = node.op.as<Weight>()) {
      throw_error(
          ErrorCode::kUnsupported,
          "The graph reads the weight '{}' from a model file; give it as a constant or input.",
          weight->name);
    }
  }
  const cpu::TargetOptions target = make_target_options({.threads = options.threads});
  auto parts = std::make_unique<Executable::Parts>();
  CompileResult result = rlx::compile(parts_->graph, cpu::CpuTarget(target));
  parts->program = std::make_shared<const Program>(std::move(result.program));
  parts->session = cpu::make_session(parts->program, nullptr,
                                     std::make_shared<ThreadPool>(target.max_threads), target);
  parts->report = make_plan_report(*parts->program, nullptr);
  return Executable(std::move(parts));
}

}  // namespace rlx
