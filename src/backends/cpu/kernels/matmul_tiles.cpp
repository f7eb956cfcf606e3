#include "backends/cpu/kernels/matmul_tiles.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

#include "backends/cpu/kernels/simd.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/matmul_tiles.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/cpu/kernels/simd_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {
namespace {

using Tag = hn::ScalableTag<float>;
using Vector = hn::Vec<Tag>;

int64_t lanes() { return static_cast<int64_t>(hn::Lanes(Tag())); }

// Floats between the classes of a row and of a panel: a cache line more than they take, else all
// would lie in one set of the cache.
int64_t row_class_stride() { return kDepthPart / lanes() + 8; }
int64_t panel_class_stride() { return 2 * lanes() * (kDepthPart / lanes()) + 16; }

HWY_INLINE Vector LoadWhole(DType dtype, const void* from, int64_t i) {
  const Tag d;
  switch (dtype) {
    case DType::kF16:
      return LoadF16(d, static_cast<const uint16_t*>(from) + i);
    case DType::kBF16:
      return LoadBf16(d, static_cast<const uint16_t*>(from) + i);
    default:
      return hn::LoadU(d, static_cast<const float*>(from) + i);
  }
}

// Elements [i, i + lanes) as f32, zeros from `end` on.
template <DType kDType>
HWY_INLINE Vector LoadSome(const void* from, int64_t i, int64_t end) {
  const Tag d;
  const auto whole = static_cast<int64_t>(hn::Lanes(d));
  if (i + whole <= end) return LoadWhole(kDType, from, i);
  if (i >= end) return hn::Zero(d);
  constexpr size_t kElement = kDType == DType::kF32 ? 4 : 2;
  HWY_ALIGN float part[hn::MaxLanes(d)] = {};
  std::memcpy(part, static_cast<const char*>(from) + i * static_cast<int64_t>(kElement),
              static_cast<size_t>(end - i) * kElement);
  return LoadWhole(kDType, part, 0);
}

// Stores element y of vector x at to[y * stride + x], for as many vectors as a vector has lanes.
template <class Load>
HWY_INLINE void StoreTransposed(Load load, float* to, int64_t stride) {
  const Tag d;
#if HWY_TARGET == HWY_AVX2
  const __m256 v0 = load(0).raw, v1 = load(1).raw, v2 = load(2).raw, v3 = load(3).raw;
  const __m256 v4 = load(4).raw, v5 = load(5).raw, v6 = load(6).raw, v7 = load(7).raw;
  const __m256 a0 = _mm256_unpacklo_ps(v0, v1), a1 = _mm256_unpackhi_ps(v0, v1);
  const __m256 a2 = _mm256_unpacklo_ps(v2, v3), a3 = _mm256_unpackhi_ps(v2, v3);
  const __m256 a4 = _mm256_unpacklo_ps(v4, v5), a5 = _mm256_unpackhi_ps(v4, v5);
  const __m256 a6 = _mm256_unpacklo_ps(v6, v7), a7 = _mm256_unpackhi_ps(v6, v7);
  const auto low = [](__m256 a, __m256 b) HWY_ATTR { return _mm256_shuffle_ps(a, b, 0x44); };
  const auto high = [](__m256 a, __m256 b) HWY_ATTR { return _mm256_shuffle_ps(a, b, 0xee); };
  const __m256 b0 = low(a0, a2), b1 = high(a0, a2), b2 = low(a1, a3), b3 = high(a1, a3);
  const __m256 b4 = low(a4, a6), b5 = high(a4, a6), b6 = low(a5, a7), b7 = high(a5, a7);
  _mm256_storeu_ps(to, _mm256_permute2f128_ps(b0, b4, 0x20));
  _mm256_storeu_ps(to + stride, _mm256_permute2f128_ps(b1, b5, 0x20));
  _mm256_storeu_ps(to + 2 * stride, _mm256_permute2f128_ps(b2, b6, 0x20));
  _mm256_storeu_ps(to + 3 * stride, _mm256_permute2f128_ps(b3, b7, 0x20));
  _mm256_storeu_ps(to + 4 * stride, _mm256_permute2f128_ps(b0, b4, 0x31));
  _mm256_storeu_ps(to + 5 * stride, _mm256_permute2f128_ps(b1, b5, 0x31));
  _mm256_storeu_ps(to + 6 * stride, _mm256_permute2f128_ps(b2, b6, 0x31));
  _mm256_storeu_ps(to + 7 * stride, _mm256_permute2f128_ps(b3, b7, 0x31));
  (void)d;
#else
  HWY_ALIGN float square[hn::MaxLanes(d) * hn::MaxLanes(d)];
  const size_t side = hn::Lanes(d);
  for (size_t x = 0; x < side; ++x) {
    hn::Store(load(static_cast<int64_t>(x)), d, square + x * side);
  }
  for (size_t y = 0; y < side; ++y) {
    for (size_t x = 0; x < side; ++x) {
      to[static_cast<int64_t>(y) * stride + static_cast<int64_t>(x)] = square[x * side + y];
    }
  }
#endif
}

template <DType kDType>
void PackRowAs(const void* x, int64_t depth, float* to) {
  const int64_t width = lanes(), steps = (depth + width - 1) / width;
  for (int64_t i = 0; i < steps; i += width) {
    StoreTransposed([&](int64_t v) HWY_ATTR { return LoadSome<kDType>(x, (i + v) * width, depth); },
                    to + i, row_class_stride());
  }
}

void PackRow(const void* x, DType dtype, int64_t depth, float* to) {
  switch (dtype) {
    case DType::kF16:
      return PackRowAs<DType::kF16>(x, depth, to);
    case DType::kBF16:
      return PackRowAs<DType::kBF16>(x, depth, to);
    default:
      return PackRowAs<DType::kF32>(x, depth, to);
  }
}

// Step i of the columns [half * width, ...), which are all there for the whole step or (not kWhole)
// perhaps not.
template <DType kDType, bool kWhole>
HWY_INLINE void PackStep(const char* from, int64_t stride_bytes, int64_t columns, int64_t at,
                         int64_t depth, float* to) {
  StoreTransposed(
      [&](int64_t v) HWY_ATTR {
        const char* column = from + v * stride_bytes;
        if constexpr (kWhole) return LoadWhole(kDType, column, at);
        return LoadSome<kDType>(column, at, v < columns ? depth : 0);
      },
      to, panel_class_stride());
}

template <DType kDType>
void PackPanelAs(const void* w, int64_t w_stride, int64_t columns, int64_t depth, float* panel) {
  const int64_t stride_bytes = w_stride * (kDType == DType::kF32 ? 4 : 2);
  const int64_t width = lanes(), steps = (depth + width - 1) / width;
  for (int64_t half = 0; half < 2; ++half) {
    const char* from = static_cast<const char*>(w) + half * width * stride_bytes;
    const int64_t present = columns - half * width;
    float* to = panel + half * width;
    int64_t i = 0;
    if (present >= width) {
      for (; (i + 1) * width <= depth; ++i) {
        PackStep<kDType, true>(from, stride_bytes, present, i * width, depth, to + i * 2 * width);
      }
    }
    for (; i < steps; ++i) {
      PackStep<kDType, false>(from, stride_bytes, present, i * width, depth, to + i * 2 * width);
    }
  }
}

void PackPanel(const void* w, DType dtype, int64_t w_stride, int64_t columns, int64_t depth,
               float* panel) {
  switch (dtype) {
    case DType::kF16:
      return PackPanelAs<DType::kF16>(w, w_stride, columns, depth, panel);
    case DType::kBF16:
      return PackPanelAs<DType::kBF16>(w, w_stride, columns, depth, panel);
    default:
      return PackPanelAs<DType::kF32>(w, w_stride, columns, depth, panel);
  }
}

// Adds the sum of one class of one row. Like a binary counter: class c takes over the sums of as
// many levels as c ends in ones (kLevels) and becomes the sum of the next level, or the result.
template <int kLevels, bool kLast>
HWY_INLINE void StoreSums(Vector sum0, Vector sum1, float* work, int64_t level_stride,
                          bool accumulate, float* out) {
  const Tag d;
  const auto width = static_cast<int64_t>(hn::Lanes(d));
  for (int k = 0; k < kLevels; ++k, work += level_stride) {
    sum0 = hn::Add(hn::LoadU(d, work), sum0);
    sum1 = hn::Add(hn::LoadU(d, work + width), sum1);
  }
  float* to = kLast ? out : work;
  if (kLast && accumulate) {
    sum0 = hn::Add(hn::LoadU(d, to), sum0);
    sum1 = hn::Add(hn::LoadU(d, to + width), sum1);
  }
  hn::StoreU(sum0, d, to);
  hn::StoreU(sum1, d, to + width);
}

// R <= 6 rows times two vectors of columns: 12 sums, two vectors of the panel and an element of a
// row fill the 16 registers of AVX2, and 8 loads feed 12 multiply-adds. Named, since gcc keeps an
// array of them in memory.
//
// The next rows are asked for while these are multiplied: they come from the third level, and their
// runs are too short for hardware prefetching to get going.
template <int R, int kLevels, bool kLast>
HWY_INLINE void MultiplyClass(const float* const* x, const float* const* next, const float* panel,
                              int64_t steps, float* work, int64_t level_stride, bool accumulate,
                              float* out) {
  const Tag d;
  const auto width = static_cast<int64_t>(hn::Lanes(d));
  const float *x0 = x[0], *x1 = x[R > 1 ? 1 : 0], *x2 = x[R > 2 ? 2 : 0];
  const float *x3 = x[R > 3 ? 3 : 0], *x4 = x[R > 4 ? 4 : 0], *x5 = x[R > 5 ? 5 : 0];
  Vector s00 = hn::Zero(d), s01 = s00, s10 = s00, s11 = s00, s20 = s00, s21 = s00;
  Vector s30 = s00, s31 = s00, s40 = s00, s41 = s00, s50 = s00, s51 = s00;
  constexpr int64_t kLine = 16;
  for (int64_t begin = 0; begin < steps; begin += kLine) {
    for (int r = 0; r < R; ++r) hwy::Prefetch(next[r] + begin);
    const int64_t end = std::min(begin + kLine, steps);
#pragma GCC unroll 4
    for (int64_t i = begin; i < end; ++i, panel += 2 * width) {
      const Vector w0 = hn::Load(d, panel), w1 = hn::Load(d, panel + width);
      Vector a = hn::Set(d, x0[i]);
      s00 = hn::MulAdd(a, w0, s00), s01 = hn::MulAdd(a, w1, s01);
      if constexpr (R > 1) {
        a = hn::Set(d, x1[i]);
        s10 = hn::MulAdd(a, w0, s10), s11 = hn::MulAdd(a, w1, s11);
      }
      if constexpr (R > 2) {
        a = hn::Set(d, x2[i]);
        s20 = hn::MulAdd(a, w0, s20), s21 = hn::MulAdd(a, w1, s21);
      }
      if constexpr (R > 3) {
        a = hn::Set(d, x3[i]);
        s30 = hn::MulAdd(a, w0, s30), s31 = hn::MulAdd(a, w1, s31);
      }
      if constexpr (R > 4) {
        a = hn::Set(d, x4[i]);
        s40 = hn::MulAdd(a, w0, s40), s41 = hn::MulAdd(a, w1, s41);
      }
      if constexpr (R > 5) {
        a = hn::Set(d, x5[i]);
        s50 = hn::MulAdd(a, w0, s50), s51 = hn::MulAdd(a, w1, s51);
      }
    }
  }
  const auto store = [&](Vector sum0, Vector sum1) HWY_ATTR {
    StoreSums<kLevels, kLast>(sum0, sum1, work, level_stride, accumulate, out);
    work += 2 * width;
    out += 2 * width;
  };
  store(s00, s01);
  if constexpr (R > 1) store(s10, s11);
  if constexpr (R > 2) store(s20, s21);
  if constexpr (R > 3) store(s30, s31);
  if constexpr (R > 4) store(s40, s41);
  if constexpr (R > 5) store(s50, s51);
}

struct Call {
  const float* x;
  int64_t x_stride;
  const int32_t* row_of;
  int64_t rows;
  const float* panel;
  int64_t steps;
  bool accumulate;
  float* work;
  float* out;
};

// Where the rows from r on lie for class c; the last is repeated up to 6.
HWY_INLINE void FindRows(const Call& call, int64_t c, int64_t r, const float** to) {
  const int64_t last = call.rows - 1;
  for (int64_t i = 0; i < 6; ++i) {
    const int64_t place = std::min(r + i, last);
    const int64_t row = call.row_of != nullptr ? call.row_of[place] : place;
    to[i] = call.x + row * call.x_stride + c * row_class_stride();
  }
}

template <int kLevels, bool kLast>
void MultiplyRows(const Call& call, int64_t c) {
  const int64_t columns = 2 * lanes(), level_stride = call.rows * columns;
  const float* panel = call.panel + c * panel_class_stride();
  const float* rows[2][6];
  FindRows(call, c, 0, rows[0]);
  int64_t r = 0;
  for (int which = 0; r + 6 <= call.rows; r += 6, which ^= 1) {
    const bool more = r + 6 < call.rows;
    FindRows(call, more || kLast ? c : c + 1, more ? r + 6 : 0, rows[which ^ 1]);
    MultiplyClass<6, kLevels, kLast>(rows[which], rows[which ^ 1], panel, call.steps,
                                     call.work + r * columns, level_stride, call.accumulate,
                                     call.out + r * columns);
  }
  if (r == call.rows) return;
  FindRows(call, c, r, rows[0]);
  FindRows(call, kLast ? c : c + 1, 0, rows[1]);
  const auto multiply = [&](auto count) HWY_ATTR {
    MultiplyClass<count(), kLevels, kLast>(rows[0], rows[1], panel, call.steps,
                                           call.work + r * columns, level_stride, call.accumulate,
                                           call.out + r * columns);
  };
  switch (call.rows - r) {
    case 1:
      return multiply(std::integral_constant<int, 1>());
    case 2:
      return multiply(std::integral_constant<int, 2>());
    case 3:
      return multiply(std::integral_constant<int, 3>());
    case 4:
      return multiply(std::integral_constant<int, 4>());
    default:
      return multiply(std::integral_constant<int, 5>());
  }
}

// Classes 0 to 2^kLevels - 1, that is kLevels levels.
template <int kLevels>
HWY_INLINE void MultiplyClasses(const Call& call) {
  constexpr int64_t kClasses = int64_t{1} << kLevels;
  for (int64_t c = 0; c + 1 < kClasses; ++c) {
    switch (std::countr_one(static_cast<uint64_t>(c))) {
      case 0:
        MultiplyRows<0, false>(call, c);
        break;
      case 1:
        MultiplyRows<1, false>(call, c);
        break;
      case 2:
        MultiplyRows<2, false>(call, c);
        break;
      default:
        MultiplyRows<3, false>(call, c);
    }
  }
  MultiplyRows<kLevels, true>(call, kClasses - 1);
}

void Multiply(const float* x, int64_t x_stride, const int32_t* row_of, int64_t rows,
              const float* panel, int64_t depth, bool accumulate, float* work, float* out) {
  const Call call{x,          x_stride, row_of, rows, panel, (depth + lanes() - 1) / lanes(),
                  accumulate, work,     out};
  constexpr int kLevels = std::countr_zero(static_cast<unsigned>(hn::MaxLanes(Tag())));
  static_assert(kLevels <= kMaxLevels);
  MultiplyClasses<kLevels>(call);
}

const TileKernels* GetTileKernels() {
  static const TileKernels kKernels{
      2 * lanes(), lanes() * row_class_stride(), lanes() * panel_class_stride(), PackRow, PackPanel,
      Multiply};
  return &kKernels;
}

}  // namespace
}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rlx::cpu {

HWY_EXPORT(GetTileKernels);

const TileKernels& tile_kernels() { return *HWY_DYNAMIC_DISPATCH(GetTileKernels)(); }

}  // namespace rlx::cpu
#endif
