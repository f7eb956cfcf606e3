// The f32 row functions, compiled once per vector target.
#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/kernels/norm_rows.h"
#include "backends/cpu/kernels/simd.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/norm_rows_f32.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/cpu/kernels/simd_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {
namespace {

using Tag = hn::ScalableTag<float>;
using Vector = hn::Vec<Tag>;

// Elements summed in f32 before they join the f64 total.
constexpr int64_t kBlock = 1024;

// Calls body(load, store, i) for every vector of [0, n); a partial one at the end reads `fill` in
// the lanes beyond n and does not store them.
template <class Body>
HWY_INLINE void ForEach(int64_t n, float fill, Body&& body) {
  const Tag d;
  const int64_t step = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  auto load = [&](const float* p) HWY_ATTR { return hn::LoadU(d, p + i); };
  auto store = [&](Vector v, float* p) HWY_ATTR { hn::StoreU(v, d, p + i); };
  for (; i + step <= n; i += step) body(load, store);
  if (i < n) {
    const size_t rest = static_cast<size_t>(n - i);
    auto load_part = [&](const float* p) HWY_ATTR { return LoadPart(d, p + i, rest, fill); };
    auto store_part = [&](Vector v, float* p) HWY_ATTR { StorePart(d, v, p + i, rest); };
    body(load_part, store_part);
  }
}

// The sum over a row of term(load, store), a vector; terms of lanes beyond the end must be 0 with
// the given fill. `at(i)` moves the row's pointers to element i.
template <class Term>
HWY_INLINE double SumBlocks(int64_t n, float fill, Term&& term) {
  const Tag d;
  double total = 0;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    Vector sum = hn::Zero(d);
    ForEach(std::min(kBlock, n - begin), fill, [&](auto& load, auto& store) HWY_ATTR {
      sum = hn::Add(sum, term(begin, load, store));
    });
    total += hn::GetLane(hn::SumOfLanes(d, sum));
  }
  return total;
}

void RmsNorm(const float* x, const float* weight, double eps, float* out, int64_t n) {
  const Tag d;
  const double squares = SumBlocks(n, 0.0f, [&](int64_t begin, auto& load, auto&) HWY_ATTR {
    const Vector v = load(x + begin);
    return hn::Mul(v, v);
  });
  const double scale = 1 / std::sqrt(squares / static_cast<double>(n) + eps);
  const Vector vscale = hn::Set(d, static_cast<float>(scale));
  ForEach(n, 0.0f, [&](auto& load, auto& store) HWY_ATTR {
    store(hn::Mul(hn::Mul(load(x), vscale), load(weight)), out);
  });
}

void AddRmsNorm(const float* x, const float* y, const float* weight, double eps, float* sum,
                float* out, int64_t n) {
  ForEach(n, 0.0f,
          [&](auto& load, auto& store) HWY_ATTR { store(hn::Add(load(x), load(y)), sum); });
  RmsNorm(sum, weight, eps, out, n);
}

void LayerNorm(const float* x, const float* weight, const float* bias, double eps, float* out,
               int64_t n) {
  const Tag d;
  const double count = static_cast<double>(n);
  const double mean =
      SumBlocks(n, 0.0f,
                [&](int64_t begin, auto& load, auto&) HWY_ATTR { return load(x + begin); }) /
      count;
  const float fmean = static_cast<float>(mean);
  const Vector vmean = hn::Set(d, fmean);
  const double squares = SumBlocks(n, fmean, [&](int64_t begin, auto& load, auto&) HWY_ATTR {
    const Vector v = hn::Sub(load(x + begin), vmean);
    return hn::Mul(v, v);
  });
  const Vector vscale = hn::Set(d, static_cast<float>(1 / std::sqrt(squares / count + eps)));
  ForEach(n, 0.0f, [&](auto& load, auto& store) HWY_ATTR {
    const Vector v = hn::Mul(hn::Sub(load(x), vmean), vscale);
    store(hn::MulAdd(v, load(weight), load(bias)), out);
  });
}

// The largest element; a NaN may be passed over, and then turns up in the sum of exponentials.
HWY_INLINE float MaxOfRow(const float* x, int64_t n) {
  const Tag d;
  const float lowest = -std::numeric_limits<float>::infinity();
  Vector max = hn::Set(d, lowest);
  ForEach(n, lowest, [&](auto& load, auto&) HWY_ATTR { max = hn::Max(max, load(x)); });
  return hn::GetLane(hn::MaxOfLanes(d, max));
}

// The lanes beyond the end read this: its exponential is 0 whatever finite maximum is taken off.
constexpr float kNothing = -std::numeric_limits<float>::infinity();

