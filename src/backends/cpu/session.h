// Runs a program on the CPU: all threads of a pool walk the same list of instructions together,
// each doing its share of every one, with a barrier only where the plan says that bytes are shared.
#pragma once

#include <memory>

#include "backends/cpu/target.h"
#include "base/thread_pool.h"
#include "program/weight_store.h"
#include "runtime/session.h"

namespace rlx::cpu {

struct SessionOptions {
  bool poison = false;  // check every step of every run; see poison.h
};

// Throws what check_weights throws, kOutOfMemory, and kInvalidArgument when the pool has more
// threads than the target was compiled for. `target` must be the one that compiled the program; the
// session keeps program, weights and pool alive.
std::unique_ptr<Session> make_session(std::shared_ptr<const Program> program,
                                      std::shared_ptr<const WeightStore> weights,
                                      std::shared_ptr<ThreadPool> pool, const TargetOptions& target,
                                      const SessionOptions& options = {});

}  // namespace rlx::cpu
