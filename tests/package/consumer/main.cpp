// A program that knows only the installed library: it runs a graph, and catches an error that the
// library throws.
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "rlx/rlx.h"

int main() {
  rlx::GraphBuilder graph("double");
  const auto x = graph.input("x", "f32[3]");
  graph.output("y", graph.op("add", {x, x}));
  rlx::Executable executable = graph.compile({.threads = 1});

  const std::vector<float> values = {1, 2, 3};
  const auto results = executable.run({{"x", rlx::Array::from_floats({3}, values)}});
  const auto y = results.at("y").floats();
  std::printf("rlx %s: %g %g %g\n", rlx::version(), y[0], y[1], y[2]);

  try {
    rlx::GraphBuilder::parse("this is not a graph");
  } catch (const rlx::Error& error) {
    return error.code() == rlx::ErrorCode::kInvalidArgument ? 0 : 2;
  }
  return 3;
}
