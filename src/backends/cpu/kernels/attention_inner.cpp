#include "backends/cpu/kernels/attention_inner.h"

#include <cstring>
#include <limits>

#include "backends/cpu/kernels/simd.h"
#include "tensor/half.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/attention_inner.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/cpu/kernels/matmul_sum-inl.h"
#include "backends/cpu/kernels/simd_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {
namespace {

using Tag = hn::ScalableTag<float>;
using Vector = hn::Vec<Tag>;

float ExpOne(float x) {
  const Tag d;
  return hn::GetLane(Exp(d, hn::Set(d, x)));
}

float Weigh(float* scores, const float* mask, int64_t begin, int64_t end, float scale,
            float soft_cap, SoftmaxState* state) {
  const Tag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  constexpr float kNothing = -std::numeric_limits<float>::infinity();
  const Vector nothing = hn::Set(d, kNothing);
  const Vector scales = hn::Set(d, scale);
  const Vector first = hn::Set(d, static_cast<float>(begin));
  const Vector last = hn::Set(d, static_cast<float>(end));
  Vector largest = nothing;
  for (int64_t i = 0; i < kKeyBlock; i += lanes) {
    Vector score = hn::Mul(hn::LoadU(d, scores + i), scales);
    if (soft_cap > 0) {
      score = hn::Mul(Tanh(d, hn::Div(score, hn::Set(d, soft_cap))), hn::Set(d, soft_cap));
    }
    if (mask != nullptr) score = hn::Add(score, hn::LoadU(d, mask + i));
    const Vector index = hn::Iota(d, static_cast<float>(i));
    const auto counts = hn::And(hn::Ge(index, first), hn::Lt(index, last));
    score = hn::IfThenElse(counts, score, nothing);
    hn::StoreU(score, d, scores + i);
    largest = hn::Max(largest, score);
  }
  const float before = state->largest;
  float now = hn::GetLane(hn::MaxOfLanes(d, largest));
  if (!(now > before)) now = before;
  // While no key counts, any finite number serves: exp(-infinity - 0) is 0.
  const float base = now == kNothing ? 0.0f : now;
  Vector sum = hn::Zero(d);
  const Vector bases = hn::Set(d, base);
  for (int64_t i = 0; i < kKeyBlock; i += lanes) {
    const Vector weight = Exp(d, hn::Sub(hn::LoadU(d, scores + i), bases));
    hn::StoreU(weight, d, scores + i);
    sum = hn::Add(sum, weight);
  }
  const float factor = before == now ? 1.0f : ExpOne(before - base);
  state->largest = now;
  state->sum = state->sum * factor + SumTree(d, sum);
  return factor;
}

struct F32 {
  using Raw = float;
  static HWY_INLINE Vector Load(Tag d, const float* from) { return hn::LoadU(d, from); }
};
struct F16 {
  using Raw = uint16_t;
  static HWY_INLINE Vector Load(Tag d, const uint16_t* from) { return LoadF16(d, from); }
};
struct BF16 {
  using Raw = uint16_t;
  static HWY_INLINE Vector Load(Tag d, const uint16_t* from) { return LoadBf16(d, from); }
};

// R of 1, 2, 4 or 6 rows times C <= 2 vectors of columns; `count` < Lanes columns when C is 0.
// Named accumulators, since gcc keeps an array of them in memory.
template <int R, int C, class V>
HWY_INLINE void AccumulateTile(const float* weights, const typename V::Raw* v, int64_t v_stride,
                               int64_t keys, int64_t count, float* out, int64_t out_stride) {
  const Tag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  constexpr bool kTail = C == 0;
  const auto load_out = [&](int r, int c) HWY_ATTR {
    const float* from = out + r * out_stride + c * lanes;
    if constexpr (!kTail) return hn::LoadU(d, from);
    HWY_ALIGN float part[hn::MaxLanes(d)] = {};
    std::memcpy(part, from, static_cast<size_t>(count) * sizeof(float));
    return hn::Load(d, part);
  };
  const auto store_out = [&](int r, int c, Vector value) HWY_ATTR {
    float* to = out + r * out_stride + c * lanes;
    if constexpr (!kTail) return hn::StoreU(value, d, to);
    HWY_ALIGN float part[hn::MaxLanes(d)];
    hn::Store(value, d, part);
    std::memcpy(to, part, static_cast<size_t>(count) * sizeof(float));
  };
  const auto load_v = [&](const typename V::Raw* from) HWY_ATTR {
    if constexpr (!kTail) return V::Load(d, from);
    HWY_ALIGN typename V::Raw part[hn::MaxLanes(d)] = {};
    std::memcpy(part, from, static_cast<size_t>(count) * sizeof(part[0]));
    return V::Load(d, part);
  };
  Vector s00 = load_out(0, 0), s01 = s00, s10 = s00, s11 = s00;
  Vector s20 = s00, s21 = s00, s30 = s00, s31 = s00;
  Vector s40 = s00, s41 = s00, s50 = s00, s51 = s00;
  if constexpr (C > 1) s01 = load_out(0, 1);
  if constexpr (R > 1) s10 = load_out(1, 0);
  if constexpr (R > 1 && C > 1) s11 = load_out(1, 1);
  if constexpr (R > 2) {
    s20 = load_out(2, 0), s30 = load_out(3, 0);
    if constexpr (C > 1) s21 = load_out(2, 1), s31 = load_out(3, 1);
  }
  if constexpr (R > 4) {
    s40 = load_out(4, 0), s50 = load_out(5, 0);
    if constexpr (C > 1) s41 = load_out(4, 1), s51 = load_out(5, 1);
  }
#pragma GCC unroll 4
  for (int64_t key = 0; key < keys; ++key, v += v_stride) {
    const float* weight = weights + key;
    const Vector v0 = load_v(v);
    Vector v1 = v0;
    if constexpr (C > 1) v1 = V::Load(d, v + lanes);
    Vector w = hn::Set(d, weight[0]);
    s00 = hn::MulAdd(w, v0, s00);
    if constexpr (C > 1) s01 = hn::MulAdd(w, v1, s01);
    if constexpr (R > 1) {
      w = hn::Set(d, weight[kKeyBlock]);
      s10 = hn::MulAdd(w, v0, s10);
      if constexpr (C > 1) s11 = hn::MulAdd(w, v1, s11);
    }
    if constexpr (R > 2) {
      w = hn::Set(d, weight[2 * kKeyBlock]);
      s20 = hn::MulAdd(w, v0, s20);
      if constexpr (C > 1) s21 = hn::MulAdd(w, v1, s21);
      w = hn::Set(d, weight[3 * kKeyBlock]);
      s30 = hn::MulAdd(w, v0, s30);
      if constexpr (C > 1) s31 = hn::MulAdd(w, v1, s31);
    }
    if constexpr (R > 4) {
      w = hn::Set(d, weight[4 * kKeyBlock]);
      s40 = hn::MulAdd(w, v0, s40);
      if constexpr (C > 1) s41 = hn::MulAdd(w, v1, s41);
      w = hn::Set(d, weight[5 * kKeyBlock]);
      s50 = hn::MulAdd(w, v0, s50);
      if constexpr (C > 1) s51 = hn::MulAdd(w, v1, s51);
    }
  }
  store_out(0, 0, s00);
  if constexpr (C > 1) store_out(0, 1, s01);
  if constexpr (R > 1) store_out(1, 0, s10);
  if constexpr (R > 1 && C > 1) store_out(1, 1, s11);
  if constexpr (R > 2) {
    store_out(2, 0, s20), store_out(3, 0, s30);
    if constexpr (C > 1) store_out(2, 1, s21), store_out(3, 1, s31);
  }
  if constexpr (R > 4) {
    store_out(4, 0, s40), store_out(5, 0, s50);
    if constexpr (C > 1) store_out(4, 1, s41), store_out(5, 1, s51);
  }
}

template <int R, class V>
HWY_INLINE void AccumulateRows(const float* weights, const typename V::Raw* v, int64_t v_stride,
                               int64_t keys, int64_t columns, float* out, int64_t out_stride) {
  const Tag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t j = 0;
  for (; j + 2 * lanes <= columns; j += 2 * lanes) {
    AccumulateTile<R, 2, V>(weights, v + j, v_stride, keys, 0, out + j, out_stride);
  }
  if (j + lanes <= columns) {
    AccumulateTile<R, 1, V>(weights, v + j, v_stride, keys, 0, out + j, out_stride);
    j += lanes;
  }
  if (j < columns) {
    AccumulateTile<R, 0, V>(weights, v + j, v_stride, keys, columns - j, out + j, out_stride);
  }
}

template <class V>
void AccumulateAs(const float* weights, int64_t rows, const void* values, int64_t v_stride,
                  int64_t keys, int64_t columns, float* out, int64_t out_stride) {
  const auto* v = static_cast<const typename V::Raw*>(values);
  int64_t r = 0;
  for (; r + 6 <= rows; r += 6) {
    AccumulateRows<6, V>(weights + r * kKeyBlock, v, v_stride, keys, columns, out + r * out_stride,
                         out_stride);
  }
  if (r + 4 <= rows) {
    AccumulateRows<4, V>(weights + r * kKeyBlock, v, v_stride, keys, columns, out + r * out_stride,
                         out_stride);
    r += 4;
  }
  if (r + 2 <= rows) {
    AccumulateRows<2, V>(weights + r * kKeyBlock, v, v_stride, keys, columns, out + r * out_stride,
                         out_stride);
    r += 2;
  }
  if (r < rows) {
    AccumulateRows<1, V>(weights + r * kKeyBlock, v, v_stride, keys, columns, out + r * out_stride,
                         out_stride);
  }
}

void Accumulate(const float* weights, int64_t rows, const void* v, DType v_dtype, int64_t v_stride,
                int64_t keys, int64_t columns, float* out, int64_t out_stride) {
  switch (v_dtype) {
    case DType::kF16:
      return AccumulateAs<F16>(weights, rows, v, v_stride, keys, columns, out, out_stride);
    case DType::kBF16:
      return AccumulateAs<BF16>(weights, rows, v, v_stride, keys, columns, out, out_stride);
    default:
      return AccumulateAs<F32>(weights, rows, v, v_stride, keys, columns, out, out_stride);
  }
}

// Lanes divide a block: there are at most 32 of them.
void WidenQ8(const void* from, int64_t count, float* out) {
  constexpr int64_t kBlock = 32, kBlockBytes = 34;
  const hn::CappedTag<float, kBlock> d;
  const hn::Rebind<int32_t, decltype(d)> d32;
  const hn::Rebind<int8_t, decltype(d)> d8;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* block = static_cast<const uint8_t*>(from);
  for (int64_t at = 0; at < count; at += kBlock, block += kBlockBytes) {
    uint16_t bits;
    std::memcpy(&bits, block, sizeof(bits));
    const auto scale = hn::Set(d, f16_to_f32(bits));
    const auto* codes = reinterpret_cast<const int8_t*>(block + 2);
    for (int64_t i = 0; i < kBlock; i += lanes) {
      const auto code = hn::ConvertTo(d, hn::PromoteTo(d32, hn::LoadU(d8, codes + i)));
      hn::StoreU(hn::Mul(code, scale), d, out + at + i);
    }
  }
}

void Combine(float* a, float a_factor, const float* b, float b_factor, int64_t count) {
  const Tag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const Vector a_factors = hn::Set(d, a_factor), b_factors = hn::Set(d, b_factor);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    Vector value = hn::Mul(hn::LoadU(d, a + i), a_factors);
    if (b != nullptr) value = hn::Add(value, hn::Mul(hn::LoadU(d, b + i), b_factors));
    hn::StoreU(value, d, a + i);
  }
  for (; i < count; ++i) {
    a[i] *= a_factor;
    if (b != nullptr) a[i] += b[i] * b_factor;
  }
}

const AttentionKernels* GetAttentionKernels() {
  static constexpr AttentionKernels kKernels{Weigh, Accumulate, WidenQ8, Combine, ExpOne};
  return &kKernels;
}

}  // namespace
}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rlx::cpu {

HWY_EXPORT(GetAttentionKernels);

const AttentionKernels& attention_inner_kernels() {
  return *HWY_DYNAMIC_DISPATCH(GetAttentionKernels)();
}

}  // namespace rlx::cpu
#endif
