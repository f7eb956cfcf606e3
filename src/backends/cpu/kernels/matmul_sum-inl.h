// The sum of a vector's lanes as a fixed tree, one vector or four at a time with the same bits.
// Included once per Highway target.

// clang-format off
#if defined(RLX_MATMUL_SUM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RLX_MATMUL_SUM_INL_H_
#undef RLX_MATMUL_SUM_INL_H_
#else
#define RLX_MATMUL_SUM_INL_H_
#endif
// clang-format on

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Sum of the lanes: neighbours first, then neighbouring pairs, and so on:
// ((l0 + l1) + (l2 + l3)) + ((l4 + l5) + (l6 + l7)).
template <class D, class V = hn::Vec<D>>
HWY_INLINE float SumTree(D d, V v) {
#if HWY_TARGET == HWY_AVX2
  (void)d;
  const __m256 pairs = _mm256_hadd_ps(v.raw, v.raw);
  const __m256 quads = _mm256_hadd_ps(pairs, pairs);
  return _mm_cvtss_f32(_mm_add_ss(_mm256_castps256_ps128(quads), _mm256_extractf128_ps(quads, 1)));
#else
  HWY_ALIGN float lanes[hn::MaxLanes(d)];
  hn::Store(v, d, lanes);
  for (size_t count = hn::Lanes(d); count > 1; count /= 2) {
    for (size_t i = 0; i < count / 2; ++i) lanes[i] = lanes[2 * i] + lanes[2 * i + 1];
  }
  return lanes[0];
#endif
}

// to[i] = sum of the lanes of v_i.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void SumTree4(D d, V v0, V v1, V v2, V v3, float* to) {
#if HWY_TARGET == HWY_AVX2
  (void)d;
  const __m256 pairs01 = _mm256_hadd_ps(v0.raw, v1.raw);
  const __m256 pairs23 = _mm256_hadd_ps(v2.raw, v3.raw);
  const __m256 quads = _mm256_hadd_ps(pairs01, pairs23);
  _mm_storeu_ps(to, _mm_add_ps(_mm256_castps256_ps128(quads), _mm256_extractf128_ps(quads, 1)));
#else
  to[0] = SumTree(d, v0);
  to[1] = SumTree(d, v1);
  to[2] = SumTree(d, v2);
  to[3] = SumTree(d, v3);
#endif
}

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // RLX_MATMUL_SUM_INL_H_
