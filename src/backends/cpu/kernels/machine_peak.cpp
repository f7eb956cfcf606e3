#include "backends/cpu/kernels/machine_peak.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>

#include "backends/cpu/kernels/simd.h"
#include "base/error.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/machine_peak.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

int64_t RunMultiplyAdds(int64_t count, float* sink) {
  const hn::ScalableTag<float> d;
  const auto x = hn::Set(d, sink[0]), y = hn::Set(d, sink[1]);
  // Different from each other, else the compiler computes one chain for all.
  const auto start = [&](float value) HWY_ATTR { return hn::Set(d, value * sink[0]); };
  auto a = start(1), b = start(2), c = start(3), e = start(4), f = start(5);
  auto g = start(6), h = start(7), i = start(8), j = start(9), k = start(10);
  for (int64_t n = 0; n < count; ++n) {
    a = hn::MulAdd(a, x, y);
    b = hn::MulAdd(b, x, y);
    c = hn::MulAdd(c, x, y);
    e = hn::MulAdd(e, x, y);
    f = hn::MulAdd(f, x, y);
    g = hn::MulAdd(g, x, y);
    h = hn::MulAdd(h, x, y);
    i = hn::MulAdd(i, x, y);
    j = hn::MulAdd(j, x, y);
    k = hn::MulAdd(k, x, y);
  }
  const auto sum = hn::Add(hn::Add(hn::Add(a, b), hn::Add(c, e)),
                           hn::Add(hn::Add(f, g), hn::Add(hn::Add(h, i), hn::Add(j, k))));
  sink[2] = hn::GetLane(sum);
  return count * 20 * static_cast<int64_t>(hn::Lanes(d));
}

float ReadAll(const float* from, int64_t count) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t part = count / 4 / (2 * lanes) * (2 * lanes);
  auto a = hn::Zero(d), b = a, c = a, e = a;
  for (int64_t i = 0; i < part; i += 2 * lanes) {
    a = hn::Or(a, hn::Or(hn::LoadU(d, from + i), hn::LoadU(d, from + i + lanes)));
    b = hn::Or(b, hn::Or(hn::LoadU(d, from + part + i), hn::LoadU(d, from + part + i + lanes)));
    c = hn::Or(
        c, hn::Or(hn::LoadU(d, from + 2 * part + i), hn::LoadU(d, from + 2 * part + i + lanes)));
    e = hn::Or(
        e, hn::Or(hn::LoadU(d, from + 3 * part + i), hn::LoadU(d, from + 3 * part + i + lanes)));
  }
  return hn::GetLane(hn::Or(hn::Or(a, b), hn::Or(c, e)));
}

}  // namespace
}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rlx::cpu {

HWY_EXPORT(RunMultiplyAdds);
HWY_EXPORT(ReadAll);

int64_t run_multiply_adds(int64_t count) {
  volatile float values[2] = {0.5f, 0.25f};
  float sink[3] = {values[0], values[1], 0};
  const int64_t operations = HWY_DYNAMIC_DISPATCH(RunMultiplyAdds)(count, sink);
  values[0] = sink[2];
  return operations;
}

float read_all(std::span<const std::byte> bytes) {
  return HWY_DYNAMIC_DISPATCH(ReadAll)(reinterpret_cast<const float*>(bytes.data()),
                                       static_cast<int64_t>(bytes.size() / sizeof(float)));
}

namespace {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

MachineProbe::MachineProbe() {
  void* address = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (address == MAP_FAILED) {
    throw_error(ErrorCode::kOutOfMemory, "Cannot allocate {} bytes to read from.", kBytes);
  }
  data_ = static_cast<std::byte*>(address);
  // Pages that were never written all show the same page of zeros.
  for (size_t at = 0; at < kBytes; at += 4096) data_[at] = std::byte{1};
}

MachineProbe::~MachineProbe() { ::munmap(data_, kBytes); }

void MachineProbe::measure(ThreadPool& pool, MachinePeak& best) const {
  std::atomic<float> keep{0};  // so that the reading is not left out
  double start = seconds_now();
  pool.run([&](int thread) {
    const Range range =
        split_range(static_cast<int64_t>(kBytes), thread, pool.num_threads(), 1 << 16);
    keep = read_all({data_ + range.begin, static_cast<size_t>(range.end - range.begin)});
  });
  best.read_gb_s =
      std::max(best.read_gb_s, static_cast<double>(kBytes) / (seconds_now() - start) * 1e-9);
  std::atomic<int64_t> operations{0};
  start = seconds_now();
  pool.run([&](int) { operations += run_multiply_adds(200000); });
  best.gflop_s = std::max(best.gflop_s,
                          static_cast<double>(operations.load()) / (seconds_now() - start) * 1e-9);
}

}  // namespace rlx::cpu
#endif
