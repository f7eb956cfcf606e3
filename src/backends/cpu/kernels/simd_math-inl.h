// Vector functions on f32 for kernels: exp, log, tanh, erf, sin, cos, and conversion from and to
// the 16-bit floats. Within about 2 units in the last place of the true value (tests sweep them);
// NaN stays NaN, infinities and subnormal results are right. Included once per Highway target.
//
// Polynomials are minimax fits (Remez exchange) of the function named beside them over the interval
// named there; the approximation error of each is below 2^-27 of the result.

// clang-format off
#if defined(RLX_SIMD_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RLX_SIMD_MATH_INL_H_
#undef RLX_SIMD_MATH_INL_H_
#else
#define RLX_SIMD_MATH_INL_H_
#endif
// clang-format on

#include <hwy/highway.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// ln 2 in two parts: the first has 10 bits, so that its product with an exponent is exact.
inline constexpr float kLn2High = 0.693359375f;
inline constexpr float kLn2Low = -2.12194440e-4f;

template <class D, class V = hn::Vec<D>>
HWY_INLINE V Exp(D d, V x) {
  const hn::RebindToSigned<D> di;
  // x = n ln 2 + r with |r| <= ln 2 / 2.
  const V n = hn::Round(hn::Mul(x, hn::Set(d, 1.44269504f)));
  V r = hn::NegMulAdd(n, hn::Set(d, kLn2High), x);
  r = hn::NegMulAdd(n, hn::Set(d, kLn2Low), r);
  // (e^r - 1 - r) / r^2
  V p = hn::Set(d, 0.0013950492f);
  p = hn::MulAdd(p, r, hn::Set(d, 0.0083688894f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.0416662060f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.1666651884f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.5f));
  V y = hn::Add(hn::MulAdd(hn::Mul(r, r), p, r), hn::Set(d, 1.0f));
  // Times 2^n in two factors, since n reaches from -150 (subnormal results) to 128.
  const auto whole = hn::ConvertTo(di, n);
  const auto half = hn::ShiftRight<1>(whole);
  const auto bias = hn::Set(di, 127);
  y = hn::Mul(y, hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(half, bias))));
  y = hn::Mul(y, hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(hn::Sub(whole, half), bias))));
  y = hn::IfThenElse(hn::Gt(x, hn::Set(d, 89.0f)),
                     hn::Set(d, std::numeric_limits<float>::infinity()), y);
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -104.0f)), y);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V Log(D d, V x) {
  const hn::RebindToSigned<D> di;
  const auto is_subnormal = hn::Lt(x, hn::Set(d, std::numeric_limits<float>::min()));
  const V scaled = hn::IfThenElse(is_subnormal, hn::Mul(x, hn::Set(d, 0x1p25f)), x);
  // scaled = m 2^e with m in [sqrt(1/2), sqrt(2)); 0x3f3504f3 is sqrt(1/2).
  const auto low_bits = hn::Set(di, 0x3f3504f3);
  const auto bits = hn::Sub(hn::BitCast(di, scaled), low_bits);
  V e = hn::ConvertTo(d, hn::ShiftRight<23>(bits));
  e = hn::Sub(e, hn::IfThenElseZero(is_subnormal, hn::Set(d, 25.0f)));
  const V m = hn::BitCast(d, hn::Add(hn::And(bits, hn::Set(di, 0x007fffff)), low_bits));
  const V f = hn::Sub(m, hn::Set(d, 1.0f));
  // (log(1 + f) - f + f^2 / 2) / f^3
  V p = hn::Set(d, 0.0691686943f);
  p = hn::MulAdd(p, f, hn::Set(d, -0.1179050803f));
  p = hn::MulAdd(p, f, hn::Set(d, 0.1187261939f));
  p = hn::MulAdd(p, f, hn::Set(d, -0.1238420010f));
  p = hn::MulAdd(p, f, hn::Set(d, 0.1421869546f));
  p = hn::MulAdd(p, f, hn::Set(d, -0.1666926146f));
  p = hn::MulAdd(p, f, hn::Set(d, 0.2000222504f));
  p = hn::MulAdd(p, f, hn::Set(d, -0.2499998659f));
  p = hn::MulAdd(p, f, hn::Set(d, 0.3333331048f));
  const V f2 = hn::Mul(f, f);
  V y = hn::Mul(hn::Mul(f2, f), p);
  y = hn::MulAdd(e, hn::Set(d, kLn2Low), y);
  y = hn::NegMulAdd(f2, hn::Set(d, 0.5f), y);
  y = hn::MulAdd(e, hn::Set(d, kLn2High), hn::Add(f, y));
  const V infinity = hn::Set(d, std::numeric_limits<float>::infinity());
  y = hn::IfThenElse(hn::Lt(x, infinity), y, x);  // infinity and NaN are their own logarithm
  y = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Set(d, std::numeric_limits<float>::quiet_NaN()),
                     y);
  return hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Neg(infinity), y);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V Tanh(D d, V x) {
  const V magnitude = hn::Abs(x);
  const V one = hn::Set(d, 1.0f);
  // Near zero, with z = x^2 <= 0.4: (tanh(x) / x - 1) / z
  const V z = hn::Mul(x, x);
  V p = hn::Set(d, 0.0021228488f);
  p = hn::MulAdd(p, z, hn::Set(d, -0.0081564393f));
  p = hn::MulAdd(p, z, hn::Set(d, 0.0216926951f));
  p = hn::MulAdd(p, z, hn::Set(d, -0.0539453998f));
  p = hn::MulAdd(p, z, hn::Set(d, 0.1333319545f));
  p = hn::MulAdd(p, z, hn::Set(d, -0.3333333135f));
  const V near_zero = hn::MulAdd(hn::Mul(x, z), p, x);
  // Elsewhere: 1 - 2 / (e^(2|x|) + 1)
  const V e = Exp(d, hn::Add(magnitude, magnitude));
  const V far = hn::Sub(one, hn::Div(hn::Set(d, 2.0f), hn::Add(e, one)));
  return hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, 0.625f)), near_zero, hn::CopySign(far, x));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V Erf(D d, V x) {
  const V magnitude = hn::Abs(x);
  const V one = hn::Set(d, 1.0f);
  // |x| < 1, with z = x^2: erf(x) / x - 1
  const V z = hn::Mul(x, x);
  V p = hn::Set(d, 7.8891193e-05f);
  p = hn::MulAdd(p, z, hn::Set(d, -0.00080208457f));
  p = hn::MulAdd(p, z, hn::Set(d, 0.0051895366f));
  p = hn::MulAdd(p, z, hn::Set(d, -0.0268544462f));
  p = hn::MulAdd(p, z, hn::Set(d, 0.1128360033f));
  p = hn::MulAdd(p, z, hn::Set(d, -0.3761262596f));
  p = hn::MulAdd(p, z, hn::Set(d, 0.1283791661f));
  const V near_zero = hn::MulAdd(x, p, x);
  // 1 <= |x| <= 4: -log(1 - erf(|x|)); beyond, erf rounds to 1.
  V q = hn::Set(d, 2.1686643e-05f);
  q = hn::MulAdd(q, magnitude, hn::Set(d, -0.00044133380f));
  q = hn::MulAdd(q, magnitude, hn::Set(d, 0.0042045484f));
  q = hn::MulAdd(q, magnitude, hn::Set(d, -0.0252082180f));
  q = hn::MulAdd(q, magnitude, hn::Set(d, 0.1084185168f));
  q = hn::MulAdd(q, magnitude, hn::Set(d, 0.6332199574f));
  q = hn::MulAdd(q, magnitude, hn::Set(d, 1.1295783520f));
  q = hn::MulAdd(q, magnitude, hn::Set(d, -0.00018803266f));
  V far = hn::Sub(one, Exp(d, hn::Neg(q)));
  far = hn::IfThenElse(hn::Gt(magnitude, hn::Set(d, 4.0f)), one, far);
  return hn::IfThenElse(hn::Lt(magnitude, one), near_zero, hn::CopySign(far, x));
}

