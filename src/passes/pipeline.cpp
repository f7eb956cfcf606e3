#include "passes/pipeline.h"

#include <algorithm>
#include <chrono>

#include "ir/verify.h"
#include "passes/eliminate_common_subexpressions.h"
#include "passes/eliminate_views.h"
#include "passes/fold_constants.h"
#include "passes/fuse_attention.h"
#include "passes/fuse_elementwise.h"
#include "passes/fuse_matmul_epilogue.h"
#include "passes/fuse_norm.h"
#include "passes/fuse_swiglu.h"
#include "passes/legalize.h"
#include "passes/remove_dead_code.h"
#include "passes/simplify_algebra.h"

namespace rlx {
namespace {

constexpr Pass kDefaultPipeline[] = {
    // First, so that no other pass spends time on what nothing uses.
    {"remove_dead_code", remove_dead_code},
    // Before the algebra, whose rules look for constants as operands.
    {"fold_constants", fold_constants},
    {"simplify_algebra", simplify_algebra},
    // After the algebra, which leaves broadcasts and casts behind.
    {"eliminate_views", eliminate_views},
    // After both, so that what they made equal is merged. Before the fusions, which give up where a
    // part has a second user: two copies of one mean, say.
    {"eliminate_common_subexpressions", eliminate_common_subexpressions},
    // Views that are gone now can have stood between constants and what folds them.
    {"fold_constants", fold_constants},
    // The fusions go from the most particular pattern to the most general one: each would swallow
    // parts of the ones before it. Norms take the sums of residuals, which the epilogue also would.
    {"fuse_norm", fuse_norm},
    {"fuse_swiglu", fuse_swiglu},
    // Before the epilogue, which takes matrix products with the scale or mask that follows.
    {"fuse_attention", fuse_attention},
    // The transposes around attention cancel with those that the model has there.
    {"eliminate_views", eliminate_views},
    {"fuse_matmul_epilogue", fuse_matmul_epilogue},
    // After the fusions, which look for whole ops such as softmax; before the fusion of elementwise
    // ops, which can then join what decompositions are made of.
    {"legalize", legalize},
    // What decompositions bring: scalars of the same value, x * x beside pow(x, 2), views of views.
    {"simplify_algebra", simplify_algebra},
    {"eliminate_views", eliminate_views},
    {"eliminate_common_subexpressions", eliminate_common_subexpressions},
    {"fold_constants", fold_constants},
    // Last of the fusions: it hides the ops it joins from every pattern.
    {"fuse_elementwise", fuse_elementwise},
    // A fused op stretches its inputs itself, which one of its parts alone could not leave to it.
    {"eliminate_views", eliminate_views},
    // Takes away what the passes before have replaced.
    {"remove_dead_code", remove_dead_code},
};

void check_disabled(std::span<const Pass> passes, const std::vector<std::string>& disabled) {
  for (const std::string& name : disabled) {
    const bool is_known = std::any_of(passes.begin(), passes.end(),
                                      [&](const Pass& pass) { return pass.name == name; });
    if (is_known) continue;
    std::vector<std::string_view> known;
    for (const Pass& pass : passes) {
      if (std::find(known.begin(), known.end(), pass.name) == known.end()) {
        known.push_back(pass.name);
      }
    }
    throw_error(ErrorCode::kInvalidArgument,
                "There is no pass named '{}' to disable; the passes are: {}.", name,
                fmt::join(known, ", "));
  }
}

// Whether both graphs print the same, without printing their constants.
bool is_same_graph(const Graph& a, const Graph& b) {
  const auto same_node = [&](const Node& x, const Node& y) {
    return x.op == y.op && x.inputs == y.inputs && x.outputs == y.outputs && x.source == y.source;
  };
  const auto same_value = [](const Value& x, const Value& y) {
    return x.type == y.type && x.name == y.name;
  };
  const auto same_output = [](const GraphOutput& x, const GraphOutput& y) {
    return x.name == y.name && x.value == y.value;
  };
  return std::ranges::equal(a.nodes(), b.nodes(), same_node) &&
         std::ranges::equal(a.values(), b.values(), same_value) &&
         std::ranges::equal(a.outputs(), b.outputs(), same_output);
}

}  // namespace

std::span<const Pass> default_pipeline() { return kDefaultPipeline; }

PipelineResult run_pipeline(const Graph& graph, std::span<const Pass> passes,
                            const PassContext& context, const PipelineOptions& options) {
  using Clock = std::chrono::steady_clock;
  check_disabled(passes, options.disabled);
  if (options.verify) with_context("before the first pass", [&] { verify(graph); });
  if (options.dump) options.dump("input", graph);
  PipelineResult result{graph, {}};
  for (const Pass& pass : passes) {
    if (std::ranges::find(options.disabled, pass.name) != options.disabled.end()) continue;
    const Clock::time_point start = Clock::now();
    Graph next = with_context(fmt::format("in pass '{}'", pass.name),
                              [&] { return pass.run(result.graph, context); });
    const std::chrono::duration<double, std::milli> elapsed = Clock::now() - start;
    const bool is_changed = !is_same_graph(result.graph, next);
    result.timings.push_back({std::string(pass.name), elapsed.count(),
                              static_cast<int64_t>(result.graph.nodes().size()),
                              static_cast<int64_t>(next.nodes().size()), is_changed});
    result.graph = std::move(next);
    // A graph that a pass leaves as it is was verified before it.
    if (options.verify && is_changed) {
      with_context(fmt::format("after pass '{}'", pass.name), [&] { verify(result.graph); });
    }
    if (options.dump) options.dump(pass.name, result.graph);
  }
  return result;
}

}  // namespace rlx
