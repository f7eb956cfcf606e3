// Graphs by hand, as the installed API offers them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "rlx/rlx.h"

namespace {

using rlx::Array;
using rlx::Error;
using rlx::ErrorCode;
using rlx::Executable;
using rlx::GraphBuilder;
using testing::ElementsAre;
using testing::HasSubstr;

using Inputs = std::map<std::string, Array>;

Array floats(std::vector<int64_t> shape, std::vector<float> values) {
  return Array::from_floats(std::move(shape), values);
}

Array ints(std::vector<int64_t> shape, std::vector<int64_t> values) {
  return Array::from_ints(std::move(shape), values);
}

template <typename Call>
void expect_error(ErrorCode code, const std::string& words, Call&& call) {
  try {
    call();
    ADD_FAILURE() << "No error, but expected: " << words;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_THAT(error.what(), HasSubstr(words));
  }
}

// y = x * 2 over f32[n, 2], n from 1 to 4.
GraphBuilder make_doubling() {
  GraphBuilder graph("doubling");
  graph.symbol("n", 4);
  const auto x = graph.input("x", "f32[n, 2]");
  graph.output("y", graph.op("add", {x, x}));
  return graph;
}

TEST(Array, HoldsValuesByTypeAndShape) {
  const Array array = floats({2, 1}, {1, 2});
  EXPECT_EQ(array.dtype, rlx::DType::kF32);
  EXPECT_THAT(array.shape, ElementsAre(2, 1));
  EXPECT_THAT(array.floats(), ElementsAre(1, 2));
  EXPECT_THAT(ints({1}, {-3}).ints(), ElementsAre(-3));
  expect_error(ErrorCode::kInvalidArgument, "holds f32", [&] { array.ints(); });
  expect_error(ErrorCode::kInvalidArgument, "3 values are given for a shape of 4", [] {
    floats({2, 2}, {1, 2, 3});
  });
}

TEST(Executable, RunsWithEverySizeUpToTheBound) {
  Executable executable = make_doubling().compile();
  EXPECT_THAT(executable.run({{"x", floats({1, 2}, {1, 2})}}).at("y").floats(), ElementsAre(2, 4));
  const Inputs rows = {{"x", floats({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8})}};
  const Array y = executable.run(rows).at("y");
  EXPECT_THAT(y.shape, ElementsAre(4, 2));
  EXPECT_THAT(y.floats(), ElementsAre(2, 4, 6, 8, 10, 12, 14, 16));
  EXPECT_THAT(executable.run({{"x", floats({1, 2}, {-1, 0})}}).at("y").floats(),
              ElementsAre(-2, 0));
}

TEST(Executable, NamesTheInputThatDoesNotFit) {
  Executable executable = make_doubling().compile({.threads = 1});
  const auto expect_refused = [&](ErrorCode code, const std::string& words, const Inputs& inputs) {
    expect_error(code, words, [&] { executable.run(inputs); });
  };
  expect_refused(ErrorCode::kInvalidArgument, "'x' is missing", {});
  expect_refused(ErrorCode::kNotFound, "'z'",
                 {{"x", floats({1, 2}, {1, 2})}, {"z", floats({1}, {1})}});
  expect_refused(ErrorCode::kInvalidArgument, "i64[1, 2], but f32[n, 2]",
                 {{"x", ints({1, 2}, {1, 2})}});
  expect_refused(ErrorCode::kInvalidArgument, "f32[2], but f32[n, 2]",
                 {{"x", floats({2}, {1, 2})}});
  expect_refused(ErrorCode::kInvalidArgument, "[1, 3], but [1, 2]",
                 {{"x", floats({1, 3}, {1, 2, 3})}});
  expect_refused(ErrorCode::kOutOfRange, "'n' is 5, but 1 to 4",
                 {{"x", floats({5, 2}, std::vector<float>(10))}});
  expect_refused(ErrorCode::kOutOfRange, "'n' is 0, but 1 to 4", {{"x", floats({0, 2}, {})}});
  Array cut = floats({1, 2}, {1, 2});
  cut.bytes.pop_back();
  expect_refused(ErrorCode::kInvalidArgument, "7 bytes", {{"x", cut}});
  // Still usable.
  EXPECT_THAT(executable.run({{"x", floats({1, 2}, {1, 2})}}).at("y").floats(), ElementsAre(2, 4));
}

TEST(Executable, RefusesInputsThatGiveASymbolTwoValues) {
  GraphBuilder graph;
  graph.symbol("n", 4);
  const auto a = graph.input("a", "f32[n]");
  const auto b = graph.input("b", "f32[n]");
  graph.output("sum", graph.op("add", {a, b}));
  Executable executable = graph.compile();
  EXPECT_THAT(
      executable.run({{"a", floats({2}, {1, 2})}, {"b", floats({2}, {3, 4})}}).at("sum").floats(),
      ElementsAre(4, 6));
  expect_error(ErrorCode::kInvalidArgument, "shape", [&] {
    executable.run({{"a", floats({2}, {1, 2})}, {"b", floats({1}, {3})}});
  });
}

TEST(Executable, NeedsAShapeThatGivesEachSymbolItsValue) {
  GraphBuilder graph;
  graph.symbol("n", 4);
  const auto x = graph.input("x", "f32[2 * n]");
  graph.output("y", graph.op("neg", {x}));
  Executable executable = graph.compile();
  expect_error(ErrorCode::kInvalidArgument, "symbol 'n'", [&] {
    executable.run({{"x", floats({4}, {1, 2, 3, 4})}});
  });
}

TEST(Executable, KeepsItsStatesFromRunToRun) {
  GraphBuilder graph("append");
  graph.symbol("n", 2);
  graph.symbol("past", 3, 0);
  const auto x = graph.input("x", "f32[1, n, 1, 2]");
  graph.input("before", "f32[past]");  // gives `past` its value
  const auto cache = graph.state("cache", "f32[1, 4, 1, 2]");
  const auto all = graph.op("cache_append", {cache, x}, "row=(past)");
  graph.output("sums", graph.op("reduce_sum", {all}, "axes=[3]"));
  Executable executable = graph.compile();
  const auto run = [&](int64_t past, std::vector<float> rows) {
    const auto n = static_cast<int64_t>(rows.size()) / 2;
    return executable.run({{"x", floats({1, n, 1, 2}, std::move(rows))},
                           {"before", floats({past}, std::vector<float>(past))}});
  };
  EXPECT_THAT(run(0, {1, 2, 3, 4}).at("sums").floats(), ElementsAre(3, 7));
  EXPECT_THAT(run(2, {5, 6}).at("sums").floats(), ElementsAre(3, 7, 11));
  EXPECT_THAT(run(3, {7, 8}).at("sums").floats(), ElementsAre(3, 7, 11, 15));
  // One row too many.
  expect_error(ErrorCode::kOutOfRange, "cache", [&] { run(3, {1, 1, 1, 1}); });
  EXPECT_THAT(run(1, {0, 0}).at("sums").floats(), ElementsAre(3, 0));
}

TEST(Executable, ReportsAnIndexOutsideItsTable) {
  GraphBuilder graph;
  const auto table = graph.constant(floats({2, 1}, {10, 20}));
  graph.output("row", graph.op("gather", {table, graph.input("index", "i64[1]")}, "axis=0"));
  Executable executable = graph.compile();
  EXPECT_THAT(executable.run({{"index", ints({1}, {1})}}).at("row").floats(), ElementsAre(20));
  expect_error(ErrorCode::kOutOfRange, "index", [&] {
    executable.run({{"index", ints({1}, {2})}});
  });
  EXPECT_THAT(executable.run({{"index", ints({1}, {0})}}).at("row").floats(), ElementsAre(10));
}

TEST(Executable, GivesOutInputsConstantsAndTheSameValueTwice) {
  GraphBuilder graph;
  const auto x = graph.input("x", "f32[2]");
  graph.output("x again", x);
  graph.output("constant", graph.constant(ints({}, {7})));
  const auto y = graph.op("neg", {x});
  graph.output("y", y);
  graph.output("y too", y);
  auto outputs = graph.compile().run({{"x", floats({2}, {1, 2})}});
  EXPECT_THAT(outputs.at("x again").floats(), ElementsAre(1, 2));
  EXPECT_THAT(outputs.at("constant").ints(), ElementsAre(7));
  EXPECT_TRUE(outputs.at("constant").shape.empty());
  EXPECT_THAT(outputs.at("y").floats(), ElementsAre(-1, -2));
  EXPECT_THAT(outputs.at("y too").floats(), ElementsAre(-1, -2));
}

TEST(Executable, RunsWithNoElementsAtAll) {
  GraphBuilder graph;
  graph.symbol("n", 3, 0);
  const auto x = graph.input("x", "f32[n]");
  graph.output("y", graph.op("exp", {x}));
  graph.output("sum", graph.op("reduce_sum", {x}, "axes=[0]"));
  Executable executable = graph.compile();
  const auto outputs = executable.run({{"x", floats({0}, {})}});
  EXPECT_THAT(outputs.at("y").shape, ElementsAre(0));
  EXPECT_THAT(outputs.at("sum").floats(), ElementsAre(0));
}

TEST(Executable, HasAPlanAndAListing) {
  const Executable executable = make_doubling().compile();
  EXPECT_GT(executable.plan_report().arena_bytes, 0);
  EXPECT_EQ(executable.plan_report().segment("state").size_bytes, 0);
  EXPECT_THAT(executable.listing(), HasSubstr("add"));
}

TEST(Executable, OutlivesItsBuilderAndMoves) {
  Executable first = make_doubling().compile();
  Executable second = std::move(first);
  EXPECT_THAT(second.run({{"x", floats({1, 2}, {1, 2})}}).at("y").floats(), ElementsAre(2, 4));
}

TEST(Executable, IsMadeManyTimesFromOneBuilder) {
  const GraphBuilder graph = make_doubling();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&graph, i] {
      Executable executable = graph.compile({.threads = 1});
      const float x = static_cast<float>(i);
      EXPECT_THAT(executable.run({{"x", floats({1, 2}, {x, 1})}}).at("y").floats(),
                  ElementsAre(2 * x, 2));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(GraphBuilder, ReturnsEveryOutputOfAnOp) {
  GraphBuilder graph;
  const auto x = graph.input("x", "f32[4]");
  const auto best = graph.ops("top_k", {x}, "k=2");
  ASSERT_EQ(best.size(), 2u);
  graph.output("values", best[0]);
  graph.output("indices", best[1]);
  const auto outputs = graph.compile().run({{"x", floats({4}, {3, 9, 1, 5})}});
  EXPECT_THAT(outputs.at("values").floats(), ElementsAre(9, 5));
  EXPECT_THAT(outputs.at("indices").ints(), ElementsAre(1, 3));
  expect_error(ErrorCode::kInvalidArgument, "'top_k' has 2 outputs",
               [&] { graph.op("top_k", {x}, "k=2"); });
}

TEST(GraphBuilder, NamesWhatIsWrongWithAnOp) {
  GraphBuilder graph;
  const auto x = graph.input("x", "f32[2, 3]");
  const auto refuse = [&](ErrorCode code, const std::string& words, std::string_view op,
                          const std::vector<GraphBuilder::Ref>& inputs,
                          std::string_view attributes = "") {
    expect_error(code, words, [&] { graph.op(op, inputs, attributes); });
  };
  refuse(ErrorCode::kNotFound, "'frobnicate'", "frobnicate", {x});
  refuse(ErrorCode::kInvalidArgument, "'axle'", "softmax", {x}, "axle=1");
  refuse(ErrorCode::kInvalidArgument, "softmax", "softmax", {x}, "axis=2");
  refuse(ErrorCode::kInvalidArgument, "softmax", "softmax", {x, x});
  refuse(ErrorCode::kInvalidArgument, "add", "add", {x});
  refuse(ErrorCode::kInvalidArgument, "matmul", "matmul", {x, x});
  refuse(ErrorCode::kInvalidArgument, "reference 99", "neg", {{99}});
  refuse(ErrorCode::kInvalidArgument, "reference -1", "neg", {{}});
  // What was refused leaves no trace.
  graph.output("y", graph.op("neg", {x}));
  EXPECT_THAT(graph.compile().run({{"x", floats({2, 3}, {1, 2, 3, 4, 5, 6})}}).at("y").floats(),
              ElementsAre(-1, -2, -3, -4, -5, -6));
}

TEST(GraphBuilder, NamesWhatIsWrongWithATypeOrASymbol) {
  GraphBuilder graph;
  const auto refuse_type = [&](std::string_view type) {
    EXPECT_THROW(graph.input("x", type), Error) << type;
  };
  for (const std::string_view type : {"", "f32", "f33[2]", "f32[", "f32[2", "f32[2]]", "f32[a b]",
                                      "f32[-1]", "f32[9999999999999999999999]", "q8_0[33]"}) {
    refuse_type(type);
  }
  expect_error(ErrorCode::kNotFound, "'m'", [&] { graph.input("x", "f32[m]"); });
  expect_error(ErrorCode::kInvalidArgument, "3 to 2", [&] { graph.symbol("n", 2, 3); });
  expect_error(ErrorCode::kInvalidArgument, "-1", [&] { graph.symbol("n", 2, -1); });
  graph.symbol("n", 2);
  graph.symbol("n", 2);
  expect_error(ErrorCode::kInvalidArgument, "declared twice", [&] { graph.symbol("n", 3); });
  for (const char* name : {"", "a b", "1", "a-b", "a\"", "2n"}) {
    EXPECT_THROW(graph.symbol(name, 3), Error) << name;
  }
}

TEST(GraphBuilder, RefusesAnOutputNameTwice) {
  GraphBuilder graph = make_doubling();
  const auto z = graph.input("z", "f32[1]");
  expect_error(ErrorCode::kInvalidArgument, "'y'", [&] { graph.output("y", z); });
}

TEST(GraphBuilder, RefusesAnInputNameTwice) {
  GraphBuilder graph = make_doubling();
  EXPECT_THROW(
      {
        graph.output("z", graph.input("x", "f32[1]"));
        graph.compile();
      },
      Error);
}

TEST(GraphBuilder, RefusesAConstantWhoseBytesDoNotFit) {
  GraphBuilder graph;
  Array array = floats({2}, {1, 2});
  array.bytes.resize(7);
  expect_error(ErrorCode::kInvalidArgument, "7 bytes", [&] { graph.constant(array); });
  array.bytes.resize(8);
  array.shape = {-2};
  EXPECT_THROW(graph.constant(array), Error);
  EXPECT_THROW(floats({-1, -1}, {1}), Error);
}

TEST(GraphBuilder, CannotCompileWhatReadsAModelFile) {
  const GraphBuilder graph = GraphBuilder::parse(R"(graph "g" {
  %w = weight "blk.0.w" : f32[2]
  output "w" %w
}
)");
  expect_error(ErrorCode::kUnsupported, "'blk.0.w'", [&] { graph.compile(); });
}

TEST(GraphBuilder, NeedsAnOutputToCompile) {
  GraphBuilder graph;
  graph.input("x", "f32[1]");
  EXPECT_TRUE(graph.compile().run({{"x", floats({1}, {1})}}).empty());
}

TEST(GraphBuilder, RefusesThreadsThatMakeNoSense) {
  const GraphBuilder graph = make_doubling();
  expect_error(ErrorCode::kInvalidArgument, "threads", [&] { graph.compile({.threads = -1}); });
  expect_error(ErrorCode::kInvalidArgument, "threads", [&] { graph.compile({.threads = 5000}); });
}

TEST(GraphBuilder, PrintsATextThatReadsBackToTheSameGraph) {
  GraphBuilder graph("all kinds");
  graph.symbol("n", 4);
  graph.symbol("past", 12, 0);
  const auto x = graph.input("x", "f32[1, n, 2, 4]");
  graph.input("before", "f32[past]");
  const auto cache = graph.state("cache", "f16[1, 16, 2, 4]");
  const auto half = graph.constant(floats({}, {0.5f}));
  const auto scaled = graph.op("mul", {x, half});
  const auto all = graph.op("cache_append", {cache, scaled}, "row=(past)");
  graph.output("attended", graph.op("attention", {x, all, all}, "scale=0.25"));
  graph.output("sums", graph.op("reduce_sum", {x}, "axes=[1, 2] keep_dims=true"));
  const std::string text = graph.to_text();
  EXPECT_EQ(GraphBuilder::parse(text).to_text(), text);
  EXPECT_THAT(text, HasSubstr("1 <= n <= 4, past <= 12"));

  // And computes the same.
  const Inputs inputs = {{"x", floats({1, 1, 2, 4}, {1, 2, 3, 4, 5, 6, 7, 8})},
                         {"before", floats({0}, {})}};
  const auto expected = graph.compile().run(inputs);
  const auto again = GraphBuilder::parse(text).compile().run(inputs);
  for (const auto& [name, array] : expected) EXPECT_EQ(again.at(name).bytes, array.bytes) << name;
}

TEST(GraphBuilder, NamesTheLineThatItCannotRead) {
  expect_error(ErrorCode::kInvalidArgument, "line 2",
               [] { GraphBuilder::parse("graph \"g\" {\n  %x = neg(%y) : f32[2]\n}\n"); });
  expect_error(ErrorCode::kInvalidArgument, "line 3", [] {
    GraphBuilder::parse("graph \"g\" {\n  %x = input \"x\" : f32[2]\n  %y = neg(%x) : f32[3]\n}\n");
  });
  for (const char* text : {"", "graph", "graph \"g\" {", "graph \"g\" {}}"}) {
    EXPECT_THROW(GraphBuilder::parse(text), Error) << text;
  }
}

TEST(DType, IsReadByItsName) {
  for (int i = 0; i < rlx::kNumDTypes; ++i) {
    const auto dtype = static_cast<rlx::DType>(i);
    rlx::DType again = rlx::DType::kBool;
    EXPECT_TRUE(parse_dtype(to_string(dtype), again));
    EXPECT_EQ(again, dtype);
  }
  rlx::DType dtype = rlx::DType::kBool;
  EXPECT_FALSE(rlx::parse_dtype("F32", dtype));
  EXPECT_FALSE(rlx::parse_dtype("", dtype));
}

TEST(Error, PutsWhereItHappenedInFront) {
  Error error(ErrorCode::kCorruptData, "It is broken.");
  EXPECT_STREQ(error.what(), "It is broken.");
  error.add_context("tensor 'x'");
  error.add_context("model.gguf");
  EXPECT_STREQ(error.what(), "model.gguf: tensor 'x': It is broken.");
  EXPECT_EQ(error.message(), "It is broken.");
  EXPECT_THAT(error.context(), ElementsAre("model.gguf", "tensor 'x'"));
  EXPECT_STREQ(to_string(error.code()), "corrupt data");
}

}  // namespace