// The f32 vectors that widen to one vector of f64.
using HalfTag = hn::Rebind<float, hn::ScalableTag<double>>;

// Beyond this the reduction of an angle below loses digits, and std::sin takes over.
inline constexpr float kAngleLimit = 1.6e6f;

// Sine or cosine of a vector of HalfTag, in f64: f32 cannot hold the reduced angle of a large one.
template <bool kCosine, class V>
HWY_INLINE V SinOrCos([[maybe_unused]] HalfTag d, V x) {
  const hn::ScalableTag<double> d64;
  const hn::RebindToSigned<decltype(d64)> di64;
  const hn::Rebind<int32_t, decltype(d64)> di32;
  if (HWY_UNLIKELY(!hn::AllTrue(d, hn::Lt(hn::Abs(x), hn::Set(d, kAngleLimit))))) {
    HWY_ALIGN float lanes[hn::MaxLanes(d)];
    hn::Store(x, d, lanes);
    for (size_t i = 0; i < hn::Lanes(d); ++i) {
      const double angle = lanes[i];
      lanes[i] = static_cast<float>(kCosine ? std::cos(angle) : std::sin(angle));
    }
    return hn::Load(d, lanes);
  }
  // x = n pi / 2 + r with |r| <= pi / 4; the first part of pi / 2 has 33 bits and n at most 20, so
  // that their product is exact.
  const auto wide = hn::PromoteTo(d64, x);
  const auto n = hn::Round(hn::Mul(wide, hn::Set(d64, 0.63661977236758134308)));
  auto r = hn::NegMulAdd(n, hn::Set(d64, 1.57079632673412561417e+00), wide);
  r = hn::NegMulAdd(n, hn::Set(d64, 6.07710050650619224932e-11), r);
  const auto z = hn::Mul(r, r);
  // (sin(r) / r - 1) / z
  auto s = hn::Set(d64, -2.476142079307795e-08);
  s = hn::MulAdd(s, z, hn::Set(d64, 2.7555354762701354e-06));
  s = hn::MulAdd(s, z, hn::Set(d64, -0.00019841263810087056));
  s = hn::MulAdd(s, z, hn::Set(d64, 0.008333333325250936));
  s = hn::MulAdd(s, z, hn::Set(d64, -0.16666666666631494));
  const auto sine = hn::MulAdd(hn::Mul(r, z), s, r);
  // (cos(r) - 1 + z / 2) / z^2
  auto c = hn::Set(d64, -2.7209893134020183e-07);
  c = hn::MulAdd(c, z, hn::Set(d64, 2.479951589372e-05));
  c = hn::MulAdd(c, z, hn::Set(d64, -0.0013888883738059237));
  c = hn::MulAdd(c, z, hn::Set(d64, 0.04166666662265331));
  const auto cosine = hn::MulAdd(hn::MulAdd(z, c, hn::Set(d64, -0.5)), z, hn::Set(d64, 1.0));
  // The quarter turn n mod 4 says which of the two, and its sign.
  auto quarter = hn::PromoteTo(di64, hn::DemoteTo(di32, n));
  if (kCosine) quarter = hn::Add(quarter, hn::Set(di64, 1));
  const auto takes_sine =
      hn::RebindMask(d64, hn::Eq(hn::And(quarter, hn::Set(di64, 1)), hn::Zero(di64)));
  const auto sign = hn::ShiftLeft<62>(hn::And(quarter, hn::Set(di64, 2)));
  const auto value = hn::IfThenElse(takes_sine, sine, cosine);
  return hn::DemoteTo(d, hn::Xor(value, hn::BitCast(d64, sign)));
}

