// Random graphs with views, in-place results, a state and several outputs: compiled, planned with
// all reuse, run twice in poison mode, and equal to the interpreter, which reuses nothing.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "backends/cpu/session.h"
#include "backends/reference/interpreter.h"
#include "compiler/compile.h"
#include "passes/random_graph.h"
#include "runtime/arena.h"

namespace rlx {
namespace {

std::vector<float> make_values(int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> value(-64, 64);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& element : values) element = static_cast<float>(value(random)) / 64.0f;
  return values;
}

std::vector<int64_t> constant_shape(const TensorType& type) {
  std::vector<int64_t> shape;
  for (const Dim& extent : type.shape) shape.push_back(extent.constant());
  return shape;
}

// The graph's weights, with values that follow from their names.
class RandomWeights final : public WeightStore {
 public:
  explicit RandomWeights(const Graph& graph) {
    for (const Node& node : graph.nodes()) {
      const Weight* weight = node.op.as<Weight>();
      if (weight == nullptr) continue;
      const TensorType& type = graph.type(node.outputs[0]);
      const int64_t count = count_elements(type.shape).constant();
      infos_[weight->name] = {type.dtype, constant_shape(type), "random", 0, count * 4};
      values_[weight->name] = make_values(count, weight->name == "w" ? 1 : 2);
    }
  }
  const WeightInfo* find(std::string_view name) const override {
    const auto found = infos_.find(std::string(name));
    return found == infos_.end() ? nullptr : &found->second;
  }
  std::vector<std::string> list_names() const override { return {}; }
  std::span<const std::byte> bytes(std::string_view name) const override {
    return std::as_bytes(std::span(values_.at(std::string(name))));
  }
  ReferenceTensor load(const std::string& name, const TensorType& type) const {
    ReferenceTensor tensor = make_reference_tensor(type.dtype, constant_shape(type));
    const std::vector<float>& values = values_.at(name);
    tensor.floats.assign(values.begin(), values.end());
    return tensor;
  }

 private:
  std::map<std::string, WeightInfo> infos_;
  std::map<std::string, std::vector<float>> values_;
};

void expect_near(const ReferenceTensor& expected, std::span<const float> actual,
                 const std::string& what) {
  ASSERT_EQ(expected.num_elements(), static_cast<int64_t>(actual.size())) << what;
  double largest = 1;
  for (double value : expected.floats) largest = std::max(largest, std::abs(value));
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_NEAR(actual[i], expected.floats[i], 2e-5 * largest) << what << ", element " << i;
  }
}

TEST(RandomPrograms, AgreeWithTheInterpreterInPoisonMode) {
  const auto pool = std::make_shared<ThreadPool>(2);
  cpu::TargetOptions target;
  target.max_threads = 2;
  int num_leaner = 0, num_joined = 0;
  for (uint32_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const Graph graph = make_random_graph(seed);
    const auto weights = std::make_shared<RandomWeights>(graph);
    Interpreter interpreter(graph, [&](const std::string& name, const TensorType& type) {
      return weights->load(name, type);
    });
    auto program = std::make_shared<const Program>(compile(graph, cpu::CpuTarget(target)).program);
    num_leaner += program->plan.segment(Segment::kWork).lower_bound_bytes <
                  program->plan.unordered_bound_bytes;
    for (const ProgramValue& value : program->values) num_joined += value.part_of >= 0;
    const auto session = cpu::make_session(program, weights, pool, target, {.poison = true});
    for (uint32_t run = 0; run < 2; ++run) {
      Interpreter::Tensors inputs;
      for (size_t i = 0; i < program->inputs.size(); ++i) {
        const NamedValue& input = program->inputs[i];
        Arena& arena = session->arena();
        const std::vector<float> values =
            make_values(arena.num_elements(input.value), 100 * run + static_cast<uint32_t>(i));
        arena.write<float>(input.value, values);
        ReferenceTensor tensor = make_reference_tensor(DType::kF32, arena.shape(input.value));
        tensor.floats.assign(values.begin(), values.end());
        inputs.emplace(input.name, std::move(tensor));
      }
      const Interpreter::Tensors expected = interpreter.run(inputs);
      const RunStatus status = session->run();
      ASSERT_TRUE(status.ok) << status.message;
      const Arena& arena = session->arena();
      for (const NamedValue& output : program->outputs) {
        expect_near(expected.at(output.name), arena.span<float>(output.value), output.name);
      }
      for (const NamedValue& state : program->states) {
        expect_near(interpreter.states().at(state.name), arena.span<float>(state.value),
                    state.name);
      }
    }
  }
  EXPECT_GT(num_leaner, 0);
  EXPECT_GT(num_joined, 0);
}

}  // namespace
}  // namespace rlx
