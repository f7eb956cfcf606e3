#include "ir/graph.h"

#include "ir/ir_testing.h"
#include "ir/rewrite.h"

namespace rlx {
namespace {

constexpr std::string_view kText = R"(graph "g" {
  %x = input "x" : f32[4]
  %m = mark(%x) : f32[4]  @"first"
  %y = sum(%m, %x) : f32[4]
  output "y" %y
  output "m" %m
}
)";

TEST(Graph, CountsUsesByNodesAndOutputs) {
  const Graph graph = parse(kText);
  EXPECT_EQ(graph.count_uses(), (std::vector<int32_t>{2, 2, 1}));
  EXPECT_EQ(graph.list_users()[0], (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(graph.find_value("m"), ValueId{1});
  EXPECT_FALSE(graph.find_value("z").is_valid());
}

TEST(Graph, CleansNamesAndKeepsThemApart) {
  Graph graph = parse(kText);
  graph.name_value(ValueId{1}, "a b/c");
  EXPECT_EQ(graph.value(ValueId{1}).name, "a_b_c");
  graph.name_value(ValueId{1}, "x");
  EXPECT_EQ(graph.value(ValueId{1}).name, "x_1");
  EXPECT_FALSE(graph.find_value("m").is_valid());
  graph.name_value(ValueId{2}, "12");  // would read as a number: stays as it was
  EXPECT_EQ(graph.value(ValueId{2}).name, "y");
}

TEST(Builder, NamesTheSourceOfANodeThatIsRefused) {
  Graph graph("g");
  Builder builder(graph);
  const ValueId x = builder.add_input("x", {DType::kF32, {4}});
  const ValueId z = builder.add_input("z", {DType::kF32, {5}});
  builder.set_source("blk.3.add");
  const std::string error = error_of([&] { builder.add(TestSum{}, {x, z}); });
  EXPECT_EQ(error,
            "blk.3.add: op 'sum': The inputs are f32[4] and f32[5], but one type is expected.");
}

TEST(Builder, RoundsAScalarToItsDType) {
  Graph graph("g");
  Builder builder(graph);
  graph.add_output("y", builder.add_scalar(DType::kF16, 0.1));
  graph.add_output("z", builder.add_scalar(DType::kI8, -3));
  EXPECT_EQ(to_string(graph), R"(graph "g" {
  %0 = constant [0.099975586] : f16[]
  %1 = constant [-3] : i8[]
  output "y" %0
  output "z" %1
}
)");
}

TEST(Rewrite, CopiesAGraphAsItIs) {
  const Graph graph = parse(kText);
  EXPECT_EQ(to_string(rewrite_graph(graph, [](Rewriter&, const Node&) { return false; })), kText);
}

TEST(Rewrite, PutsANewValueInThePlaceOfAnOldOne) {
  const Graph graph = rewrite_graph(parse(kText), [](Rewriter& rewriter, const Node& node) {
    if (!node.op.is<TestMark>()) return false;
    const ValueId x = rewriter.map(node.inputs[0]);
    rewriter.replace(node.outputs[0], rewriter.builder().add(TestSum{}, {x, x}));
    return true;
  });
  EXPECT_EQ(to_string(graph), R"(graph "g" {
  %x = input "x" : f32[4]
  %m = sum(%x, %x) : f32[4]  @"first"
  %y = sum(%m, %x) : f32[4]
  output "y" %y
  output "m" %m
}
)");
}

TEST(Op, ComparesSourcesByWhatTheyName) {
  EXPECT_EQ(Op(Weight{"a"}), Op(Weight{"a"}));
  EXPECT_FALSE(Op(Weight{"a"}) == Op(Weight{"b"}));
  EXPECT_FALSE(Op(Weight{"a"}) == Op(State{"a"}));
  const auto make = [](int value) {
    return Op(Constant{std::make_shared<ConstantData>(ConstantData{{std::byte(value)}})});
  };
  EXPECT_EQ(make(1), make(1));
  EXPECT_FALSE(make(1) == make(2));
}

TEST(Op, ComparesAttributes) {
  EXPECT_EQ(Op(TestMark{.count = 4}), Op(TestMark{.count = 4}));
  EXPECT_FALSE(Op(TestMark{.count = 4}) == Op(TestMark{}));
  EXPECT_FALSE(Op(TestMark{}) == Op(TestSplit{}));
}

TEST(Op, ListsItsDimensionsInTheOrderOfTheFields) {
  const Dim n = Dim::symbol("n");
  const std::vector<Dim> dims = Op(TestMark{.extent = n + 1, .shape = {2, n}}).list_dims();
  EXPECT_EQ(dims, (std::vector<Dim>{n + 1, 2, n}));
}

}  // namespace
}  // namespace rlx
