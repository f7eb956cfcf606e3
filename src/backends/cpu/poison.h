// Poison mode: runs a program step by step and proves of every step that it reads only what was
// written and writes only what it declares. Bytes that hold no live value are filled with a
// pattern; each step runs twice with two patterns, so that a result that depends on such bytes
// differs; and every byte of the arena outside the step's outputs and scratch is compared before
// and after. Slow: for tests and for finding a fault.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "program/program.h"
#include "runtime/arena.h"
#include "runtime/session.h"

namespace rlx::cpu {

class PoisonChecker {
 public:
  // The arena must outlive the checker; its extents are those of the coming runs.
  explicit PoisonChecker(Arena& arena);

  // Call once before the steps of a run: inputs, state and nothing else are defined.
  void begin_run();

  // Runs one step through `execute`, which may be called twice. Fails with kInternal blaming the
  // kernel and naming the value: an input that nothing wrote, a result that depends on undefined
  // bytes, a byte written outside the outputs.
  RunStatus check_step(int32_t step, const std::function<void()>& execute);

 private:
  using Bytes = std::vector<std::byte>;

  int64_t segment_start(Segment segment) const;
  // Calls visit(first, last) for each run of arena bytes that the value's elements cover.
  void visit_bytes(int32_t value, const std::function<void(int64_t, int64_t)>& visit) const;
  bool lies_in_arena(int32_t value) const;
  void mark(int32_t value, bool defined);
  void fill_undefined(std::byte pattern);
  std::string describe_byte(int64_t offset, int32_t step) const;
  RunStatus fail(int32_t step, const std::string& message) const;

  const Program& program_;
  const Arena& arena_;
  std::vector<bool> defined_;                // by arena byte
  std::vector<std::vector<int32_t>> dying_;  // by step: values whose storage is free afterwards
  Bytes before_, first_;
};

}  // namespace rlx::cpu
