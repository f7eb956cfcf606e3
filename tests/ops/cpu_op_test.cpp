// Every op on the CPU backend: compiled, planned, run in poison mode by one to three threads, and
// compared with the reference.
#include <gtest/gtest.h>

#include <cstring>

#include "backends/cpu/session.h"
#include "compiler/compile.h"
#include "op_driver.h"
#include "ops/registry.h"
#include "tensor/storage.h"

namespace rlx {
namespace {

// Packed inputs of a case, as a model file would hold them.
class CaseWeights final : public WeightStore {
 public:
  CaseWeights(const Graph& graph, const OpInputs& inputs) : inputs_(inputs) {
    for (const Node& node : graph.nodes()) {
      const Weight* weight = node.op.as<Weight>();
      if (weight == nullptr) continue;
      WeightInfo info{graph.type(node.outputs[0]).dtype, inputs.at(weight->name).values.shape,
                      "case", 0, static_cast<int64_t>(inputs.at(weight->name).bytes.size())};
      infos_.emplace(weight->name, std::move(info));
    }
  }
  const WeightInfo* find(std::string_view name) const override {
    const auto found = infos_.find(std::string(name));
    return found == infos_.end() ? nullptr : &found->second;
  }
  std::vector<std::string> list_names() const override { return {}; }
  std::span<const std::byte> bytes(std::string_view name) const override {
    return inputs_.at(std::string(name)).bytes;
  }

 private:
  const OpInputs& inputs_;
  std::map<std::string, WeightInfo> infos_;
};

class CpuOpBackend final : public OpBackend {
 public:
  explicit CpuOpBackend(int threads) : pool_(std::make_shared<ThreadPool>(threads)) {
    target_.max_threads = threads;
    // The reference knows no quantised activations; those kernels have tests of their own.
    target_.quantize_activations = false;
  }

  std::string name() const override { return fmt::format("cpu, {} threads", target_.max_threads); }

  // Every op has a kernel or a decomposition here.
  std::string explain_unsupported(const Op&, std::span<const TensorType>) const override {
    return "";
  }

  OpOutputs run(const Graph& graph, const OpInputs& inputs,
                std::span<const int64_t> symbol_values) override {
    auto program = std::make_shared<const Program>(compile(graph, cpu::CpuTarget(target_)).program);
    auto weights = std::make_shared<CaseWeights>(graph, inputs);
    const auto session = cpu::make_session(program, weights, pool_, target_, {.poison = true});
    session->set_extents(symbol_values).throw_if_failed();
    for (size_t i = 0; i < program->inputs.size(); ++i) {
      write(session->input(static_cast<int>(i)), inputs.at(program->inputs[i].name));
    }
    for (size_t i = 0; i < program->states.size(); ++i) {
      write(session->state(static_cast<int>(i)), inputs.at(program->states[i].name));
    }
    session->run().throw_if_failed();
    OpOutputs outputs;
    for (size_t i = 0; i < program->outputs.size(); ++i) {
      const TensorView view = session->output(static_cast<int>(i));
      const int64_t bytes = storage_bytes(view.dtype, view.num_elements());
      outputs.emplace(
          program->outputs[i].name,
          reference_from_bytes(view.dtype, {view.extents.begin(), view.extents.begin() + view.rank},
                               {view.data, static_cast<size_t>(bytes)}));
    }
    return outputs;
  }

 private:
  static void write(const TensorView& view, const OpInput& input) {
    ASSERT_EQ(storage_bytes(view.dtype, view.num_elements()),
              static_cast<int64_t>(input.bytes.size()));
    std::copy(input.bytes.begin(), input.bytes.end(), view.data);
  }

  std::shared_ptr<ThreadPool> pool_;
  cpu::TargetOptions target_;
};

class CpuOps : public testing::TestWithParam<const OpKind*> {};

TEST_P(CpuOps, AgreeWithTheReferenceInPoisonMode) {
  for (int threads : {1, 2, 3}) {
    CpuOpBackend backend(threads);
    EXPECT_GT(check_backend(*GetParam(), backend), 0);
  }
}

std::vector<const OpKind*> list_kinds() {
  std::vector<const OpKind*> kinds;
  for (const OpKind* kind : all_ops().kinds()) {
    if (kind->samples != nullptr) kinds.push_back(kind);
  }
  return kinds;
}

INSTANTIATE_TEST_SUITE_P(All, CpuOps, testing::ValuesIn(list_kinds()),
                         [](const auto& info) { return std::string(info.param->name); });

}  // namespace
}  // namespace rlx
