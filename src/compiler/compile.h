// From a graph to a program: passes, kernel choice, aliasing, lifetimes, placement, emission.
// Nothing here runs or reads a weight; weights are described by their headers.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "compiler/target.h"
#include "ir/graph.h"
#include "passes/pipeline.h"
#include "program/program.h"

namespace rlx {

struct CompileOptions {
  std::vector<std::string> disabled_passes;
  // Called after each pass with its name and the graph, when set.
  std::function<void(std::string_view pass, const Graph& graph)> dump;
  // Limit of the searches for an order and for a placement, in choices; see memory/place.h. A
  // program of many values gets fewer for its placement, so that time stays in proportion to its
  // size.
  int64_t plan_effort = 200000;
  // Runs independent nodes in another order than the graph's where that needs less memory.
  bool choose_order = true;
};

struct CompileResult {
  Program program;
  Graph optimized;                  // the graph after all passes, in the program's order
  std::vector<PassTiming> timings;  // of the passes
};

// Throws rlx::Error: kUnsupported listing every op that the target has no kernel for, kOutOfRange
// when a size does not fit in 64 bits.
CompileResult compile(const Graph& graph, const Target& target, const CompileOptions& options = {});

// Runs the passes alone.
PipelineResult optimize(const Graph& graph, const Target& target,
                        const CompileOptions& options = {});

}  // namespace rlx
