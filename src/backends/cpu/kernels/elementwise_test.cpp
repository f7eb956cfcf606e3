#include "ops/elementwise.h"

#include <gtest/gtest.h>

#include <bit>
#include <random>

#include "backends/cpu/kernels/elementwise_program.h"
#include "backends/cpu/kernels/kernel_tester.h"
#include "tensor/half.h"

namespace rlx::cpu::testing {
namespace {

// Ops whose value is defined everywhere on the type, so that any formula of them has one.
constexpr FormulaOp kSmoothOps[] = {FormulaOp::neg, FormulaOp::abs, FormulaOp::tanh, FormulaOp::erf,
                                    FormulaOp::sin, FormulaOp::cos, FormulaOp::add,  FormulaOp::sub,
                                    FormulaOp::mul, FormulaOp::min, FormulaOp::max};
constexpr FormulaOp kJumpingOps[] = {
    FormulaOp::sign,        FormulaOp::floor, FormulaOp::ceil,       FormulaOp::round,
    FormulaOp::tanh,        FormulaOp::add,   FormulaOp::sub,        FormulaOp::mul,
    FormulaOp::less,        FormulaOp::equal, FormulaOp::less_equal, FormulaOp::logical_and,
    FormulaOp::logical_not, FormulaOp::select};
constexpr FormulaOp kIntegerOps[] = {
    FormulaOp::neg,        FormulaOp::abs,        FormulaOp::sign,        FormulaOp::add,
    FormulaOp::sub,        FormulaOp::mul,        FormulaOp::div,         FormulaOp::rem,
    FormulaOp::min,        FormulaOp::max,        FormulaOp::pow,         FormulaOp::less,
    FormulaOp::less_equal, FormulaOp::logical_or, FormulaOp::logical_xor, FormulaOp::select};

Formula random_formula(std::span<const FormulaOp> ops, int num_inputs, std::mt19937& random) {
  Formula formula;
  std::vector<int32_t> steps;
  for (int32_t i = 0; i < num_inputs; ++i) steps.push_back(formula.add({FormulaOp::input, i}));
  steps.push_back(formula.add({FormulaOp::constant, -1, -1, -1, 1.0 + random() % 3}));
  const int length = 1 + static_cast<int>(random() % 12);
  for (int i = 0; i < length; ++i) {
    FormulaStep step{ops[random() % ops.size()]};
    const int arguments = count_arguments(step.op);
    step.a = steps[random() % steps.size()];
    if (arguments > 1) step.b = steps[random() % steps.size()];
    if (arguments > 2) step.c = steps[random() % steps.size()];
    steps.push_back(formula.add(step));
  }
  formula.set_result(steps.back());
  return formula;
}

// A shape that broadcasts to `shape`.
Shape random_part(const std::vector<int64_t>& shape, std::mt19937& random) {
  Shape part;
  const size_t skipped = random() % 4 == 0 ? random() % (shape.size() + 1) : 0;
  for (size_t i = skipped; i < shape.size(); ++i) {
    part.emplace_back(random() % 4 == 0 ? 1 : shape[i]);
  }
  return part;
}

std::vector<int64_t> random_shape(std::mt19937& random) {
  std::vector<int64_t> shape;
  const int rank = static_cast<int>(random() % 5);
  for (int i = 0; i < rank; ++i) {
    const int64_t choices[] = {1, 2, 3, 7, 16, 33, 100, 700};
    shape.push_back(choices[random() % (rank <= 2 ? 8 : 6)]);
  }
  return shape;
}

// In f32 over continuous ops; in f64 also over those that jump, where f32 and the oracle may land
// on different sides.
TEST(Elementwise, RunsRandomFloatFormulasOverBroadcastStridedInputs) {
  std::mt19937 random(1);
  const DType narrow[] = {DType::kF32, DType::kF16, DType::kBF16, DType::kBool};
  const DType wide[] = {DType::kF64, DType::kF32, DType::kBool};
  for (int round = 0; round < 150; ++round) {
    const bool is_wide = round % 3 == 0;
    const std::vector<int64_t> shape = random_shape(random);
    const int num_inputs = 1 + static_cast<int>(random() % 5);
    const DType dtype = is_wide ? DType::kF64 : DType::kF32;
    const std::span<const FormulaOp> ops =
        is_wide ? std::span<const FormulaOp>(kJumpingOps) : kSmoothOps;
    RandomUse use{.op = Fused{random_formula(ops, num_inputs, random), dtype},
                  .low = -1,
                  .high = 1,
                  .tolerance = is_wide ? 1e-10 : 1e-4};
    use.types.push_back({dtype, Shape(shape.begin(), shape.end())});
    for (int i = 1; i < num_inputs; ++i) {
      use.types.push_back(
          {is_wide ? wide[random() % 3] : narrow[random() % 4], random_part(shape, random)});
    }
    for (int i = 0; i < num_inputs; ++i) use.placements.push_back(random_placement(random));
    expect_reference(elementwise_kernels(), use, random);
  }
}

TEST(Elementwise, RunsRandomIntegerFormulas) {
  std::mt19937 random(2);
  const DType dtypes[] = {DType::kI64, DType::kI32, DType::kI16, DType::kI8,
                          DType::kU32, DType::kU16, DType::kU8};
  for (int round = 0; round < 150; ++round) {
    const DType dtype = dtypes[random() % 7];
    const std::vector<int64_t> shape = random_shape(random);
    const int num_inputs = 1 + static_cast<int>(random() % 4);
    const Formula formula = random_formula(kIntegerOps, num_inputs, random);
    RandomUse use{
        .op = Fused{formula, random() % 4 == 0 ? DType::kBool : dtype}, .low = -100, .high = 100};
    use.types.push_back({dtype, Shape(shape.begin(), shape.end())});
    for (int i = 1; i < num_inputs; ++i) {
      use.types.push_back({random() % 4 == 0 ? DType::kBool : dtype, random_part(shape, random)});
    }
    for (int i = 0; i < num_inputs; ++i) use.placements.push_back(random_placement(random));
    expect_reference(elementwise_kernels(), use, random);
  }
}

TEST(Elementwise, WritesOverAnInputThatDies) {
  std::mt19937 random(3);
  for (DType dtype : {DType::kF32, DType::kF16, DType::kI32}) {
    const TensorType type{dtype, {70, 333}};
    expect_reference(elementwise_kernels(),
                     {.op = Add{}, .types = {type, type}, .aliases_input = true}, random);
    expect_reference(
        elementwise_kernels(),
        {.op = Mul{}, .types = {type, {dtype, {333}}}, .tolerance = 1e-3, .aliases_input = true},
        random);
  }
  const TensorType type{DType::kF32, {2, 5000}};
  expect_reference(
      elementwise_kernels(),
      {.op = Swiglu{}, .types = {type, type}, .tolerance = 1e-6, .aliases_input = true}, random);
}

TEST(Elementwise, HandlesEmptyAndScalarTensors) {
  std::mt19937 random(4);
  expect_reference(elementwise_kernels(),
                   {.op = Add{}, .types = {{DType::kF32, {0, 5}}, {DType::kF32, {1, 5}}}}, random);
  expect_reference(elementwise_kernels(), {.op = Exp{}, .types = {{DType::kF32, {}}}}, random);
}

TEST(Elementwise, ComparesUnsignedAsUnsigned) {
  Operand a = make_operand(DType::kU64, {2}, fill(DType::kU64, {2}, {0, 5}).bytes);
  Operand b = a;
  const uint64_t large[] = {~uint64_t{0}, uint64_t{1} << 63};
  std::memcpy(b.storage.data(), large, sizeof(large));
  const TensorType type{DType::kU64, {2}};
  const KernelResult result =
      run_kernel(elementwise_kernels(), {.op = Less{}, .types = {type, type}, .inputs = {a, b}});
  EXPECT_EQ(result.reference(0).integers, (std::vector<int64_t>{1, 1}));
}

// The 16-bit float nearest to a positive value, ties to even: the best of the neighbours of a
// guess.
double round_once(DType dtype, double value) {
  const bool is_f16 = dtype == DType::kF16;
  const float near = static_cast<float>(value);
  const int guess = is_f16 ? f32_to_f16_portable(near) : f32_to_bf16(near);
  double best = 0;
  double best_distance = std::numeric_limits<double>::infinity();
  for (int bits : {guess - 1, guess, guess + 1}) {
    if (bits < 0) continue;
    const double candidate = is_f16 ? f16_to_f32_portable(static_cast<uint16_t>(bits))
                                    : bf16_to_f32(static_cast<uint16_t>(bits));
    const double distance = std::abs(candidate - value);
    if (distance < best_distance || (distance == best_distance && bits % 2 == 0)) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

// Values near the middle between two results, where f64 -> f32 -> f16 in two steps goes wrong.
TEST(Elementwise, CastRoundsF64ToHalvesOnce) {
  std::vector<double> values;
  for (int exponent = -26; exponent < 15; ++exponent) {
    for (int mantissa = 1024; mantissa < 1100; ++mantissa) {
      const double middle = std::ldexp(mantissa + 0.5, exponent - 10);
      for (double nudge : {0.0, 1e-14, -1e-14}) values.push_back(middle * (1 + nudge));
    }
  }
  const int64_t n = static_cast<int64_t>(values.size());
  std::vector<std::byte> bytes(values.size() * 8);
  std::memcpy(bytes.data(), values.data(), bytes.size());
  const TensorType type{DType::kF64, {n}};
  for (DType dtype : {DType::kF16, DType::kBF16}) {
    const KernelResult result = run_kernel(
        elementwise_kernels(),
        {.op = Cast{dtype}, .types = {type}, .inputs = {make_operand(type.dtype, {n}, bytes)}});
    const ReferenceTensor actual = result.reference(0);
    for (int64_t i = 0; i < n; ++i) {
      EXPECT_EQ(actual.floats[i], round_once(dtype, values[i])) << values[i];
    }
  }
}

TEST(Elementwise, CastStopsAtTheEndsOfIntegersAndTakesNanToZero) {
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<double> values = {std::nan(""), infinity, -infinity, 1e30,  -1e30, 2.9,
                                      -2.9,         127.5,    -128.5,    255.9, 256,   -1};
  const int64_t n = static_cast<int64_t>(values.size());
  for (DType from : {DType::kF64, DType::kF32}) {
    for (DType to : {DType::kI64, DType::kI32, DType::kI16, DType::kI8, DType::kU64, DType::kU32,
                     DType::kU16, DType::kU8, DType::kBool}) {
      const Filled filled = fill(from, {n}, values);
      const TensorType type{from, {n}};
      const Op op = Cast{to};
      const KernelResult result = run_kernel(
          elementwise_kernels(),
          {.op = op, .types = {type}, .inputs = {make_operand(from, {n}, filled.bytes)}});
      const ReferenceTensor* inputs[] = {&filled.reference};
      const ReferenceTensor expected = evaluate(op, inputs, std::span(&type, 1), {}, {})[0];
      EXPECT_EQ(result.reference(0).integers, expected.integers) << to_string(to);
    }
  }
}

TEST(Elementwise, ProgramSharesRegistersOfDeadSteps) {
  // ((((x + 1) + 1) ...: each step's tile dies at the next.
  Formula formula;
  int32_t at = formula.add({FormulaOp::input, 0});
  const int32_t one = formula.add({FormulaOp::constant, -1, -1, -1, 1.0});
  for (int i = 0; i < 20; ++i) {
    at = formula.add({FormulaOp::add, at, one});
    at = formula.add({FormulaOp::neg, at});
  }
  formula.set_result(at);
  const DType input = DType::kF32;
  const auto program =
      make_tile_program(formula, std::span(&input, 1), DType::kF32, ComputeType::kF32);
  EXPECT_EQ(program->num_registers, 3);
  EXPECT_TRUE(program->writes_output_in_place);
}

TEST(Elementwise, RefusesAFormulaWithoutMeaningOnIntegers) {
  Formula formula;
  formula.set_result(formula.add({FormulaOp::exp, formula.add({FormulaOp::input, 0})}));
  const DType input = DType::kI32;
  try {
    make_tile_program(formula, std::span(&input, 1), DType::kI32, ComputeType::kI64);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("'exp', which has no meaning on i64"));
  }
}

}  // namespace
}  // namespace rlx::cpu::testing
