// Runs the samples of every op through the kernels and compares with the op's reference meaning.
#include <gtest/gtest.h>

#include <random>

#include "backends/cpu/kernels/kernel_tester.h"
#include "ops/evaluate.h"
#include "ops/registry.h"

namespace rlx::cpu::testing {
namespace {

std::vector<const Kernel*> list_own_kernels() {
  std::vector<const Kernel*> list;
  for (std::span<const Kernel> part :
       {elementwise_kernels(), move_kernels(), norm_kernels(), reduce_kernels(), sort_kernels()}) {
    for (const Kernel& kernel : part) list.push_back(&kernel);
  }
  return list;
}

std::vector<Kernel> find_kernels_of(std::string_view op) {
  std::vector<Kernel> kernels;
  for (const Kernel* kernel : list_own_kernels()) {
    if (kernel->op == op) kernels.push_back(*kernel);
  }
  return kernels;
}

// The sample with every f32 input turned into `dtype`; empty when infer refuses.
std::vector<TensorType> list_types(const Sample& sample, DType dtype, const SymbolTable& symbols) {
  std::vector<TensorType> types;
  for (const SampleInput& input : sample.inputs) {
    types.push_back(input.type);
    if (types.back().dtype == DType::kF32) types.back().dtype = dtype;
  }
  try {
    sample.op->infer(types, symbols);
  } catch (const Error&) {
    return {};
  }
  return types;
}

void run_sample(const Sample& sample, DType dtype, Placement placement, std::mt19937& random) {
  SymbolTable symbols;
  for (const Symbol& symbol : sample.symbols) symbols.declare(symbol);
  const std::vector<TensorType> types = list_types(sample, dtype, symbols);
  if (types.empty() && !sample.inputs.empty()) return;

  KernelUse use{.op = *sample.op, .types = types};
  use.symbols = symbols;
  use.symbol_values = sample.symbol_values;
  std::vector<ReferenceTensor> references;
  for (size_t i = 0; i < types.size(); ++i) {
    std::vector<int64_t> extents;
    for (const Dim& dim : types[i].shape) {
      extents.push_back(dim.evaluate(symbols, sample.symbol_values));
    }
    const SampleInput& input = sample.inputs[i];
    const std::vector<double> values =
        input.values.empty()
            ? random_values(random, types[i].dtype, count(extents), input.low, input.high)
            : input.values;
    const Filled filled = fill(types[i].dtype, extents, values);
    references.push_back(filled.reference);
    use.inputs.push_back(make_operand(types[i].dtype, extents, filled.bytes, placement));
  }
  const std::vector<Kernel> kernels = find_kernels_of(use.op.kind().name);
  // An operand that no kernel takes with these strides is contiguous in a program.
  std::vector<Layout> layouts;
  for (size_t i = 0; i < types.size(); ++i) layouts.push_back(layout_of(types[i], use.inputs[i]));
  const std::vector<TensorType> output_types = use.op.infer(types, symbols);
  const KernelQuery query{use.op, types, layouts, output_types, symbols, 1, false};
  if (placement != Placement::kContiguous && find_kernel(kernels, query) == nullptr) return;

  std::vector<const ReferenceTensor*> pointers;
  for (const ReferenceTensor& reference : references) pointers.push_back(&reference);
  const std::vector<ReferenceTensor> expected =
      evaluate(use.op, pointers, types, symbols, use.symbol_values);
  const KernelResult result = run_kernel(kernels, use);
  ASSERT_EQ(result.error, KernelError::kNone);
  ASSERT_EQ(result.outputs.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    double tolerance = sample.tolerance;
    if (dtype != DType::kF32) tolerance = std::max(rounding_of(dtype), 1e-9);
    if (dtype == DType::kF16 || dtype == DType::kBF16) tolerance *= 2;
    expect_near(result.reference(static_cast<int>(i)), expected[i], tolerance);
  }
}

TEST(Kernels, AgreeWithTheReferenceOnEverySample) {
  std::mt19937 random(7);
  int num_ops = 0;
  for (const OpKind* kind : all_ops().kinds()) {
    if (kind->samples == nullptr || find_kernels_of(kind->name).empty()) continue;
    ++num_ops;
    const std::vector<Sample> samples = kind->samples();
    EXPECT_FALSE(samples.empty()) << kind->name;
    for (size_t i = 0; i < samples.size(); ++i) {
      for (DType dtype : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16}) {
        if (dtype != DType::kF32 && !samples[i].vary_dtype) continue;
        for (Placement placement : kPlacements) {
          SCOPED_TRACE(fmt::format("{} sample {} {} placement {}", kind->name, i, to_string(dtype),
                                   static_cast<int>(placement)));
          run_sample(samples[i], dtype, placement, random);
        }
      }
    }
  }
  EXPECT_GT(num_ops, 60);
}

TEST(Kernels, HaveUniqueNames) {
  const std::vector<const Kernel*> kernels = list_own_kernels();
  for (size_t i = 0; i < kernels.size(); ++i) {
    EXPECT_NE(all_ops().find(kernels[i]->op), nullptr) << kernels[i]->op;
    for (size_t k = 0; k < i; ++k) EXPECT_NE(kernels[i]->name, kernels[k]->name);
  }
}

}  // namespace
}  // namespace rlx::cpu::testing
