#include "ops/elementwise.h"
#include "ops/samples.h"

namespace rlx {
namespace {

Sample make_same_op_sample(const std::shared_ptr<const Op>& op, std::vector<SampleInput> inputs) {
  Sample sample;
  sample.op = op;
  sample.inputs = std::move(inputs);
  return sample;
}

}  // namespace

std::vector<Sample> make_elementwise_samples(std::shared_ptr<const Op> op, int num_inputs,
                                             Domain domain, DTypeRule rule, double low,
                                             double high) {
  const DType dtype = rule == DTypeRule::kLogic ? DType::kBool : DType::kF32;
  // `shapes` has one shape per input, or one for all.
  const auto make = [&](DType of, std::vector<Shape> shapes) {
    std::vector<SampleInput> inputs;
    for (int i = 0; i < num_inputs; ++i) {
      const Shape& shape = shapes[shapes.size() == 1 ? 0 : i];
      SampleInput input{{of, shape}, low, high};
      if (is_integer(of)) {
        input.low = low >= 0 || of == DType::kU8 ? 1 : -9;
        input.high = 9;
      }
      inputs.push_back(std::move(input));
    }
    return make_same_op_sample(op, std::move(inputs));
  };
  std::vector<Sample> samples = {make(dtype, {{3, 5}}), make(dtype, {{67}}), make(dtype, {{}})};

  const Dim tokens = Dim::symbol("tokens");
  samples.push_back(make(dtype, {{2, tokens, 4}}));
  samples.back().symbols = {{"tokens", 1, 16}};
  samples.back().symbol_values = {3};

  if (num_inputs == 2) {
    samples.push_back(make(dtype, {{2, 1, 4}, {3, 1}}));
    samples.push_back(make(dtype, {{}, {2, 3}}));
  }
  if (domain != Domain::kFloat && rule != DTypeRule::kLogic) {
    for (DType integer : {DType::kI32, DType::kI64, DType::kU8}) {
      samples.push_back(make(integer, {{4, 6}}));
    }
  }
  if (rule == DTypeRule::kCompare) {
    samples.push_back(make_same_op_sample(op, {make_sample_input("f32[4]", {1, 2, -0.0, 4}),
                                               make_sample_input("f32[4]", {1, 3, 0, 2})}));
  }
  return samples;
}

std::vector<BadSample> make_elementwise_bad_samples(std::shared_ptr<const Op> op, int num_inputs,
                                                    Domain domain, DTypeRule rule) {
  const auto make = [&](std::vector<TensorType> types, std::string message) {
    return BadSample{op, std::move(types), std::move(message)};
  };
  const auto all = [&](DType dtype) {
    return std::vector<TensorType>(num_inputs, TensorType{dtype, {2}});
  };
  const DType good = rule == DTypeRule::kLogic ? DType::kBool : DType::kF32;
  std::vector<BadSample> samples;
  if (rule == DTypeRule::kLogic) {
    samples.push_back(make(all(DType::kF32), "but bool is expected"));
  } else if (domain == Domain::kFloat) {
    samples.push_back(make(all(DType::kI32), "but a float dtype is expected"));
  } else if (domain == Domain::kNumber) {
    samples.push_back(make(all(DType::kBool), "but a float or integer dtype is expected"));
  } else {
    samples.push_back(make(all(DType::kC64), "but a float, integer or bool dtype is expected"));
  }
  if (num_inputs == 2) {
    samples.push_back(make({{good, {2}}, {good, {3}}}, "do not broadcast"));
    samples.push_back(make({{good, {2}}}, "1 inputs are given"));
    if (rule != DTypeRule::kLogic) {
      samples.push_back(
          make({{DType::kF32, {2}}, {DType::kF64, {2}}}, "but one dtype is expected"));
    }
  }
  return samples;
}

std::vector<Sample> Gelu::samples() {
  std::vector<Sample> samples = Elementwise::samples();
  samples.push_back(
      make_sample(Gelu{.approximate = GeluKind::kTanh}, {make_sample_input("f32[5, 7]", -4, 4)}));
  samples.push_back(make_sample(Gelu{}, {make_sample_input("f32[5, 7]", -4, 4)}));
  return samples;
}

std::vector<Sample> Geglu::samples() {
  std::vector<Sample> samples = Elementwise::samples();
  samples.push_back(make_sample(Geglu{.approximate = GeluKind::kTanh}, {"f32[5, 7]", "f32[5, 7]"}));
  return samples;
}

std::vector<Sample> Select::samples() {
  return {
      make_sample(Select{}, {"bool[3, 5]", "f32[3, 5]", "f32[3, 5]"}),
      make_sample(Select{}, {"bool[2, 1, 4]", "f32[3, 1]", "f32[]"}),
      make_sample(Select{}, {"bool[4]", "i64[4]", "i64[3, 4]"}),
      make_sample(Select{}, {"bool[4]", "bool[4]", "bool[4]"}),
      make_sample(Select{}, {"bool[1, tokens]", "f32[2, tokens]", "f32[]"},
                  {{{"tokens", 1, 8}, 5}}),
  };
}

std::vector<BadSample> Select::bad_samples() {
  return {
      make_bad_sample(Select{}, {"f32[2]", "f32[2]", "f32[2]"}, "but bool is expected"),
      make_bad_sample(Select{}, {"bool[2]", "f32[2]", "f16[2]"}, "but one dtype is expected"),
      make_bad_sample(Select{}, {"bool[3]", "f32[2]", "f32[2]"}, "do not broadcast"),
  };
}

std::vector<Sample> Clamp::samples() {
  return {
      make_sample(Clamp{.low = -1, .high = 1}, {"f32[3, 5]"}),
      make_sample(Clamp{.low = 0.5}, {"f32[7]"}),
      make_sample(Clamp{.high = 0.25}, {"f32[7]"}),
      make_sample(Clamp{}, {"f32[7]"}),
      make_sample(Clamp{.low = -3, .high = 4}, {make_sample_input("i32[9]", -9, 9)}),
  };
}

std::vector<BadSample> Clamp::bad_samples() {
  return {
      make_bad_sample(Clamp{.low = 2, .high = 1}, {"f32[2]"}, "low <= high is expected"),
      make_bad_sample(Clamp{.low = 0.5}, {"i32[2]"}, "an integer of at most 53 bits is expected"),
      make_bad_sample(Clamp{.low = -1}, {"u8[2]"}, "which u8 does not hold"),
      make_bad_sample(Clamp{}, {"bool[2]"}, "but a float or integer dtype is expected"),
  };
}

std::vector<Sample> Fused::samples() {
  const Formula gate =
      parse_formula("t0 = neg(i0); t1 = exp(t0); t2 = add(t1, 1); t3 = div(i1, t2); t3");
  const Formula keep = parse_formula("t0 = less(i0, i1); t1 = select(t0, i0, i1); t1");
  return {
      make_sample(Fused{.formula = gate}, {"f32[3, 5]", "f32[3, 5]"}),
      make_sample(Fused{.formula = gate}, {"f32[2, 1, 4]", "f32[3, 1]"}),
      make_sample(Fused{.formula = keep, .dtype = DType::kI64}, {"i64[6]", "i64[6]"}),
      make_sample(Fused{.formula = parse_formula("t0 = less(i0, 0); t0"), .dtype = DType::kBool},
                  {"f32[6]"}),
      make_sample(Fused{.formula = parse_formula("t0 = select(i0, i1, 0); t0")},
                  {"bool[6]", "f32[6]"}),
  };
}

std::vector<BadSample> Fused::bad_samples() {
  const Formula sum = parse_formula("t0 = add(i0, i1); t0");
  return {
      make_bad_sample(Fused{}, {"f32[2]"}, "`formula` is empty"),
      make_bad_sample(Fused{.formula = sum}, {"f32[2]"}, "uses 2 inputs, but 1 are given"),
      make_bad_sample(Fused{.formula = sum}, {"f32[2]", "i32[2]"}, "are given together"),
      make_bad_sample(Fused{.formula = sum}, {"i64[2]", "i32[2]"}, "one integer dtype is expected"),
      make_bad_sample(Fused{.formula = sum}, {"i32[2]", "i32[2]"},
                      "an integer or bool is expected"),
      make_bad_sample(Fused{.formula = sum}, {"f32[2]", "f32[3]"}, "do not broadcast"),
      make_bad_sample(Fused{.formula = parse_formula("t0 = exp(i0); t0"), .dtype = DType::kI32},
                      {"i32[2]"}, "uses 'exp', but the inputs are i32"),
      make_bad_sample(
          Fused{.formula = parse_formula("t0 = min(i0, inf); t0"), .dtype = DType::kI32},
          {"i32[2]"}, "the constant inf, but the inputs are i32"),
  };
}

std::vector<Sample> Cast::samples() {
  const SampleInput wide =
      make_sample_input("f32[8]", {0.5, -0.5, 1.5, 2.5, -300, 300, 1e10, -1e10});
  return {
      make_sample(Cast{.dtype = DType::kF16}, {"f32[3, 5]"}),
      make_sample(Cast{.dtype = DType::kBF16}, {"f32[3, 5]"}),
      make_sample(Cast{.dtype = DType::kF32}, {"f16[3, 5]"}),
      make_sample(Cast{.dtype = DType::kF64}, {"f32[tokens, 5]"}, {{{"tokens", 0, 4}, 2}}),
      make_sample(Cast{.dtype = DType::kI32}, {wide}),
      make_sample(Cast{.dtype = DType::kI64}, {wide}),
      make_sample(Cast{.dtype = DType::kU8}, {wide}),
      make_sample(Cast{.dtype = DType::kI8}, {wide}),
      make_sample(Cast{.dtype = DType::kBool}, {make_sample_input("f32[4]", {0, -0.0, 1, -0.5})}),
      make_sample(Cast{.dtype = DType::kF32}, {make_sample_input("i64[6]", -1000, 1000)}),
      make_sample(Cast{.dtype = DType::kI32}, {make_sample_input("i64[6]", -1000, 1000)}),
      make_sample(Cast{.dtype = DType::kF32}, {"bool[6]"}),
      make_sample(Cast{.dtype = DType::kI64}, {"bool[6]"}),
  };
}

std::vector<BadSample> Cast::bad_samples() {
  return {
      make_bad_sample(Cast{.dtype = DType::kQ8_0}, {"f32[2, 32]"},
                      "a float, integer or bool is expected"),
      make_bad_sample(Cast{}, {"c64[2]"}, "but a float, integer or bool dtype is expected"),
  };
}

std::vector<Sample> Copy::samples() {
  return {
      make_sample(Copy{}, {"f32[3, 5]"}),
      make_sample(Copy{}, {"i64[4]"}),
      make_sample(Copy{}, {"bool[4]"}),
      make_sample(Copy{}, {"f32[2, tokens]"}, {{{"tokens", 0, 8}, 3}}),
  };
}

std::vector<BadSample> Copy::bad_samples() {
  return {
      make_bad_sample(Copy{}, {"q8_0[2, 32]"}, "but a float, integer or bool dtype is expected")};
}

}  // namespace rlx
