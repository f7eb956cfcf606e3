// Persistent threads that run one function together, and a barrier between its phases. A program's
// steps are all executed inside one `run`, so that a step costs a barrier, not a wake-up. Threads
// spin briefly, then sleep: an idle pool uses no processor time.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

namespace rlx {

class ThreadPool {
 public:
  // `num_threads` >= 1 counts the caller: 1 creates no thread.
  explicit ThreadPool(int num_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const { return num_threads_; }

  // Calls body(thread) for every thread in [0, num_threads) at once, the caller being thread 0, and
  // returns when all are done. Allocates nothing. `body` must not throw. Not reentrant: one caller
  // at a time.
  template <typename Body>
  void run(Body&& body) {
    using Plain = std::remove_reference_t<Body>;
    run_erased([](void* context, int thread) { (*static_cast<Plain*>(context))(thread); },
               const_cast<void*>(static_cast<const void*>(&body)));
  }

  // Inside `run`: returns when every thread has called it. What threads wrote before is visible
  // after.
  void barrier();

 private:
  using ErasedBody = void (*)(void* context, int thread);

  void run_erased(ErasedBody body, void* context);
  void work(int thread);

  const int num_threads_;
  ErasedBody body_ = nullptr;
  void* context_ = nullptr;
  alignas(64) std::atomic<uint32_t> generation_{0};  // one more per run
  alignas(64) std::atomic<uint32_t> arrived_{0};     // threads waiting at the barrier
  alignas(64) std::atomic<uint32_t> phase_{0};       // one more per barrier passed
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> threads_;
};

// Threads that this process may use: the affinity mask and, where set, the cgroup's processor
// quota.
int count_usable_processors();

// The part [begin, end) of [0, total) that belongs to `thread`: whole multiples of `grain` (the
// last part takes the rest), sizes differing by at most one grain.
struct Range {
  int64_t begin, end;
};
inline Range split_range(int64_t total, int thread, int num_threads, int64_t grain = 1) {
  const int64_t grains = (total + grain - 1) / grain;
  const int64_t begin = grains * thread / num_threads * grain;
  const int64_t end = grains * (thread + 1) / num_threads * grain;
  return {begin < total ? begin : total, end < total ? end : total};
}

}  // namespace rlx
