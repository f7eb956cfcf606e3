// The worked example of docs/adding_an_op.md, compiled and run, so that the page stays true.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "ir/op_kind.h"
#include "ir/text.h"
#include "op_driver.h"
#include "ops/evaluate.h"
#include "ops/infer.h"
#include "ops/reference_loops.h"
#include "ops/samples.h"

namespace rlx {
namespace {

// Moves each element `shift` places along the axis, around the end; a negative shift moves to the
// front.
struct Roll {
  static constexpr std::string_view kName = "roll";
  static constexpr Arity kArity{1, 1};
  int64_t shift = 1;
  int64_t axis = 0;
  template <typename F>
  void fields(F&& field) {
    field("shift", shift);
    field("axis", axis);
  }
  std::vector<TensorType> infer(const InferContext& context) const;
  void reference(const ReferenceContext& context) const;
  static std::vector<Sample> samples();
  static std::vector<BadSample> bad_samples();
};

std::vector<TensorType> Roll::infer(const InferContext& context) const {
  check_plain(context, 0);
  normalise_axis(context, axis, context.input(0).rank());
  return {context.input(0)};
}

void Roll::reference(const ReferenceContext& context) const {
  const ReferenceTensor& x = context.input(0);
  const AxisSplit split = split_at_axis(x.shape, wrap_axis(axis, static_cast<int>(x.shape.size())));
  for (int64_t o = 0; o < split.outer; ++o) {
    for (int64_t e = 0; e < split.extent; ++e) {
      // C++'s % has the sign of the dividend; the second one makes it positive.
      const int64_t moved = (e + shift % split.extent + split.extent) % split.extent;
      for (int64_t i = 0; i < split.inner; ++i) {
        copy_element(x, split.index(o, e, i), context.outputs[0], split.index(o, moved, i));
      }
    }
  }
}

std::vector<Sample> Roll::samples() {
  return {
      make_sample(Roll{}, {"f32[5]"}),
      make_sample(Roll{.shift = -7, .axis = 1}, {"f32[2, 3, 4]"}),
      make_sample(Roll{.shift = 2, .axis = -1}, {"i64[2, tokens]"}, {{{"tokens", 0, 8}, 3}}),
  };
}

std::vector<BadSample> Roll::bad_samples() {
  return {make_bad_sample(Roll{.axis = 1}, {"f32[5]"}, "has axes -1 to 0")};
}

TEST(AddingAnOp, TheExampleRunsFromItsText) {
  const std::string_view text = R"(graph "g" {
  %x = input "x" : f32[5]
  %y = roll(%x) shift=2 : f32[5]
  output "y" %y
}
)";
  const OpRegistry registry({&op_kind<Roll>()});
  const Graph graph = parse_graph(text, registry);
  EXPECT_EQ(to_string(graph), text);

  const Op& op = graph.nodes().back().op;
  ReferenceTensor x = make_reference_tensor(DType::kF32, {5});
  x.floats = {1, 2, 3, 4, 5};
  const ReferenceTensor* inputs[] = {&x};
  const TensorType types[] = {{DType::kF32, {5}}};
  EXPECT_THAT(evaluate(op, inputs, types, SymbolTable{}, {})[0].floats,
              testing::ElementsAre(4, 5, 1, 2, 3));
}

TEST(AddingAnOp, TheExamplesSamplesRunAndItsBadSampleIsRefused) {
  // Two samples of f32 in four dtypes each, and one of i64.
  EXPECT_EQ(make_op_cases(op_kind<Roll>()).size(), 9u);
  for (const OpCase& op_case : make_op_cases(op_kind<Roll>())) {
    EXPECT_EQ(run_reference(op_case).size(), 1u) << op_case.description;
  }
  const BadSample bad = Roll::bad_samples()[0];
  try {
    bad.op->infer(bad.inputs, SymbolTable{});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr(bad.message));
  }
}

std::string read_without_spaces(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.is_open()) << path;
  std::stringstream text;
  text << file.rdbuf();
  std::string kept;
  for (char c : text.str()) {
    if (!std::isspace(static_cast<unsigned char>(c))) kept += c;
  }
  return kept;
}

TEST(AddingAnOp, ThePageShowsWhatIsCompiledHere) {
  const std::string page = read_without_spaces("docs/adding_an_op.md");
  const std::string source = read_without_spaces("tests/ops/adding_an_op_test.cpp");
  int blocks = 0;
  for (size_t at = page.find("```cpp"); at != std::string::npos; at = page.find("```cpp", at)) {
    at += 6;
    const std::string block = page.substr(at, page.find("```", at) - at);
    EXPECT_NE(source.find(block), std::string::npos) << block;
    at += block.size() + 3;
    ++blocks;
  }
  EXPECT_EQ(blocks, 4);
}

}  // namespace
}  // namespace rlx
