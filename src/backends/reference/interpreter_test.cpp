#include "backends/reference/interpreter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/registry.h"

namespace rlx {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

ReferenceTensor floats(std::vector<int64_t> shape, std::vector<double> values) {
  ReferenceTensor tensor = make_reference_tensor(DType::kF32, std::move(shape));
  tensor.floats = std::move(values);
  return tensor;
}

std::string run_error(Interpreter& interpreter, const Interpreter::Tensors& inputs,
                      std::vector<int64_t> symbol_values = {}) {
  try {
    interpreter.run(inputs, symbol_values);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Interpreter, RunsANodeOfEachSource) {
  Interpreter interpreter(parse_graph(R"(graph "g" (tokens <= 8) {
    %x = input "x" : f32[tokens, 2]
    %w = weight "w" : f32[3, 2]
    %one = constant [1] : f32[]
    %y = matmul(%x, %w) transpose_b=true : f32[tokens, 3]
    %z = add(%y, %one) : f32[tokens, 3]
    output "z" %z
    output "w" %w
  })"),
                          [](const std::string& name, const TensorType&) {
                            EXPECT_EQ(name, "w");
                            return floats({3, 2}, {1, 0, 0, 1, 1, 1});
                          });
  const int64_t tokens[] = {2};
  const auto outputs = interpreter.run({{"x", floats({2, 2}, {1, 2, 3, 4})}}, tokens);
  EXPECT_THAT(outputs.at("z").floats, ElementsAre(2, 3, 4, 4, 5, 8));
  EXPECT_THAT(outputs.at("w").floats, ElementsAre(1, 0, 0, 1, 1, 1));
}

TEST(Interpreter, KeepsStatesFromRunToRun) {
  Interpreter interpreter(parse_graph(R"(graph "g" (past <= 4, tokens <= 4) {
    %x = input "x" : f32[tokens]
    %cache = state "cache" : f16[4]
    %rows = cache_append(%cache, %x) row=(past) axis=0 : f16[past + tokens]
    output "rows" %rows
  })"));
  const int64_t first[] = {0, 2}, second[] = {2, 1};
  EXPECT_THAT(interpreter.run({{"x", floats({2}, {1, 2})}}, first).at("rows").floats,
              ElementsAre(1, 2));
  EXPECT_THAT(interpreter.run({{"x", floats({1}, {3})}}, second).at("rows").floats,
              ElementsAre(1, 2, 3));
  EXPECT_THAT(interpreter.states().at("cache").floats, ElementsAre(1, 2, 3, 0));
  interpreter.reset_states();
  EXPECT_THAT(interpreter.states().at("cache").floats, ElementsAre(0, 0, 0, 0));
}

TEST(Interpreter, WritesAlongAnInnerAxisInPlace) {
  Interpreter interpreter(parse_graph(R"(graph "g" {
    %x = input "x" : f32[2, 1]
    %cache = state "cache" : f32[2, 3]
    %rows = cache_append(%cache, %x) row=1 axis=1 : f32[2, 2]
    output "rows" %rows
  })"));
  interpreter.states().at("cache") = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(interpreter.run({{"x", floats({2, 1}, {7, 8})}}).at("rows").floats,
              ElementsAre(1, 7, 4, 8));
  EXPECT_THAT(interpreter.states().at("cache").floats, ElementsAre(1, 7, 3, 4, 8, 6));
}

TEST(Interpreter, RefusesToWriteAStateThroughAView) {
  const Graph graph = parse_graph(R"(graph "g" {
    %x = input "x" : f32[1, 2]
    %cache = state "cache" : f32[2, 3]
    %turned = transpose(%cache) : f32[3, 2]
    %rows = cache_append(%turned, %x) row=1 axis=0 : f32[2, 2]
    output "rows" %rows
  })");
  EXPECT_THROW(Interpreter{graph}, Error);
}

TEST(Interpreter, LoadsLargeWeightsForEachUseAndSmallOnesOnce) {
  int loads = 0;
  const auto load = [&](const std::string&, const TensorType& type) {
    ++loads;
    return make_reference_tensor(type.dtype, {type.shape[0].constant()});
  };
  const auto text = [](int64_t size) {
    return fmt::format(R"(graph "g" {{
      %w = weight "w" : f32[{0}]
      %a = neg(%w) : f32[{0}]
      %b = add(%w, %a) : f32[{0}]
      output "b" %b
    }})",
                       size);
  };
  Interpreter small(parse_graph(text(8)), load);
  small.run({});
  small.run({});
  EXPECT_EQ(loads, 1);
  loads = 0;
  Interpreter large(parse_graph(text(Interpreter::kKeptWeightElements + 1)), load);
  large.run({});
  EXPECT_EQ(loads, 2);
}

TEST(Interpreter, NamesWhatIsWrongWithARun) {
  Interpreter interpreter(parse_graph(R"(graph "g" (tokens <= 4) {
    %x = input "x" : f32[tokens]
    %ids = input "ids" : i64[1]
    %y = gather(%x, %ids) : f32[1]  @"blk.0.pick"
    output "y" %y
  })"));
  ReferenceTensor ids = make_reference_tensor(DType::kI64, {1});
  const ReferenceTensor x = floats({2}, {1, 2});
  EXPECT_THAT(run_error(interpreter, {{"x", x}, {"ids", ids}}), HasSubstr("0 symbol values"));
  EXPECT_THAT(run_error(interpreter, {{"x", x}, {"ids", ids}}, {5}),
              HasSubstr("tokens = 5 is given, but 0 to 4 is declared"));
  EXPECT_THAT(run_error(interpreter, {{"x", x}}, {2}), HasSubstr("'ids' of the graph 'g'"));
  EXPECT_THAT(run_error(interpreter, {{"x", x}, {"ids", ids}, {"more", x}}, {2}),
              HasSubstr("3 inputs are given, but the graph 'g' has 2"));
  EXPECT_THAT(run_error(interpreter, {{"x", x}, {"ids", ids}}, {3}),
              HasSubstr("but f32[tokens] (here [3]) is expected"));
  ids.integers[0] = 2;
  EXPECT_THAT(run_error(interpreter, {{"x", x}, {"ids", ids}}, {2}),
              HasSubstr("op 'gather' of 'blk.0.pick': gather meets the id 2"));
}

}  // namespace
}  // namespace rlx
