// Every pass alone, and the whole pipeline, on random graphs: the result computes the same.
#include "passes/random_graph.h"

#include <cmath>
#include <random>

#include "backends/reference/interpreter.h"
#include "passes/pass_testing.h"
#include "passes/pipeline.h"

namespace rlx {
namespace {

constexpr uint32_t kSeeds = 150;
constexpr uint32_t kSeedsPerPass = 40;

ReferenceTensor make_values(const TensorType& type, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<int64_t> extents;
  for (const Dim& extent : type.shape) extents.push_back(extent.constant());
  ReferenceTensor tensor = make_reference_tensor(type.dtype, extents);
  std::uniform_int_distribution<int> value(-64, 64);
  for (double& element : tensor.floats) element = value(random) / 64.0;
  return tensor;
}

// The outputs of two runs, one after the other, so that what the first leaves in a state counts.
std::vector<Interpreter::Tensors> run_twice(const Graph& graph) {
  Interpreter interpreter(graph, [](const std::string& name, const TensorType& type) {
    return make_values(type, name == "w" ? 1 : 2);
  });
  std::vector<Interpreter::Tensors> results;
  for (uint32_t run = 0; run < 2; ++run) {
    Interpreter::Tensors inputs;
    uint32_t seed = 10 + run;
    for (const Node& node : graph.nodes()) {
      if (const Input* input = node.op.as<Input>()) {
        inputs[input->name] = make_values(graph.type(node.outputs[0]), ++seed * 7919);
      }
    }
    results.push_back(interpreter.run(inputs));
    // Read the state's bytes as an output too.
    for (const auto& [name, tensor] : interpreter.states())
      results.back()["state " + name] = tensor;
  }
  return results;
}

void expect_same_results(const Graph& before, const Graph& after, const std::string& what) {
  const auto expected = run_twice(before);
  const auto actual = run_twice(after);
  for (size_t run = 0; run < expected.size(); ++run) {
    for (const auto& [name, tensor] : expected[run]) {
      const auto found = actual[run].find(name);
      if (found == actual[run].end()) {
        // A state that nothing writes is gone: it is still zero.
        EXPECT_TRUE(name.starts_with("state ")) << name << " is missing " << what;
        continue;
      }
      ASSERT_EQ(found->second.shape, tensor.shape) << name << what;
      for (int64_t i = 0; i < tensor.num_elements(); ++i) {
        const double a = tensor.at(i), b = found->second.at(i);
        if (std::isnan(a) && std::isnan(b)) continue;
        ASSERT_NEAR(a, b, 1e-4 * (1 + std::abs(a)))
            << "output '" << name << "' element " << i << " of run " << run << what << "\n"
            << to_string(before) << "became\n"
            << to_string(after);
      }
    }
  }
}

TEST(RandomGraphs, EachPassAloneKeepsTheResults) {
  std::set<std::string_view> done;
  for (const Pass& pass : default_pipeline()) {
    if (!done.insert(pass.name).second) continue;
    for (uint32_t seed = 0; seed < kSeedsPerPass; ++seed) {
      for (const PassContext& context : {claim_all(), claim_simple()}) {
        const Graph graph = make_random_graph(seed);
        const Graph result = pass.run(graph, context);
        verify(result);
        const std::string what = fmt::format(", pass {}, seed {}", pass.name, seed);
        expect_same_results(graph, result, what);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(RandomGraphs, ThePipelineKeepsTheResults) {
  for (uint32_t seed = 1000; seed < 1000 + kSeeds; ++seed) {
    for (const PassContext& context : {claim_all(), claim_simple()}) {
      const Graph graph = make_random_graph(seed);
      const Graph result = run_pipeline(graph, default_pipeline(), context).graph;
      expect_same_results(graph, result, fmt::format(", seed {}", seed));
      if (HasFatalFailure()) return;
    }
  }
}

TEST(RandomGraphs, ThePipelineGivesTheSameTextWhenItRunsTwice) {
  for (uint32_t seed = 2000; seed < 2000 + kSeeds; ++seed) {
    for (const PassContext& context : {claim_all(), claim_simple()}) {
      const Graph once = run_pipeline(make_random_graph(seed), default_pipeline(), context).graph;
      const Graph twice = run_pipeline(once, default_pipeline(), context).graph;
      ASSERT_EQ(to_string(twice), to_string(once)) << "seed " << seed;
    }
  }
}

TEST(RandomGraphs, GiveEachFusionSomethingToFind) {
  std::set<std::string> found;
  for (uint32_t seed = 1000; seed < 1000 + kSeeds; ++seed) {
    const Graph graph = make_random_graph(seed);
    const Graph result = run_pipeline(graph, default_pipeline(), claim_all()).graph;
    for (const Node& node : result.nodes()) found.emplace(node.op.name());
  }
  for (const char* name : {"rms_norm", "layer_norm", "add_rms_norm", "swiglu", "attention",
                           "linear", "fused", "cache_append"}) {
    EXPECT_TRUE(found.contains(name)) << name;
  }
}

TEST(RandomGraphs, ResultsPrintAndParseBack) {
  for (uint32_t seed = 3000; seed < 3000 + kSeeds / 4; ++seed) {
    const Graph graph = make_random_graph(seed);
    const std::string text = to_string(run_pipeline(graph, default_pipeline(), claim_all()).graph);
    ASSERT_EQ(to_string(parse_graph(text)), text) << "seed " << seed;
  }
}

}  // namespace
}  // namespace rlx
