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

// to[i] = sum of the lanes of v_i.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void SumTree4(D d, V v0, V v1, V v2, V v3, float* to) {
#if HWY_TARGET == HWY_AVX2
  // ((l0 + l1) + (l2 + l3)) + ((l4 + l5) + (l6 + l7)): four sums in 3 horizontal additions and one
  // of halves.
  (void)d;
  const __m256 pairs01 = _mm256_hadd_ps(v0.raw, v1.raw);
  const __m256 pairs23 = _mm256_hadd_ps(v2.raw, v3.raw);
  const __m256 quads = _mm256_hadd_ps(pairs01, pairs23);
  _mm_storeu_ps(to, _mm_add_ps(_mm256_castps256_ps128(quads), _mm256_extractf128_ps(quads, 1)));
#else
  to[0] = hn::GetLane(hn::SumOfLanes(d, v0));
  to[1] = hn::GetLane(hn::SumOfLanes(d, v1));
  to[2] = hn::GetLane(hn::SumOfLanes(d, v2));
  to[3] = hn::GetLane(hn::SumOfLanes(d, v3));
#endif
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE float SumTree(D d, V v) {
#if HWY_TARGET == HWY_AVX2
  float sums[4];
  SumTree4(d, v, v, v, v, sums);
  return sums[0];
#else
  return hn::GetLane(hn::SumOfLanes(d, v));
#endif
}

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // RLX_MATMUL_SUM_INL_H_
