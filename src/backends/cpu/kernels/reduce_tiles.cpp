#include "backends/cpu/kernels/reduce_tiles.h"

#include <limits>

#include "backends/cpu/kernels/simd.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/reduce_tiles.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/cpu/kernels/simd_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {
namespace {

using Tag = hn::ScalableTag<float>;

double Sum(const float* x, int64_t n) {
  const Tag d;
  const int64_t step = static_cast<int64_t>(hn::Lanes(d));
  auto a = hn::Zero(d), b = hn::Zero(d);
  int64_t i = 0;
  for (; i + 2 * step <= n; i += 2 * step) {
    a = hn::Add(a, hn::LoadU(d, x + i));
    b = hn::Add(b, hn::LoadU(d, x + i + step));
  }
  for (; i < n; i += step) {
    const size_t rest = static_cast<size_t>(n - i < step ? n - i : step);
    a = hn::Add(a, LoadPart(d, x + i, rest, 0.0f));
  }
  HWY_ALIGN float lanes[hn::MaxLanes(Tag())];
  hn::Store(hn::Add(a, b), d, lanes);
  double sum = 0;
  for (int64_t k = 0; k < step; ++k) sum += lanes[k];
  return sum;
}

template <bool kMax>
float Extreme(const float* x, int64_t n) {
  const Tag d;
  const int64_t step = static_cast<int64_t>(hn::Lanes(d));
  const float infinity = std::numeric_limits<float>::infinity();
  const float start = kMax ? -infinity : infinity;
  auto best = hn::Set(d, start);
  auto nan = hn::Zero(d);  // the last NaN seen in a lane: Max and Min may pass it over
  for (int64_t i = 0; i < n; i += step) {
    const auto v =
        n - i >= step ? hn::LoadU(d, x + i) : LoadPart(d, x + i, static_cast<size_t>(n - i), start);
    best = kMax ? hn::Max(best, v) : hn::Min(best, v);
    nan = hn::IfThenElse(hn::Eq(v, v), nan, v);
  }
  HWY_ALIGN float lanes[hn::MaxLanes(Tag())];
  hn::Store(hn::IfThenElse(hn::Eq(nan, nan), best, nan), d, lanes);
  float result = start;
  for (int64_t k = 0; k < step; ++k) {
    if (lanes[k] != lanes[k]) return lanes[k];
    if (kMax ? lanes[k] > result : lanes[k] < result) result = lanes[k];
  }
  return result;
}

}  // namespace

ReduceTiles MakeReduceTiles() { return {Sum, Extreme<true>, Extreme<false>}; }

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rlx::cpu {
HWY_EXPORT(MakeReduceTiles);

const ReduceTiles& reduce_tiles() {
  static const ReduceTiles tiles = HWY_DYNAMIC_DISPATCH(MakeReduceTiles)();
  return tiles;
}

}  // namespace rlx::cpu
#endif
