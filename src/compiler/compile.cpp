#include "compiler/compile.h"

#include "compiler/lowering.h"
#include "compiler/order.h"
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

// Lowers the graph, in another order of nodes and with concatenations in place where that needs no
// more memory; then `graph` is the one in that order.
Lowered lower_leanest(Graph& graph, const Target& target, const CompileOptions& options) {
  const int64_t alignment = target.alignment_bytes();
  Lowered best = lower(graph, target);
  int64_t bound = find_work_bound(best, alignment);
  const int64_t given_bound = bound;
  if (options.choose_order) {
    if (auto leaner = find_leaner_order(graph, alignment, options.plan_effort)) {
      Lowered lowered = lower(*leaner, target);
      const int64_t lowered_bound = find_work_bound(lowered, alignment);
      if (lowered_bound < bound) {
        graph = std::move(*leaner);
        best = std::move(lowered);
        bound = lowered_bound;
      }
    }
  }
  Lowered joined = lower(graph, target, {.join_concatenations = true});
  if (joined.num_joined_parts > 0 && find_work_bound(joined, alignment) <= bound) {
    best = std::move(joined);
  }
  best.program.plan.unordered_bound_bytes = given_bound;
  return best;
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
  Lowered lowered = lower_leanest(optimized.graph, target, options);
  Program program = plan_memory(std::move(lowered), target, options.plan_effort);
  return {std::move(program), std::move(optimized.graph), std::move(optimized.timings)};
}

}  // namespace rlx
