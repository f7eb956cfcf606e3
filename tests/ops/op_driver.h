// One driver for the tests of all ops: it takes each op's samples from the op table, varies their
// dtypes, makes a graph around each and runs it. A backend is tested by an OpBackend and a loop
// over all_ops(); nothing per op is written down.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/op.h"
#include "ir/reference_tensor.h"

namespace rlx {

// A tensor given to a backend: its values, and the same values as the dtype's bytes (the blocks of
// a packed dtype), row-major.
struct OpInput {
  ReferenceTensor values;
  std::vector<std::byte> bytes;
};

// By the name of the graph's input, weight or state: "i0", "i1", ...
using OpInputs = std::map<std::string, OpInput>;
// By the name of the graph's output: "o0", "o1", ...
using OpOutputs = std::map<std::string, ReferenceTensor>;

class OpBackend {
 public:
  virtual ~OpBackend() = default;

  virtual std::string name() const = 0;

  // Why the backend does not run the op on these types; empty when it does.
  virtual std::string explain_unsupported(const Op& op,
                                          std::span<const TensorType> types) const = 0;

  // Runs the graph once. Its inputs are "input" values, but packed ones are weights, and what an op
  // writes in place is a state, which holds the given values before the run. Throws rlx::Error.
  virtual OpOutputs run(const Graph& graph, const OpInputs& inputs,
                        std::span<const int64_t> symbol_values) = 0;
};

// A sample in one choice of dtypes, with its graph and the values of its inputs.
struct OpCase {
  Sample sample;  // its input types are those of the graph
  DType varied = DType::kF32;
  Graph graph;
  OpInputs inputs;
  std::string description;  // "softmax axis=1 (f16[2, 3])"

  std::vector<TensorType> input_types() const;
};

// All cases of an op: each sample as given, and where it varies also with its f32 inputs as f64,
// f16 and bf16; when `infer` refuses that, with fewer of them, from the first. Values are drawn
// from a fixed seed and rounded to the dtype.
std::vector<OpCase> make_op_cases(const OpKind& kind);

// The relative tolerance for a case: the sample's for f32, tighter for f64, and what the dtype can
// hold for 16-bit floats.
double choose_tolerance(const OpCase& op_case);

// "" when both have one dtype and shape and agree within `tolerance` times the largest finite
// magnitude expected (integers exactly, NaN with NaN, infinities in place), else what differs.
std::string compare(const ReferenceTensor& expected, const ReferenceTensor& actual,
                    double tolerance);

// Runs every case of the op on the backend and expects what the reference gives; cases that the
// backend explains as unsupported are skipped. Reports through GoogleTest; returns how many ran.
int check_backend(const OpKind& kind, OpBackend& backend);

// The reference's outputs for a case.
OpOutputs run_reference(const OpCase& op_case);

}  // namespace rlx
