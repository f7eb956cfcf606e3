#include "compiler/compile.h"

#include "compiler/lowering.h"
#include "compiler/plan_memory.h"
#include "passes/legalize.h"

namespace rlx {
namespace {

// Passes ask before layouts are known; a claim is made for contiguous inputs, which lowering can
// always provide by a copy.
PassContext make_pass_context(const Target& target) {
  PassContext context;
  context.claims = [&target](const Op& op, std::span<const TensorType> inputs,
                             const SymbolTable& symbols) {
    const std::vector<TensorType> outputs = op.infer(inputs, symbols);
    std::vector<Layout> layouts;
    for (const TensorType& input : inputs) layouts.push_back(make_contiguous_layout(input.shape));
    return target.choose_kernel({op, inputs, layouts, outputs, symbols}, nullptr).has_value();
  };
  return context;
}

}  // namespace

PipelineResult optimize(const Graph& graph, const Target& target, const CompileOptions& options) {
  PipelineOptions pipeline;
  pipeline.disabled = options.disabled_passes;
  pipeline.dump = options.dump;
  return run_pipeline(graph, default_pipeline(), make_pass_context(target), pipeline);
}

CompileResult compile(const Graph& graph, const Target& target, const CompileOptions& options) {
  PipelineResult optimized = optimize(graph, target, options);
  check_legal(optimized.graph, make_pass_context(target));
  Program program =
      plan_memory(lower(optimized.graph, target), target.alignment_bytes(), options.plan_effort);
  return {std::move(program), std::move(optimized.graph), std::move(optimized.timings)};
}

}  // namespace rlx
