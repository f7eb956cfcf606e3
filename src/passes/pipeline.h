// The order in which passes run, and the one runner that times, checks and can skip each of them.
// pipeline.cpp is the map: a line per pass with the reason for its place.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "passes/pass.h"

namespace rlx {

// The passes that the compiler runs, in order. After them the graph holds what the target claims,
// as far as decomposition goes; check_legal (passes/legalize.h) says whether that is all of it.
std::span<const Pass> default_pipeline();

struct PipelineOptions {
  std::vector<std::string> disabled;  // names of passes to skip, wherever they stand in the list
  bool verify = true;                 // check the graph before the first and after each pass
  // Called with "input" and the given graph, then with each pass's name and its result.
  std::function<void(std::string_view pass, const Graph& graph)> dump;
};

// What one pass did.
struct PassTiming {
  std::string name;
  double milliseconds = 0;
  int64_t nodes_before = 0;
  int64_t nodes_after = 0;
  bool changed = false;
};

struct PipelineResult {
  Graph graph;
  std::vector<PassTiming> timings;  // one per pass that ran, in order
};

// Runs the passes in order. Throws kInvalidArgument when a disabled name is not among them, listing
// the names that are. An error from a pass, or from the verifier after it, names the pass in its
// context.
PipelineResult run_pipeline(const Graph& graph, std::span<const Pass> passes,
                            const PassContext& context, const PipelineOptions& options = {});

}  // namespace rlx
