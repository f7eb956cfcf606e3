// Times compiling a made graph of many values: the passes alone, all of it with the nodes in the
// given order, and all of it. Prints seconds and the plan beside its bound for growing sizes, so
// that a cost that grows faster than the graph shows.
//
//   bench_compile [NODES...]      default: 5000 10000 20000
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <random>
#include <vector>

#include "backends/cpu/target.h"
#include "compiler/compile.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"

namespace rlx {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Running sums, which nothing fuses or folds, joined by additions: each reads one or two of the
// last values, of several sizes, and now and then one from long before.
Graph make_graph(int num_nodes) {
  std::mt19937 random(1);
  const auto pick = [&](size_t count) { return random() % count; };
  Graph graph("made");
  Builder builder(graph);
  constexpr int64_t kSizes[] = {1024, 4096, 16384};
  std::vector<std::vector<ValueId>> pools(std::size(kSizes));
  for (size_t i = 0; i < pools.size(); ++i) {
    pools[i].push_back(
        builder.add_input(fmt::format("x{}", i), {DType::kF32, {16, kSizes[i] / 16}}));
  }
  while (static_cast<int>(graph.nodes().size()) < num_nodes) {
    std::vector<ValueId>& pool = pools[pick(pools.size())];
    const auto operand = [&] {
      const size_t reach = pick(64) == 0 ? pool.size() : std::min<size_t>(pool.size(), 8);
      return pool[pool.size() - 1 - pick(reach)];
    };
    const ValueId value = pick(3) == 0 ? builder.add(Add{}, {operand(), operand()}) : operand();
    pool.push_back(builder.add(
        CumulativeSum{.axis = static_cast<int64_t>(pick(2)), .reverse = pick(2) == 0}, {value}));
  }
  for (size_t i = 0; i < pools.size(); ++i) {
    graph.add_output(fmt::format("y{}", i), pools[i].back());
  }
  return graph;
}

void measure(int num_nodes) {
  const Graph graph = make_graph(num_nodes);
  const cpu::CpuTarget target({.max_threads = 2});
  Clock::time_point start = Clock::now();
  optimize(graph, target);
  const double passes = seconds_since(start);
  start = Clock::now();
  const Program given = compile(graph, target, {.choose_order = false}).program;
  const double given_order = seconds_since(start);
  start = Clock::now();
  const Program program = compile(graph, target).program;
  const double whole = seconds_since(start);
  const SegmentPlan& work = program.plan.segment(Segment::kWork);
  fmt::print("{:>8} {:>8} {:>9.3f} {:>9.3f} {:>9.3f} {:>12} {:>12} {:>12} {}\n", num_nodes,
             program.instructions.size(), passes, given_order, whole,
             given.plan.segment(Segment::kWork).size_bytes, work.size_bytes, work.lower_bound_bytes,
             work.optimal ? "optimal" : "");
}

}  // namespace
}  // namespace rlx

int main(int argc, char** argv) {
  fmt::print("{:>8} {:>8} {:>9} {:>9} {:>9} {:>12} {:>12} {:>12}\n", "nodes", "steps", "passes s",
             "given s", "whole s", "given work", "work", "bound");
  if (argc < 2) {
    for (const int num_nodes : {5000, 10000, 20000}) rlx::measure(num_nodes);
  }
  for (int i = 1; i < argc; ++i) rlx::measure(std::atoi(argv[i]));
  return 0;
}
