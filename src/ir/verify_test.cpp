#include "ir/verify.h"

#include <gmock/gmock.h>

#include "ir/ir_testing.h"

namespace rlx {
namespace {

using testing::HasSubstr;

const TensorType kFour{DType::kF32, {4}};

// A graph with the input %x: f32[4].
Graph make_graph() {
  Graph graph("g");
  Builder(graph).add_input("x", kFour);
  return graph;
}

void expect_broken(const Graph& graph, std::string_view rule, std::string_view message) {
  const std::string error = error_of([&] { verify(graph); });
  EXPECT_THAT(error, HasSubstr(fmt::format("breaks rule {}", rule)));
  EXPECT_THAT(error, HasSubstr(message));
}

TEST(Verify, AcceptsAWholeGraph) {
  EXPECT_NO_THROW(verify(parse(R"(graph "g" (n <= 8) {
    %x = input "x" : f32[n]
    %c = constant [1, 2] : f32[2]
    %a, %b = split(%x) : f32[n], i64[]
    output "a" %a
    output "b" %b
    output "c" %c
  })")));
}

TEST(Verify, V1TheGraphRefusesAnInputThatIsNotDefined) {
  Graph graph = make_graph();
  EXPECT_DEATH(graph.append(TestMark{}, {ValueId{1}}, {kFour}), "internal error");
  EXPECT_DEATH(graph.append(TestMark{}, {ValueId{}}, {kFour}), "internal error");
}

TEST(Verify, V2FindsATypeThatIsNotInferred) {
  Graph graph = make_graph();
  graph.append(TestMark{}, {ValueId{0}}, {{DType::kF32, {5}}}, "blk.0");
  expect_broken(graph, "V2", "at op 'mark' of 'blk.0', output 0 is f32[5], but f32[4]");
}

TEST(Verify, V2FindsAMissingOutput) {
  Graph graph = make_graph();
  graph.append(TestSplit{}, {ValueId{0}}, {kFour});
  expect_broken(graph, "V2", "it has 1 outputs, but 2 are inferred");
}

TEST(Verify, V3FindsTooFewAndTooManyInputs) {
  Graph few = make_graph();
  few.append(TestSum{}, {ValueId{0}}, {kFour});
  expect_broken(few, "V3", "it has 1 inputs");
  Graph many = make_graph();
  many.append(TestMark{}, {ValueId{0}, ValueId{0}}, {kFour});
  expect_broken(many, "V3", "it has 2 inputs");
}

TEST(Verify, V4TheGraphKeepsNamesApart) {
  Graph graph = make_graph();
  Builder builder(graph);
  const ValueId second = builder.add(TestMark{}, {ValueId{0}}, "x");
  EXPECT_EQ(graph.value(second).name, "x_1");
  graph.add_output("y", second);
  EXPECT_THAT(error_of([&] { graph.add_output("y", second); }),
              HasSubstr("already has an output 'y'"));
  EXPECT_NO_THROW(verify(graph));
}

TEST(Verify, V5TheGraphRefusesAnOutputThatIsNoValue) {
  Graph graph = make_graph();
  EXPECT_DEATH(graph.add_output("y", ValueId{7}), "internal error");
}

TEST(Verify, V6FindsASymbolThatIsNotDeclared) {
  Graph graph("g");
  Builder(graph).add_input("x", {DType::kF32, {Dim::symbol("tokens")}});
  expect_broken(graph, "V6", "symbol 'tokens' is not declared");
}

TEST(Verify, V6FindsANegativeExtent) {
  Graph graph("g");
  Builder(graph).add_input("x", {DType::kF32, {-1}});
  expect_broken(graph, "V6", "an extent is -1");
}

TEST(Verify, V7FindsAConstantOfTheWrongSize) {
  Graph graph("g");
  Builder(graph).add_constant(kFour, std::vector<std::byte>(15));
  expect_broken(graph, "V7", "the constant has 15 bytes, but its type takes 16");
  Graph empty("g");
  empty.append(Constant{}, {}, {kFour});
  expect_broken(empty, "V7", "the constant has 0 bytes");
}

}  // namespace
}  // namespace rlx
