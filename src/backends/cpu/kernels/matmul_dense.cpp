#include "backends/cpu/kernels/matmul_dense.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/kernels/simd.h"
#include "ops/matmul.h"
#include "tensor/half.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/matmul_dense.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/cpu/kernels/matmul_sum-inl.h"
#include "backends/cpu/kernels/simd_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {
namespace {

using Tag = hn::ScalableTag<float>;
using Vector = hn::Vec<Tag>;

// The stored element types; 16-bit ones are told apart by a struct each.
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

// The `count` < Lanes elements at `from`, zeros after them.
template <class W>
HWY_INLINE Vector LoadTail(Tag d, const typename W::Raw* from, int64_t count) {
  HWY_ALIGN typename W::Raw lanes[hn::MaxLanes(d)] = {};
  std::memcpy(lanes, from, static_cast<size_t>(count) * sizeof(lanes[0]));
  return W::Load(d, lanes);
}

// R rows times C columns, R <= 3 and C either 1 or 4. The accumulators are named because gcc keeps
// an array of them in memory; 12 of them, three rows and one column fill the 16 registers of AVX2,
// and 7 loads feed 12 multiply-adds, so that the multipliers are the limit and not the loads.
template <int R, int C, class W>
HWY_INLINE void MultiplyTile(const float* const* x, const typename W::Raw* w, int64_t w_stride,
                             int64_t depth, bool accumulate, float* out, int64_t out_stride) {
  const Tag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const float* x0 = x[0];
  const float* x1 = x[R > 1 ? 1 : 0];
  const float* x2 = x[R > 2 ? 2 : 0];
  const typename W::Raw* w0 = w;
  const typename W::Raw* w1 = w + (C > 1 ? w_stride : 0);
  const typename W::Raw* w2 = w + (C > 1 ? 2 * w_stride : 0);
  const typename W::Raw* w3 = w + (C > 1 ? 3 * w_stride : 0);
  Vector s00 = hn::Zero(d), s01 = s00, s02 = s00, s03 = s00;
  Vector s10 = s00, s11 = s00, s12 = s00, s13 = s00;
  Vector s20 = s00, s21 = s00, s22 = s00, s23 = s00;
  const auto step = [&](auto load_x, auto load_w) HWY_ATTR {
    const Vector a0 = load_x(x0);
    const Vector a1 = R > 1 ? load_x(x1) : a0;
    const Vector a2 = R > 2 ? load_x(x2) : a0;
    Vector b = load_w(w0);
    s00 = hn::MulAdd(a0, b, s00);
    if constexpr (R > 1) s10 = hn::MulAdd(a1, b, s10);
    if constexpr (R > 2) s20 = hn::MulAdd(a2, b, s20);
    if constexpr (C > 1) {
      b = load_w(w1);
      s01 = hn::MulAdd(a0, b, s01);
      if constexpr (R > 1) s11 = hn::MulAdd(a1, b, s11);
      if constexpr (R > 2) s21 = hn::MulAdd(a2, b, s21);
      b = load_w(w2);
      s02 = hn::MulAdd(a0, b, s02);
      if constexpr (R > 1) s12 = hn::MulAdd(a1, b, s12);
      if constexpr (R > 2) s22 = hn::MulAdd(a2, b, s22);
      b = load_w(w3);
      s03 = hn::MulAdd(a0, b, s03);
      if constexpr (R > 1) s13 = hn::MulAdd(a1, b, s13);
      if constexpr (R > 2) s23 = hn::MulAdd(a2, b, s23);
    }
  };
  int64_t i = 0;
  // A taken branch every 6 cycles costs a tenth of the multiply-adds.
#pragma GCC unroll 4
  for (; i + lanes <= depth; i += lanes) {
    step([&](const float* from) HWY_ATTR { return hn::LoadU(d, from + i); },
         [&](const typename W::Raw* from) HWY_ATTR { return W::Load(d, from + i); });
  }
  if (i < depth) {
    step([&](const float* from) HWY_ATTR { return LoadTail<F32>(d, from + i, depth - i); },
         [&](const typename W::Raw* from) HWY_ATTR { return LoadTail<W>(d, from + i, depth - i); });
  }
  const auto finish = [&](float* to, Vector t0, Vector t1, Vector t2, Vector t3) HWY_ATTR {
    if constexpr (C == 1) {
      const float sum = SumTree(d, t0);
      to[0] = accumulate ? to[0] + sum : sum;
    } else if (!accumulate) {
      SumTree4(d, t0, t1, t2, t3, to);
    } else {
      HWY_ALIGN float sums[4];
      SumTree4(d, t0, t1, t2, t3, sums);
      for (int c = 0; c < 4; ++c) to[c] += sums[c];
    }
  };
  finish(out, s00, s01, s02, s03);
  if constexpr (R > 1) finish(out + out_stride, s10, s11, s12, s13);
  if constexpr (R > 2) finish(out + 2 * out_stride, s20, s21, s22, s23);
}

template <int C, class W>
HWY_INLINE void MultiplyStrip(const float* const* x, int64_t rows, const typename W::Raw* w,
                              int64_t w_stride, int64_t depth, bool accumulate, float* out,
                              int64_t out_stride) {
  int64_t r = 0;
  for (; r + 3 <= rows; r += 3) {
    MultiplyTile<3, C, W>(x + r, w, w_stride, depth, accumulate, out + r * out_stride, out_stride);
  }
  if (rows - r == 2) {
    MultiplyTile<2, C, W>(x + r, w, w_stride, depth, accumulate, out + r * out_stride, out_stride);
  } else if (rows - r == 1) {
    MultiplyTile<1, C, W>(x + r, w, w_stride, depth, accumulate, out + r * out_stride, out_stride);
  }
}

template <class W>
void MultiplyColumns(const float* const* x, int64_t rows, const void* weight, int64_t w_stride,
                     int64_t columns, int64_t depth, bool accumulate, float* out,
                     int64_t out_stride) {
  const auto* w = static_cast<const typename W::Raw*>(weight);
  int64_t c = 0;
  for (; c + 4 <= columns; c += 4) {
    MultiplyStrip<4, W>(x, rows, w + c * w_stride, w_stride, depth, accumulate, out + c,
                        out_stride);
  }
  for (; c < columns; ++c) {
    MultiplyStrip<1, W>(x, rows, w + c * w_stride, w_stride, depth, accumulate, out + c,
                        out_stride);
  }
}

void Multiply(const float* const* x, int64_t rows, const void* w, DType w_dtype, int64_t w_stride,
              int64_t columns, int64_t depth, bool accumulate, float* out, int64_t out_stride) {
  switch (w_dtype) {
    case DType::kF16:
      return MultiplyColumns<F16>(x, rows, w, w_stride, columns, depth, accumulate, out,
                                  out_stride);
    case DType::kBF16:
      return MultiplyColumns<BF16>(x, rows, w, w_stride, columns, depth, accumulate, out,
                                   out_stride);
    default:
      return MultiplyColumns<F32>(x, rows, w, w_stride, columns, depth, accumulate, out,
                                  out_stride);
  }
}

template <class W>
void WidenAs(const void* from, int64_t count, float* out) {
  const Tag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* raw = static_cast<const typename W::Raw*>(from);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(W::Load(d, raw + i), d, out + i);
  if (i < count) {
    HWY_ALIGN float tail[hn::MaxLanes(d)];
    hn::Store(LoadTail<W>(d, raw + i, count - i), d, tail);
    std::memcpy(out + i, tail, static_cast<size_t>(count - i) * sizeof(float));
  }
}

void Widen(const void* from, DType dtype, int64_t count, float* out) {
  switch (dtype) {
    case DType::kF16:
      return WidenAs<F16>(from, count, out);
    case DType::kBF16:
      return WidenAs<BF16>(from, count, out);
    default:
      std::copy_n(static_cast<const float*>(from), count, out);
  }
}

// In squares of 16 through a buffer, so that reads and writes both run along cache lines.
template <class W>
void WidenTransposedAs(const void* from, int64_t from_stride, int64_t rows, int64_t columns,
                       float* out, int64_t out_stride) {
  const auto* raw = static_cast<const typename W::Raw*>(from);
  constexpr int64_t kSide = 16;
  float square[kSide][kSide];
  for (int64_t i = 0; i < rows; i += kSide) {
    const int64_t height = std::min(kSide, rows - i);
    for (int64_t j = 0; j < columns; j += kSide) {
      const int64_t width = std::min(kSide, columns - j);
      for (int64_t y = 0; y < height; ++y) {
        WidenAs<W>(raw + (i + y) * from_stride + j, width, square[y]);
      }
      for (int64_t x = 0; x < width; ++x) {
        float* to = out + (j + x) * out_stride + i;
        for (int64_t y = 0; y < height; ++y) to[y] = square[y][x];
      }
    }
  }
}

void WidenTransposed(const void* from, DType dtype, int64_t from_stride, int64_t rows,
                     int64_t columns, float* out, int64_t out_stride) {
  switch (dtype) {
    case DType::kF16:
      return WidenTransposedAs<F16>(from, from_stride, rows, columns, out, out_stride);
    case DType::kBF16:
      return WidenTransposedAs<BF16>(from, from_stride, rows, columns, out, out_stride);
    default:
      return WidenTransposedAs<F32>(from, from_stride, rows, columns, out, out_stride);
  }
}

void Narrow(const float* from, int64_t count, DType dtype, void* to) {
  const Tag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto* raw = static_cast<uint16_t*>(to);
  int64_t i = 0;
  switch (dtype) {
    case DType::kF16:
      for (; i + lanes <= count; i += lanes) StoreF16(d, hn::LoadU(d, from + i), raw + i);
      for (; i < count; ++i) raw[i] = f32_to_f16(from[i]);
      break;
    case DType::kBF16:
      for (; i + lanes <= count; i += lanes) StoreBf16(d, hn::LoadU(d, from + i), raw + i);
      for (; i < count; ++i) raw[i] = f32_to_bf16(from[i]);
      break;
    default:
      std::copy_n(from, count, static_cast<float*>(to));
  }
}

HWY_INLINE Vector Sigmoid(Tag d, Vector x) {
  const Vector one = hn::Set(d, 1.0f);
  return hn::Div(one, hn::Add(one, Exp(d, hn::Neg(x))));
}

HWY_INLINE Vector Activate(Tag d, Activation activation, Vector x) {
  switch (activation) {
    case Activation::kNone:
      return x;
    case Activation::kRelu:  // written so that a NaN stays
      return hn::IfThenZeroElse(hn::Lt(x, hn::Zero(d)), x);
    case Activation::kGelu: {
      const Vector half = hn::Mul(x, hn::Set(d, 0.5f));
      return hn::MulAdd(half, Erf(d, hn::Mul(x, hn::Set(d, 0.70710678f))), half);
    }
    case Activation::kGeluTanh: {
      // 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
      const Vector cubic = hn::MulAdd(hn::Mul(hn::Mul(x, x), x), hn::Set(d, 0.044715f), x);
      const Vector half = hn::Mul(x, hn::Set(d, 0.5f));
      return hn::MulAdd(half, Tanh(d, hn::Mul(cubic, hn::Set(d, 0.79788456f))), half);
    }
    case Activation::kSilu:
      return hn::Mul(x, Sigmoid(d, x));
    case Activation::kSigmoid:
      return Sigmoid(d, x);
    case Activation::kTanh:
      return Tanh(d, x);
  }
  return x;
}

void Finish(float* x, const float* bias, const float* residual, int activation, int64_t count) {
  const Tag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < count; i += lanes) {
    const bool whole = i + lanes <= count;
    const auto load = [&](const float* from) HWY_ATTR {
      return whole ? hn::LoadU(d, from + i) : LoadTail<F32>(d, from + i, count - i);
    };
    Vector value = load(x);
    if (bias != nullptr) value = hn::Add(value, load(bias));
    value = Activate(d, static_cast<Activation>(activation), value);
    if (residual != nullptr) value = hn::Add(value, load(residual));
    if (whole) {
      hn::StoreU(value, d, x + i);
    } else {
      HWY_ALIGN float tail[hn::MaxLanes(d)];
      hn::Store(value, d, tail);
      std::memcpy(x + i, tail, static_cast<size_t>(count - i) * sizeof(float));
    }
  }
}

const DenseKernels* GetDenseKernels() {
  static constexpr DenseKernels kKernels{Multiply, Widen, WidenTransposed, Narrow, Finish};
  return &kKernels;
}

}  // namespace
}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rlx::cpu {

HWY_EXPORT(GetDenseKernels);

const DenseKernels& dense_kernels() { return *HWY_DYNAMIC_DISPATCH(GetDenseKernels)(); }

}  // namespace rlx::cpu
#endif
