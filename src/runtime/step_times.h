// When each thread was inside each step of a run: what a session fills in while someone profiles
// it. Made once, so that a profiled run allocates nothing either.
#pragma once

#include <cstdint>
#include <vector>

namespace rlx {

class StepTimes {
 public:
  struct Interval {
    int64_t begin_ns = 0, end_ns = 0;  // of the steady clock
  };

  StepTimes(int64_t num_steps, int num_threads)
      : num_steps_(num_steps), intervals_(static_cast<size_t>(num_steps * num_threads)) {}

  // Each thread writes only its own intervals.
  Interval& at(int64_t step, int thread) {
    return intervals_[static_cast<size_t>(thread * num_steps_ + step)];
  }
  const Interval& at(int64_t step, int thread) const {
    return intervals_[static_cast<size_t>(thread * num_steps_ + step)];
  }

 private:
  int64_t num_steps_;
  std::vector<Interval> intervals_;
};

}  // namespace rlx
