// A program ready to run: its arena allocated, its weights bound, its kernels resolved. Making one
// may throw; running one allocates nothing, throws nothing and returns a status.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "program/program.h"
#include "rlx/error.h"
#include "tensor/shape.h"

namespace rlx {

class Arena;
class StepTimes;
class WeightStore;

// What a run reports. The message is made only on failure.
struct RunStatus {
  bool ok = true;
  ErrorCode code = ErrorCode::kInternal;
  std::string message;

  // Throws the failure as an rlx::Error, for callers who want exceptions.
  void throw_if_failed() const {
    if (!ok) throw Error(code, message);
  }
};

class Session {
 public:
  virtual ~Session() = default;

  virtual const Program& program() const = 0;

  // Sets the extents of the next runs: one value per symbol of the program, in the table's order.
  // Views handed out before are stale after. Fails with kOutOfRange naming the symbol and its
  // bounds.
  virtual RunStatus set_extents(std::span<const int64_t> values) = 0;

  // Views of inputs and outputs, by position in Program::inputs / outputs, with the current
  // extents. Valid until set_extents; an output's content until the next run.
  virtual TensorView input(int index) = 0;
  virtual TensorView output(int index) = 0;
  // The view of a state, by position in Program::states.
  virtual TensorView state(int index) = 0;

  // The memory that the program runs over.
  virtual Arena& arena() = 0;

  // Runs the program once over the inputs as they are in the arena. One caller at a time.
  virtual RunStatus run() = 0;

  // Fills the state segment with zeros, as it is at the start.
  virtual void reset_state() = 0;

  // While `*flag` is true a run stops at its next barrier with kCancelled. Null: never.
  virtual void set_cancel_flag(const std::atomic<bool>* flag) = 0;

  // From now on runs record the times of their steps there; it has room for the program's steps and
  // the pool's threads, and outlives the runs. Null, as at first: no time is taken.
  virtual void set_step_times(StepTimes* times) = 0;
};

// The position of a named input or output; throws kNotFound listing the names there are.
int find_input(const Program& program, std::string_view name);
int find_output(const Program& program, std::string_view name);

// Checks that the store has every weight of the program with the planned dtype and shape. Throws
// naming all that are missing, or the first that differs, with what was given and expected.
void check_weights(const Program& program, const WeightStore& weights);

}  // namespace rlx
