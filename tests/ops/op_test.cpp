// What holds for every op on the reference: inference agrees with the actual shapes, graphs print
// and parse back, formulas agree with the scalar functions, decompositions agree with plain loops,
// and bad samples are refused with their message.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/text.h"
#include "ir/verify.h"
#include "op_driver.h"
#include "ops/evaluate.h"
#include "ops/registry.h"
#include "plain_loops.h"

namespace rlx {
namespace {

class EveryOp : public testing::TestWithParam<const OpKind*> {
 protected:
  const OpKind& kind() const { return *GetParam(); }
};

std::string name_of(const testing::TestParamInfo<const OpKind*>& info) {
  return std::string(info.param->name);
}

INSTANTIATE_TEST_SUITE_P(Reference, EveryOp,
                         testing::ValuesIn(all_ops().kinds().begin(), all_ops().kinds().end()),
                         name_of);

TEST_P(EveryOp, InfersTheShapesThatTheReferenceGives) {
  for (const OpCase& op_case : make_op_cases(kind())) {
    SCOPED_TRACE(op_case.description);
    const OpOutputs outputs = run_reference(op_case);
    for (const GraphOutput& output : op_case.graph.outputs()) {
      const TensorType& type = op_case.graph.type(output.value);
      const ReferenceTensor& actual = outputs.at(output.name);
      std::vector<int64_t> expected;
      for (const Dim& extent : type.shape) {
        expected.push_back(extent.evaluate(op_case.graph.symbols(), op_case.sample.symbol_values));
      }
      EXPECT_EQ(actual.dtype, type.dtype);
      EXPECT_EQ(actual.shape, expected);
      const size_t held = actual.holds_floats() ? actual.floats.size() : actual.integers.size();
      EXPECT_EQ(static_cast<int64_t>(held), actual.num_elements());
    }
  }
}

TEST_P(EveryOp, PrintsAndParsesBackToItself) {
  for (const OpCase& op_case : make_op_cases(kind())) {
    const std::string text = to_string(op_case.graph);
    SCOPED_TRACE(text);
    verify(op_case.graph);
    const Graph parsed = parse_graph(text);
    EXPECT_EQ(to_string(parsed), text);
    EXPECT_EQ(parsed.nodes().back().op, *op_case.sample.op);
  }
}

TEST_P(EveryOp, HasAFormulaThatAgreesWithItsScalarFunctions) {
  if (kind().meaning != Meaning::kScalar) GTEST_SKIP() << "the op has no formula";
  const std::vector<double> points = {-2.5, -1, -0.0, 0.5, 1, 3.25};
  for (const Sample& sample : kind().samples()) {
    const int count = static_cast<int>(sample.inputs.size());
    const Op& op = *sample.op;
    const Formula formula = op.formula(count);
    EXPECT_EQ(to_string(parse_formula(to_string(formula))), to_string(formula));
    EXPECT_LE(formula.num_inputs(), count);
    for (size_t n = 0; n < points.size() * points.size(); ++n) {
      std::vector<double> x;
      std::vector<int64_t> whole;
      for (int i = 0; i < count; ++i) {
        x.push_back(points[(i == 0 ? n : n / points.size() + i) % points.size()]);
        whole.push_back(static_cast<int64_t>(x.back()));
      }
      const double expected = kind().scalar_double(op.attributes(), x.data());
      const double actual = evaluate(formula, x.data());
      EXPECT_TRUE(actual == expected || (std::isnan(actual) && std::isnan(expected)))
          << op.name() << " at " << x[0] << ": " << actual << " against " << expected;
      if (kind().scalar_int == nullptr || is_float(sample.inputs.back().type.dtype)) continue;
      EXPECT_EQ(kind().scalar_int(op.attributes(), whole.data()), evaluate(formula, whole.data()))
          << op.name() << " at " << whole[0];
    }
  }
}

TEST_P(EveryOp, AgreesWithPlainLoopsWhereItIsADecomposition) {
  if (kind().meaning != Meaning::kDecompose) GTEST_SKIP() << "the op is not a decomposition";
  for (const OpCase& op_case : make_op_cases(kind())) {
    SCOPED_TRACE(op_case.description);
    ASSERT_TRUE(has_plain_loops(*op_case.sample.op));
    std::vector<ReferenceTensor> inputs;
    for (size_t i = 0; i < op_case.sample.inputs.size(); ++i) {
      inputs.push_back(op_case.inputs.at(fmt::format("i{}", i)).values);
    }
    const std::vector<ReferenceTensor> expected = compute_plainly(*op_case.sample.op, inputs);
    const OpOutputs actual = run_reference(op_case);
    ASSERT_EQ(actual.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(compare(expected[i], actual.at(fmt::format("o{}", i)), choose_tolerance(op_case)),
                "");
    }
  }
}

TEST_P(EveryOp, RefusesItsBadSamplesWithTheirMessage) {
  SymbolTable symbols;
  for (const BadSample& sample : kind().bad_samples()) {
    try {
      sample.op->infer(sample.inputs, symbols);
      ADD_FAILURE() << "no error where '" << sample.message << "' is expected";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      EXPECT_THAT(error.what(), testing::HasSubstr(sample.message));
      EXPECT_THAT(error.what(), testing::HasSubstr(fmt::format("op '{}'", kind().name)));
    }
  }
}

// The reference as a backend: what a backend of any kind looks like to the driver.
class ReferenceBackend final : public OpBackend {
 public:
  std::string name() const override { return "reference"; }
  std::string explain_unsupported(const Op&, std::span<const TensorType>) const override {
    return "";
  }
  OpOutputs run(const Graph& graph, const OpInputs& inputs,
                std::span<const int64_t> symbol_values) override {
    OpCase op_case{{}, DType::kF32, graph, inputs, ""};
    op_case.sample.symbol_values.assign(symbol_values.begin(), symbol_values.end());
    return run_reference(op_case);
  }
};

TEST_P(EveryOp, RunsOnABackendThroughTheDriver) {
  ReferenceBackend backend;
  EXPECT_GE(check_backend(kind(), backend), 2);
}

TEST(OpDriver, TellsTensorsApart) {
  ReferenceTensor a = make_reference_tensor(DType::kF32, {2});
  a.floats = {1, 100};
  ReferenceTensor b = a;
  b.floats[0] = 1.0005;
  EXPECT_EQ(compare(a, b, 1e-5), "");
  EXPECT_THAT(compare(a, b, 1e-6), testing::HasSubstr("element 0 is 1.0005, but 1 is expected"));
  b.floats[0] = std::nan("");
  EXPECT_NE(compare(a, b, 1), "");
  b.shape = {1, 2};
  EXPECT_THAT(compare(a, b, 1), testing::HasSubstr("f32[2] is expected, but f32[1, 2] comes"));
}

}  // namespace
}  // namespace rlx
