// Builds a graph by hand, compiles it once, and runs it with two batch sizes. The graph is a layer
// of a neural network with a choice at its end: scores = softmax(relu(x * w + b)).
#include <cstdio>
#include <vector>

#include "rlx/rlx.h"

namespace {

void run(rlx::Executable& executable, const std::vector<float>& rows) {
  const auto batch = static_cast<int64_t>(rows.size()) / 3;
  const auto outputs = executable.run({{"x", rlx::Array::from_floats({batch, 3}, rows)}});
  const auto scores = outputs.at("scores").floats();
  for (int64_t row = 0; row < batch; ++row) {
    std::printf("row %d of %d: %.3f %.3f\n", static_cast<int>(row), static_cast<int>(batch),
                scores[row * 2], scores[row * 2 + 1]);
  }
}

}  // namespace

int main() {
  try {
    rlx::GraphBuilder graph("layer");
    // `batch` is a name for a size that is known only when the graph runs: from 1 to 8 here. Memory
    // is planned for the largest, so every size runs without compiling again.
    graph.symbol("batch", 8);
    const auto x = graph.input("x", "f32[batch, 3]");
    const std::vector<float> w_values = {1, -1, 0.5f, 2, -2, 1};
    const std::vector<float> b_values = {0.1f, 0.2f};
    const auto w = graph.constant(rlx::Array::from_floats({3, 2}, w_values));
    const auto b = graph.constant(rlx::Array::from_floats({2}, b_values));
    // Shapes broadcast as in NumPy; attributes are written as in the text form.
    const auto sum = graph.op("add", {graph.op("matmul", {x, w}), b});
    graph.output("scores", graph.op("softmax", {graph.op("relu", {sum})}, "axis=1"));

    // Every graph has a text form, which GraphBuilder::parse reads back.
    std::printf("%s\n", graph.to_text().c_str());

    rlx::Executable executable = graph.compile();
    run(executable, {1, 2, 3});
    run(executable, {1, 2, 3, -1, 0, 1, 0.5f, 0.5f, 0.5f});
  } catch (const rlx::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
