// What a run did, step by step: bytes moved, operations, and where the time went. Bytes and
// operations are counted from the ops' meanings and the run's extents, so they are what the program
// asks of the machine, whatever a kernel does; beside a measured time they give the share of the
// machine's limits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rlx {

struct ProfiledStep {
  std::string op;            // "matmul"
  std::string kernel;        // "matmul.packed"
  std::string source;        // the place in the model: "blk.0.ffn_up"
  std::string weight_dtype;  // of the largest weight that it reads; empty when it reads none
  int64_t weight_bytes = 0;  // read from weights and constants
  int64_t state_bytes = 0;   // read from and written to key/value caches
  int64_t work_bytes = 0;    // read from and written to inputs, outputs and activations
  int64_t flops = 0;         // two for each multiply-add of a product; formulas by their steps

  // The time of each thread inside the kernel, in nanoseconds of the steady clock. Empty unless
  // profiling is on. The time of the step itself is from the first thread's begin to that of the
  // next step, so that waiting counts for the step that was waited for.
  struct Interval {
    int64_t begin_ns = 0, end_ns = 0;
  };
  std::vector<Interval> threads;

  int64_t bytes() const { return weight_bytes + state_bytes + work_bytes; }
};

}  // namespace rlx