void Softmax(const float* x, float* out, int64_t n) {
  const Tag d;
  const Vector max = hn::Set(d, MaxOfRow(x, n));
  const double sum = SumBlocks(n, kNothing, [&](int64_t begin, auto& load, auto& store) HWY_ATTR {
    const Vector v = Exp(d, hn::Sub(load(x + begin), max));
    store(v, out + begin);
    return v;
  });
  const Vector scale = hn::Set(d, static_cast<float>(1 / sum));
  ForEach(n, 0.0f,
          [&](auto& load, auto& store) HWY_ATTR { store(hn::Mul(load(out), scale), out); });
}

void LogSoftmax(const float* x, float* out, int64_t n) {
  const Tag d;
  const Vector max = hn::Set(d, MaxOfRow(x, n));
  const double sum = SumBlocks(n, kNothing, [&](int64_t begin, auto& load, auto&) HWY_ATTR {
    return Exp(d, hn::Sub(load(x + begin), max));
  });
  const Vector log_sum = hn::Set(d, static_cast<float>(std::log(sum)));
  ForEach(n, 0.0f, [&](auto& load, auto& store) HWY_ATTR {
    store(hn::Sub(hn::Sub(load(x), max), log_sum), out);
  });
}

void ColumnMax(const float* x, float* max, int64_t n) {
  ForEach(n, 0.0f,
          [&](auto& load, auto& store) HWY_ATTR { store(hn::Max(load(max), load(x)), max); });
}

void ColumnSum(const float* x, const float* max, double* sum, int64_t n) {
  const Tag d;
  HWY_ALIGN float powers[hn::MaxLanes(Tag())];
  const int64_t step = static_cast<int64_t>(hn::Lanes(d));
  int64_t at = 0;
  ForEach(n, 0.0f, [&](auto& load, auto&) HWY_ATTR {
    hn::Store(Exp(d, hn::Sub(load(x), load(max))), d, powers);
    const int64_t count = std::min(step, n - at);
    for (int64_t i = 0; i < count; ++i) sum[at + i] += powers[i];
    at += step;
  });
}

void ColumnSoftmax(const float* x, const float* max, const double* sum, float* out, int64_t n) {
  const Tag d;
  ForEach(n, 0.0f, [&](auto& load, auto& store) HWY_ATTR {
    store(Exp(d, hn::Sub(load(x), load(max))), out);
  });
  for (int64_t i = 0; i < n; ++i) out[i] *= static_cast<float>(1 / sum[i]);
}

void ColumnLogSoftmax(const float* x, const float* max, const double* sum, float* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    out[i] = static_cast<float>(static_cast<double>(x[i] - max[i]) - std::log(sum[i]));
  }
}

void Rope(const float* x, const float* cosines, const float* sines, float* out, int64_t half) {
  ForEach(half, 0.0f, [&](auto& load, auto& store) HWY_ATTR {
    const Vector x0 = load(x), x1 = load(x + half);
    const Vector c = load(cosines), s = load(sines);
    store(hn::Sub(hn::Mul(x0, c), hn::Mul(x1, s)), out);
    store(hn::Add(hn::Mul(x0, s), hn::Mul(x1, c)), out + half);
  });
}

void RopeInterleaved(const float* x, const float* cosines, const float* sines, float* out,
                     int64_t half) {
  for (int64_t i = 0; i < half; ++i) {
    const float x0 = x[2 * i], x1 = x[2 * i + 1];
    out[2 * i] = x0 * cosines[i] - x1 * sines[i];
    out[2 * i + 1] = x0 * sines[i] + x1 * cosines[i];
  }
}

}  // namespace

NormRows<float> MakeNormRows() {
  return {RmsNorm,   AddRmsNorm,    LayerNorm,        Softmax, LogSoftmax,     ColumnMax,
          ColumnSum, ColumnSoftmax, ColumnLogSoftmax, Rope,    RopeInterleaved};
}

void FillRopeRow(float position, const float* frequencies, float scale, float* cosines,
                 float* sines, int64_t half) {
  const HalfTag d;
  const int64_t step = static_cast<int64_t>(hn::Lanes(d));
  const auto vposition = hn::Set(d, position);
  const auto vscale = hn::Set(d, scale);
  for (int64_t i = 0; i < half; i += step) {
    const size_t count = static_cast<size_t>(std::min(step, half - i));
    const auto angle = hn::Mul(vposition, LoadPart(d, frequencies + i, count, 0.0f));
    StorePart(d, hn::Mul(SinOrCos<true>(d, angle), vscale), cosines + i, count);
    StorePart(d, hn::Mul(SinOrCos<false>(d, angle), vscale), sines + i, count);
  }
}

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rlx::cpu {
HWY_EXPORT(MakeNormRows);
HWY_EXPORT(FillRopeRow);

const NormRows<float>& norm_rows_f32() {
  static const NormRows<float> rows = HWY_DYNAMIC_DISPATCH(MakeNormRows)();
  return rows;
}

void fill_rope_row(float position, const float* frequencies, float scale, float* cosines,
                   float* sines, int64_t half) {
  HWY_DYNAMIC_DISPATCH(FillRopeRow)(position, frequencies, scale, cosines, sines, half);
}

}  // namespace rlx::cpu
#endif
