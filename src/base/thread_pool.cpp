#include "base/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/error.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace rlx {
namespace {

// A barrier between two decode steps takes about a microsecond when threads run in step; about 20
// us of spinning covers an uneven split, and then sleeping costs less than it saves.
constexpr int kSpins = 4000;

inline void pause_briefly() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Returns once `word` no longer holds `old_value`.
void wait_while_equal(std::atomic<uint32_t>& word, uint32_t old_value) {
  for (int i = 0; i < kSpins; ++i) {
    if (word.load(std::memory_order_acquire) != old_value) return;
    pause_briefly();
  }
  while (word.load(std::memory_order_acquire) == old_value) {
    word.wait(old_value, std::memory_order_acquire);
  }
}

// The cgroup v2 (or v1) processor quota in whole processors, rounded up; 0 when there is none.
int read_cgroup_quota() {
  auto read_line = [](const char* path, char(&line)[128]) {
    std::FILE* file = std::fopen(path, "r");
    if (file == nullptr) return false;
    const bool ok = std::fgets(line, sizeof(line), file) != nullptr;
    std::fclose(file);
    return ok;
  };
  char line[128];
  long quota = 0, period = 0;
  if (read_line("/sys/fs/cgroup/cpu.max", line)) {
    if (std::sscanf(line, "%ld %ld", &quota, &period) != 2) return 0;  // "max 100000"
  } else if (read_line("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", line)) {
    quota = std::atol(line);
    if (!read_line("/sys/fs/cgroup/cpu/cpu.cfs_period_us", line)) return 0;
    period = std::atol(line);
  }
  if (quota <= 0 || period <= 0) return 0;
  return static_cast<int>((quota + period - 1) / period);
}

}  // namespace

ThreadPool::ThreadPool(int num_threads) : num_threads_(num_threads) {
  if (num_threads < 1 || num_threads > 1024) {
    throw_error(ErrorCode::kInvalidArgument,
                "A thread pool of {} threads was asked for, but 1 to 1024 are expected.",
                num_threads);
  }
  threads_.reserve(num_threads - 1);
  for (int thread = 1; thread < num_threads; ++thread) {
    threads_.emplace_back([this, thread] { work(thread); });
  }
}

ThreadPool::~ThreadPool() {
  stopping_.store(true, std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::run_erased(ErasedBody body, void* context) {
  if (num_threads_ == 1) {
    body(context, 0);
    return;
  }
  body_ = body;
  context_ = context;
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  body(context, 0);
  barrier();
}

void ThreadPool::work(int thread) {
  uint32_t seen = 0;
  while (true) {
    wait_while_equal(generation_, seen);
    seen = generation_.load(std::memory_order_acquire);
    if (stopping_.load(std::memory_order_relaxed)) return;
    body_(context_, thread);
    barrier();
  }
}

void ThreadPool::barrier() {
  if (num_threads_ == 1) return;
  const uint32_t phase = phase_.load(std::memory_order_relaxed);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == static_cast<uint32_t>(num_threads_)) {
    arrived_.store(0, std::memory_order_relaxed);
    phase_.store(phase + 1, std::memory_order_release);
    phase_.notify_all();
    return;
  }
  wait_while_equal(phase_, phase);
}

int count_usable_processors() {
  int count = 1;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) {
    count = std::max(1, CPU_COUNT(&set));
  } else {
    count = std::max(1u, std::thread::hardware_concurrency());
  }
  const int quota = read_cgroup_quota();
  return quota > 0 ? std::min(count, quota) : count;
}

}  // namespace rlx
