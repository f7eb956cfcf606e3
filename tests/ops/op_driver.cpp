#include "op_driver.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "backends/reference/interpreter.h"
#include "tensor/half.h"

namespace rlx {
namespace {

int64_t clip_to_dtype(DType dtype, int64_t value) {
  const bool is_unsigned = dtype >= DType::kU64 && dtype <= DType::kU8;
  if (is_unsigned && value < 0) return 0;
  if (dtype == DType::kBool) return value != 0;
  return value;
}

// Rounds to blocks of 32 elements with one f16 scale, and stores them so.
void pack_q8_0(OpInput& input) {
  constexpr int64_t kBlock = 32;
  for (size_t start = 0; start < input.values.floats.size(); start += kBlock) {
    double* block = input.values.floats.data() + start;
    double largest = 0;
    for (int64_t i = 0; i < kBlock; ++i) largest = std::max(largest, std::abs(block[i]));
    const uint16_t scale_bits = f32_to_f16(static_cast<float>(largest / 127));
    const double scale = f16_to_f32(scale_bits);
    std::byte bytes[2 + kBlock];
    std::memcpy(bytes, &scale_bits, 2);
    for (int64_t i = 0; i < kBlock; ++i) {
      const double level =
          scale == 0 ? 0 : std::clamp(std::nearbyint(block[i] / scale), -127.0, 127.0);
      block[i] = level * scale;
      bytes[2 + i] = static_cast<std::byte>(static_cast<int8_t>(level));
    }
    input.bytes.insert(input.bytes.end(), std::begin(bytes), std::end(bytes));
  }
}

OpInput fill(const SampleInput& sample, std::vector<int64_t> shape, std::mt19937_64& random) {
  const DType dtype = sample.type.dtype;
  OpInput input{make_reference_tensor(dtype, std::move(shape)), {}};
  const int64_t count = input.values.num_elements();
  RLX_CHECK(sample.values.empty() || static_cast<int64_t>(sample.values.size()) == count,
            "a sample gives {} values for {}", sample.values.size(), to_string(sample.type));
  std::uniform_real_distribution<double> real(sample.low, sample.high);
  std::uniform_int_distribution<int64_t> whole(static_cast<int64_t>(std::ceil(sample.low)),
                                               static_cast<int64_t>(std::floor(sample.high)));
  for (int64_t i = 0; i < count; ++i) {
    if (input.values.holds_floats()) {
      const double value = sample.values.empty() ? real(random) : sample.values[i];
      input.values.floats[i] = round_float(dtype, value);
    } else {
      const int64_t value =
          sample.values.empty() ? whole(random) : static_cast<int64_t>(sample.values[i]);
      input.values.set_integer(i, clip_to_dtype(dtype, value));
    }
  }
  if (dtype == DType::kQ8_0) {
    pack_q8_0(input);
  } else {
    input.bytes = to_bytes(input.values);
  }
  return input;
}

OpCase make_case(const Sample& sample, DType varied, uint64_t seed) {
  OpCase result{sample, varied, Graph("sample"), {}, {}};
  for (const Symbol& symbol : sample.symbols) result.graph.declare_symbol(symbol);
  Builder builder(result.graph);
  std::mt19937_64 random(seed);
  std::vector<ValueId> ids;
  std::vector<std::string> types;
  for (size_t i = 0; i < sample.inputs.size(); ++i) {
    const TensorType& type = sample.inputs[i].type;
    const std::string name = fmt::format("i{}", i);
    if (static_cast<int>(i) == sample.op->kind().in_place_input) {
      ids.push_back(builder.add_state(name, type));
    } else if (is_packed(type.dtype)) {
      ids.push_back(builder.add_weight(name, type));
    } else {
      ids.push_back(builder.add_input(name, type));
    }
    std::vector<int64_t> shape;
    for (const Dim& extent : type.shape) {
      shape.push_back(extent.evaluate(result.graph.symbols(), sample.symbol_values));
    }
    result.inputs[name] = fill(sample.inputs[i], std::move(shape), random);
    types.push_back(to_string(type));
  }
  const std::vector<ValueId> outputs = builder.add_many(*sample.op, ids);
  for (size_t i = 0; i < outputs.size(); ++i) {
    result.graph.add_output(fmt::format("o{}", i), outputs[i]);
  }
  result.description = fmt::format("{} {} ({})", sample.op->name(), print_attributes(*sample.op),
                                   fmt::join(types, ", "));
  return result;
}

bool infers(const Sample& sample) {
  SymbolTable symbols;
  for (const Symbol& symbol : sample.symbols) symbols.declare(symbol);
  std::vector<TensorType> types;
  for (const SampleInput& input : sample.inputs) types.push_back(input.type);
  try {
    sample.op->infer(types, symbols);
    return true;
  } catch (const Error&) {
    return false;
  }
}

// The sample with as many of its f32 inputs in the dtype as `infer` accepts, from the first on;
// false when there is none.
bool vary(const Sample& sample, DType dtype, Sample& varied) {
  std::vector<size_t> places;
  for (size_t i = 0; i < sample.inputs.size(); ++i) {
    if (sample.inputs[i].type.dtype == DType::kF32) places.push_back(i);
  }
  for (; !places.empty(); places.pop_back()) {
    varied = sample;
    for (size_t i : places) varied.inputs[i].type.dtype = dtype;
    if (infers(varied)) return true;
  }
  return false;
}

}  // namespace

std::vector<TensorType> OpCase::input_types() const {
  std::vector<TensorType> types;
  for (const SampleInput& input : sample.inputs) types.push_back(input.type);
  return types;
}

std::vector<OpCase> make_op_cases(const OpKind& kind) {
  std::vector<OpCase> cases;
  uint64_t seed = 1;
  for (const Sample& sample : kind.samples()) {
    cases.push_back(make_case(sample, DType::kF32, ++seed));
    if (!sample.vary_dtype) continue;
    for (DType dtype : {DType::kF64, DType::kF16, DType::kBF16}) {
      Sample varied;
      if (vary(sample, dtype, varied)) cases.push_back(make_case(varied, dtype, seed));
    }
  }
  return cases;
}

double choose_tolerance(const OpCase& op_case) {
  double tolerance = op_case.sample.tolerance;
  const auto makes_f32 = [&](const GraphOutput& output) {
    return op_case.graph.type(output.value).dtype == DType::kF32;
  };
  const auto outputs = op_case.graph.outputs();
  if (op_case.varied == DType::kF64 && std::none_of(outputs.begin(), outputs.end(), makes_f32)) {
    tolerance *= 1e-4;
  }
  // What the graph's 16-bit floats can hold: 11 and 8 bits, a few of them lost to roundings.
  for (const Value& value : op_case.graph.values()) {
    if (value.type.dtype == DType::kF16) tolerance = std::max(tolerance, 2e-3);
    if (value.type.dtype == DType::kBF16) tolerance = std::max(tolerance, 1.6e-2);
  }
  return tolerance;
}

std::string compare(const ReferenceTensor& expected, const ReferenceTensor& actual,
                    double tolerance) {
  if (expected.dtype != actual.dtype || expected.shape != actual.shape) {
    return fmt::format("{}[{}] is expected, but {}[{}] comes", to_string(expected.dtype),
                       fmt::join(expected.shape, ", "), to_string(actual.dtype),
                       fmt::join(actual.shape, ", "));
  }
  double largest = 0;
  for (double value : expected.floats) {
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  }
  for (int64_t i = 0; i < expected.num_elements(); ++i) {
    if (expected.holds_floats()) {
      const double e = expected.floats[i], a = actual.floats[i];
      const bool same = e == a || (std::isnan(e) && std::isnan(a));
      if (same || std::abs(e - a) <= tolerance * largest) continue;
      return fmt::format("element {} is {}, but {} is expected (tolerance {} of {})", i, a, e,
                         tolerance, largest);
    }
    if (expected.integers[i] != actual.integers[i]) {
      return fmt::format("element {} is {}, but {} is expected", i, actual.integers[i],
                         expected.integers[i]);
    }
  }
  return "";
}

OpOutputs run_reference(const OpCase& op_case) {
  Interpreter interpreter(op_case.graph, [&](const std::string& name, const TensorType&) {
    return op_case.inputs.at(name).values;
  });
  Interpreter::Tensors inputs;
  for (const Node& node : op_case.graph.nodes()) {
    if (const Input* input = node.op.as<Input>()) {
      inputs[input->name] = op_case.inputs.at(input->name).values;
    }
  }
  for (auto& [name, tensor] : interpreter.states()) tensor = op_case.inputs.at(name).values;
  return interpreter.run(inputs, op_case.sample.symbol_values);
}

int check_backend(const OpKind& kind, OpBackend& backend) {
  int ran = 0;
  for (const OpCase& op_case : make_op_cases(kind)) {
    SCOPED_TRACE(backend.name() + ": " + op_case.description);
    if (!backend.explain_unsupported(*op_case.sample.op, op_case.input_types()).empty()) continue;
    ++ran;
    const OpOutputs expected = run_reference(op_case);
    try {
      const OpOutputs actual =
          backend.run(op_case.graph, op_case.inputs, op_case.sample.symbol_values);
      for (const auto& [name, tensor] : expected) {
        const auto found = actual.find(name);
        if (found == actual.end()) {
          ADD_FAILURE() << "the output '" << name << "' does not come";
          continue;
        }
        EXPECT_EQ(compare(tensor, found->second, choose_tolerance(op_case)), "")
            << "output '" << name << "'";
      }
    } catch (const Error& error) {
      ADD_FAILURE() << error.what();
    }
  }
  return ran;
}

}  // namespace rlx