// A vector whose first `count` lanes come from memory and the others hold `fill`; and the reverse.
template <class D>
HWY_INLINE hn::Vec<D> LoadPart(D d, const float* from, size_t count, float fill) {
  HWY_ALIGN float lanes[hn::MaxLanes(D())];
  hn::Store(hn::Set(d, fill), d, lanes);
  std::memcpy(lanes, from, count * sizeof(float));
  return hn::Load(d, lanes);
}
template <class D>
HWY_INLINE void StorePart(D d, hn::Vec<D> value, float* to, size_t count) {
  HWY_ALIGN float lanes[hn::MaxLanes(D())];
  hn::Store(value, d, lanes);
  std::memcpy(to, lanes, count * sizeof(float));
}

// The f32 values of Lanes(d) 16-bit floats, and back, rounding to nearest even.
template <class D>
HWY_INLINE hn::Vec<D> LoadBf16([[maybe_unused]] D d, const uint16_t* HWY_RESTRICT from) {
  const hn::Rebind<uint16_t, D> d16;
  const hn::RebindToUnsigned<D> d32;
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(d32, hn::LoadU(d16, from))));
}

template <class D>
HWY_INLINE void StoreBf16([[maybe_unused]] D d, hn::Vec<D> value, uint16_t* HWY_RESTRICT to) {
  const hn::RebindToUnsigned<D> d32;
  const hn::RebindToSigned<D> di32;
  const hn::Rebind<uint16_t, D> d16;
  const auto bits = hn::BitCast(d32, value);
  const auto even = hn::And(hn::ShiftRight<16>(bits), hn::Set(d32, 1));
  const auto rounded = hn::Add(bits, hn::Add(even, hn::Set(d32, 0x7fff)));
  const auto is_nan = hn::RebindMask(d32, hn::IsNaN(value));
  const auto kept = hn::IfThenElse(is_nan, hn::Or(bits, hn::Set(d32, 0x00400000)), rounded);
  hn::StoreU(hn::DemoteTo(d16, hn::BitCast(di32, hn::ShiftRight<16>(kept))), d16, to);
}

