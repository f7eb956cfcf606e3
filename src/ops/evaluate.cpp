#include "ops/evaluate.h"

#include <algorithm>

#include "ir/graph.h"
#include "ops/reference_loops.h"

namespace rlx {
namespace {

using Inputs = std::span<const ReferenceTensor* const>;

struct Evaluation {
  const Op& op;
  Inputs inputs;
  std::span<const TensorType> input_types;
  const SymbolTable& symbols;
  std::span<const int64_t> symbol_values;

  int64_t evaluate(const Dim& dim) const { return dim.evaluate(symbols, symbol_values); }
  std::vector<int64_t> evaluate(const Shape& shape) const {
    std::vector<int64_t> extents;
    for (const Dim& extent : shape) extents.push_back(evaluate(extent));
    return extents;
  }
};

void check_inputs(const Evaluation& e) {
  RLX_CHECK(e.inputs.size() == e.input_types.size(), "op '{}': {} inputs, {} types", e.op.name(),
            e.inputs.size(), e.input_types.size());
  for (size_t i = 0; i < e.inputs.size(); ++i) {
    const ReferenceTensor& given = *e.inputs[i];
    const std::vector<int64_t> expected = e.evaluate(e.input_types[i].shape);
    if (given.dtype != e.input_types[i].dtype || given.shape != expected) {
      throw_error(ErrorCode::kInvalidArgument,
                  "Input {} of op '{}' is {}[{}], but {} (here [{}]) is expected.", i, e.op.name(),
                  to_string(given.dtype), fmt::join(given.shape, ", "), to_string(e.input_types[i]),
                  fmt::join(expected, ", "));
    }
  }
}

enum class ComputeType : uint8_t { kDouble, kInt64, kUint64 };

ComputeType choose_compute_type(const Evaluation& e) {
  ComputeType type = ComputeType::kInt64;
  for (const ReferenceTensor* input : e.inputs) {
    if (input->holds_floats()) return ComputeType::kDouble;
    // Formulas see u64 as it is: above 2^63 its order and quotients differ from int64.
    if (input->dtype == DType::kU64) type = ComputeType::kUint64;
  }
  return e.op.kind().domain == Domain::kFloat ? ComputeType::kDouble : type;
}

void evaluate_scalar(const Evaluation& e, ReferenceTensor& output) {
  const OpKind& kind = e.op.kind();
  const ComputeType compute = choose_compute_type(e);
  const size_t count = e.inputs.size();
  Formula formula;
  if (compute == ComputeType::kUint64) formula = e.op.formula(static_cast<int>(count));
  std::vector<std::vector<int64_t>> strides;
  for (const ReferenceTensor* input : e.inputs) {
    strides.push_back(broadcast_strides(input->shape, output.shape));
  }
  std::vector<double> doubles(count);
  std::vector<int64_t> integers(count);
  std::vector<uint64_t> bits(count);
  for_each_index(output.shape, [&](int64_t n, std::span<const int64_t> index) {
    for (size_t i = 0; i < count; ++i) {
      int64_t place = 0;
      for (size_t d = 0; d < index.size(); ++d) place += index[d] * strides[i][d];
      if (compute == ComputeType::kDouble) {
        doubles[i] = e.inputs[i]->at(place);
      } else {
        integers[i] = e.inputs[i]->integers[place];
        bits[i] = static_cast<uint64_t>(integers[i]);
      }
    }
    if (compute == ComputeType::kDouble) {
      const double value = kind.scalar_double(e.op.attributes(), doubles.data());
      if (output.holds_floats()) {
        output.floats[n] = value;
      } else {
        output.integers[n] = saturate_to_integer(output.dtype, value);
      }
    } else if (compute == ComputeType::kInt64) {
      output.set_integer(n, kind.scalar_int(e.op.attributes(), integers.data()));
    } else {
      output.set_integer(n, static_cast<int64_t>(rlx::evaluate(formula, bits.data())));
    }
  });
}

void evaluate_layout(const Evaluation& e, const TensorType& output_type, ReferenceTensor& output) {
  const ReferenceTensor& input = *e.inputs[0];
  const Layout input_layout = make_contiguous_layout(e.input_types[0].shape);
  const std::optional<Layout> layout =
      e.op.kind().layout(e.op.attributes(), {e.input_types[0], input_layout, output_type});
  RLX_CHECK(layout.has_value(), "op '{}' has no layout on a contiguous input", e.op.name());
  const int64_t offset = e.evaluate(layout->offset);
  const std::vector<int64_t> strides = e.evaluate(layout->strides);
  const int64_t limit = input.num_elements();
  for_each_index(output.shape, [&](int64_t n, std::span<const int64_t> index) {
    int64_t place = offset;
    for (size_t d = 0; d < index.size(); ++d) place += index[d] * strides[d];
    if (place < 0 || place >= limit) {
      throw_error(ErrorCode::kOutOfRange,
                  "The view by op '{}' reads element {} of an input of {} elements.", e.op.name(),
                  place, limit);
    }
    copy_element(input, place, output, n);
  });
}

// Builds the decomposition as a graph of its own and evaluates its nodes in order.
std::vector<ReferenceTensor> evaluate_decomposed(const Evaluation& e) {
  Graph graph("decomposition");
  for (const Symbol& symbol : e.symbols.symbols()) graph.declare_symbol(symbol);
  Builder builder(graph);
  std::vector<ValueId> ids;
  for (size_t i = 0; i < e.inputs.size(); ++i) {
    ids.push_back(builder.add_input(fmt::format("i{}", i), e.input_types[i]));
  }
  const std::vector<ValueId> results = e.op.kind().decompose(e.op.attributes(), builder, ids);

  std::vector<int32_t> uses = graph.count_uses();
  for (ValueId result : results) ++uses[result.index];
  std::vector<ReferenceTensor> values(graph.values().size());
  std::vector<const ReferenceTensor*> places(values.size());
  for (size_t i = 0; i < values.size(); ++i) places[i] = &values[i];
  for (size_t i = 0; i < ids.size(); ++i) places[ids[i].index] = e.inputs[i];

  for (const Node& node : graph.nodes()) {
    if (node.op.is<Input>()) continue;
    if (const Constant* constant = node.op.as<Constant>()) {
      const ValueId id = node.outputs[0];
      values[id.index] = reference_from_bytes(
          graph.type(id).dtype, e.evaluate(graph.type(id).shape), constant->data->bytes);
      continue;
    }
    std::vector<const ReferenceTensor*> inputs;
    std::vector<TensorType> types;
    for (ValueId id : node.inputs) {
      inputs.push_back(places[id.index]);
      types.push_back(graph.type(id));
    }
    std::vector<ReferenceTensor> outputs =
        rlx::evaluate(node.op, inputs, types, e.symbols, e.symbol_values);
    for (size_t i = 0; i < outputs.size(); ++i) {
      values[node.outputs[i].index] = std::move(outputs[i]);
    }
    for (ValueId id : node.inputs) {
      if (--uses[id.index] == 0) values[id.index] = ReferenceTensor{};
    }
  }
  std::vector<ReferenceTensor> outputs;
  for (ValueId result : results) outputs.push_back(*places[result.index]);
  return outputs;
}

}  // namespace

std::vector<ReferenceTensor> evaluate(const Op& op, Inputs inputs,
                                      std::span<const TensorType> input_types,
                                      const SymbolTable& symbols,
                                      std::span<const int64_t> symbol_values) {
  const Evaluation e{op, inputs, input_types, symbols, symbol_values};
  const Meaning meaning = op.kind().meaning;
  if (meaning == Meaning::kSource) {
    throw_error(ErrorCode::kUnsupported, "The source '{}' has no value of its own.", op.name());
  }
  check_inputs(e);
  const std::vector<TensorType> types = op.infer(input_types, symbols);
  if (meaning == Meaning::kDecompose) return evaluate_decomposed(e);

  std::vector<ReferenceTensor> outputs;
  for (const TensorType& type : types) {
    outputs.push_back(make_reference_tensor(type.dtype, e.evaluate(type.shape)));
  }
  if (meaning == Meaning::kScalar) {
    evaluate_scalar(e, outputs[0]);
  } else if (meaning == Meaning::kLayout) {
    evaluate_layout(e, types[0], outputs[0]);
  } else {
    op.kind().reference(op.attributes(), {inputs, outputs, symbols, symbol_values});
  }
  return outputs;
}

}  // namespace rlx