template <class D>
HWY_INLINE hn::Vec<D> LoadF16([[maybe_unused]] D d, const uint16_t* HWY_RESTRICT from) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_NEON
  const hn::Rebind<hwy::float16_t, D> d16;
  return hn::PromoteTo(d, hn::LoadU(d16, reinterpret_cast<const hwy::float16_t*>(from)));
#else
  const hn::Rebind<uint16_t, D> d16;
  const hn::RebindToUnsigned<D> d32;
  const auto bits = hn::PromoteTo(d32, hn::LoadU(d16, from));
  const auto sign = hn::ShiftLeft<16>(hn::And(bits, hn::Set(d32, 0x8000)));
  const auto magnitude = hn::ShiftLeft<13>(hn::And(bits, hn::Set(d32, 0x7fff)));
  // Multiplying by 2^112 moves the exponent's bias from 15 to 127, also of subnormals.
  const auto finite = hn::BitCast(d32, hn::Mul(hn::BitCast(d, magnitude), hn::Set(d, 0x1p112f)));
  const hn::RebindToSigned<D> di32;
  const auto signed_magnitude = hn::BitCast(di32, magnitude);
  const auto is_special =
      hn::RebindMask(d32, hn::Gt(signed_magnitude, hn::Set(di32, (0x7c00 << 13) - 1)));
  const auto is_nan = hn::RebindMask(d32, hn::Gt(signed_magnitude, hn::Set(di32, 0x7c00 << 13)));
  auto special = hn::Or(magnitude, hn::Set(d32, 0x7f800000));
  special = hn::Or(special, hn::IfThenElseZero(is_nan, hn::Set(d32, 0x00400000)));
  return hn::BitCast(d, hn::Or(sign, hn::IfThenElse(is_special, special, finite)));
#endif
}

template <class D>
HWY_INLINE void StoreF16([[maybe_unused]] D d, hn::Vec<D> value, uint16_t* HWY_RESTRICT to) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_NEON
  const hn::Rebind<hwy::float16_t, D> d16;
  hn::StoreU(hn::DemoteTo(d16, value), d16, reinterpret_cast<hwy::float16_t*>(to));
#else
  const hn::RebindToSigned<D> d32;
  const hn::Rebind<uint16_t, D> d16;
  // As f32_to_f16_portable of tensor/half.h.
  const auto bits = hn::BitCast(d32, value);
  const auto sign = hn::And(hn::ShiftRight<16>(bits), hn::Set(d32, 0x8000));
  const auto magnitude = hn::And(bits, hn::Set(d32, 0x7fffffff));
  const auto even = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(d32, 1));
  const auto normal =
      hn::ShiftRight<13>(hn::Add(hn::Sub(magnitude, hn::Set(d32, (112 << 23) - 0x0fff)), even));
  const auto shifted = hn::Add(hn::BitCast(d, magnitude), hn::Set(d, 0.5f));
  const auto subnormal = hn::Sub(hn::BitCast(d32, shifted), hn::Set(d32, 0x3f000000));
  auto result = hn::IfThenElse(hn::Lt(magnitude, hn::Set(d32, 0x38800000)), subnormal, normal);
  result =
      hn::IfThenElse(hn::Gt(magnitude, hn::Set(d32, 0x477fefff)), hn::Set(d32, 0x7c00), result);
  const auto nan =
      hn::Or(hn::And(hn::ShiftRight<13>(magnitude), hn::Set(d32, 0x03ff)), hn::Set(d32, 0x7e00));
  result = hn::IfThenElse(hn::Gt(magnitude, hn::Set(d32, 0x7f800000)), nan, result);
  hn::StoreU(hn::DemoteTo(d16, hn::Or(result, sign)), d16, to);
#endif
}

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // RLX_SIMD_MATH_INL_H_
