// The f32 tile operations and the 16-bit conversions, compiled once per vector target.
#include "backends/cpu/kernels/elementwise_tiles_f32.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "backends/cpu/kernels/simd.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/elementwise_tiles_f32.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/cpu/kernels/simd_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rlx::cpu::HWY_NAMESPACE {
namespace {

using FullTag = hn::ScalableTag<float>;

#define RLX_TILE_OP(Name, ...)                                                                  \
  struct Name {                                                                                 \
    template <class D, class V = hn::Vec<D>>                                                    \
    static HWY_INLINE V Apply([[maybe_unused]] D d, [[maybe_unused]] V a, [[maybe_unused]] V b, \
                              [[maybe_unused]] V c) {                                           \
      __VA_ARGS__                                                                               \
    }                                                                                           \
  };

// 1 or 0 by a mask.
template <class D, class M>
HWY_INLINE hn::Vec<D> Truth(D d, M mask) {
  return hn::IfThenElseZero(mask, hn::Set(d, 1.0f));
}
template <class D, class V>
HWY_INLINE auto IsTrue(D d, V x) {
  return hn::Not(hn::Eq(x, hn::Zero(d)));  // not Ne, which is false for NaN on some targets
}

RLX_TILE_OP(NegOp, return hn::Neg(a);)
RLX_TILE_OP(AbsOp, return hn::Abs(a);)
RLX_TILE_OP(SignOp, {
  const V one = hn::Set(d, 1.0f);
  const V positive = hn::IfThenElse(hn::Gt(a, hn::Zero(d)), one, a);
  return hn::IfThenElse(hn::Lt(a, hn::Zero(d)), hn::Neg(one), positive);
})
RLX_TILE_OP(FloorOp, return hn::Floor(a);)
RLX_TILE_OP(CeilOp, return hn::Ceil(a);)
RLX_TILE_OP(RoundOp, return hn::Round(a);)
RLX_TILE_OP(TruncOp, return hn::Trunc(a);)
RLX_TILE_OP(SqrtOp, return hn::Sqrt(a);)
RLX_TILE_OP(ExpOp, return Exp(d, a);)
RLX_TILE_OP(LogOp, return Log(d, a);)
RLX_TILE_OP(TanhOp, return Tanh(d, a);)
RLX_TILE_OP(ErfOp, return Erf(d, a);)
RLX_TILE_OP(SinOp, return SinOrCos<false>(d, a);)
RLX_TILE_OP(CosOp, return SinOrCos<true>(d, a);)
RLX_TILE_OP(LogicalNotOp, return Truth(d, hn::Eq(a, hn::Zero(d)));)
RLX_TILE_OP(AddOp, return hn::Add(a, b);)
RLX_TILE_OP(SubOp, return hn::Sub(a, b);)
RLX_TILE_OP(MulOp, return hn::Mul(a, b);)
RLX_TILE_OP(DivOp, return hn::Div(a, b);)
// The first of a and b that is NaN, or the smaller; a when equal.
RLX_TILE_OP(MinOp, {
  const V smaller = hn::IfThenElse(hn::Lt(b, a), b, a);
  return hn::IfThenElse(hn::Eq(a, a), hn::IfThenElse(hn::Eq(b, b), smaller, b), a);
})
RLX_TILE_OP(MaxOp, {
  const V larger = hn::IfThenElse(hn::Lt(a, b), b, a);
  return hn::IfThenElse(hn::Eq(a, a), hn::IfThenElse(hn::Eq(b, b), larger, b), a);
})
RLX_TILE_OP(EqualOp, return Truth(d, hn::Eq(a, b));)
RLX_TILE_OP(LessOp, return Truth(d, hn::Lt(a, b));)
RLX_TILE_OP(LessEqualOp, return Truth(d, hn::Le(a, b));)
RLX_TILE_OP(LogicalAndOp, return Truth(d, hn::And(IsTrue(d, a), IsTrue(d, b)));)
RLX_TILE_OP(LogicalOrOp, return Truth(d, hn::Or(IsTrue(d, a), IsTrue(d, b)));)
RLX_TILE_OP(LogicalXorOp, return Truth(d, hn::Xor(IsTrue(d, a), IsTrue(d, b)));)
RLX_TILE_OP(SelectOp, return hn::IfThenElse(IsTrue(d, a), b, c);)
#undef RLX_TILE_OP

template <class Op, int arity, class D = FullTag>
void RunTile(const void* pa, const void* pb, const void* pc, void* pout, int64_t n) {
  const D d;
  const int64_t step = static_cast<int64_t>(hn::Lanes(d));
  const float* a = static_cast<const float*>(pa);
  const float* b = static_cast<const float*>(pb);
  const float* c = static_cast<const float*>(pc);
  float* out = static_cast<float*>(pout);
  int64_t i = 0;
  for (; i + step <= n; i += step) {
    const auto va = hn::LoadU(d, a + i);
    const auto vb = arity > 1 ? hn::LoadU(d, b + i) : va;
    const auto vc = arity > 2 ? hn::LoadU(d, c + i) : va;
    hn::StoreU(Op::Apply(d, va, vb, vc), d, out + i);
  }
  if (i < n) {
    const size_t rest = static_cast<size_t>(n - i);
    const auto va = LoadPart(d, a + i, rest, 1.0f);
    const auto vb = arity > 1 ? LoadPart(d, b + i, rest, 1.0f) : va;
    const auto vc = arity > 2 ? LoadPart(d, c + i, rest, 1.0f) : va;
    StorePart(d, Op::Apply(d, va, vb, vc), out + i, rest);
  }
}

// Rare functions, one element at a time.
template <float (*function)(float, float)>
void RunScalar(const void* pa, const void* pb, const void*, void* pout, int64_t n) {
  const float* a = static_cast<const float*>(pa);
  const float* b = static_cast<const float*>(pb);
  float* out = static_cast<float*>(pout);
  for (int64_t i = 0; i < n; ++i) out[i] = function(a[i], b != nullptr ? b[i] : 0.0f);
}
float ScalarTan(float a, float) { return std::tan(a); }
float ScalarRem(float a, float b) { return std::fmod(a, b); }
float ScalarPow(float a, float b) { return std::pow(a, b); }

template <void (*block)(const uint16_t* from, float* to, int64_t n)>
void RunWiden(const void* from, int64_t, void* to, int64_t n) {
  block(static_cast<const uint16_t*>(from), static_cast<float*>(to), n);
}

#define RLX_WIDEN(Name, LoadHalf)                                                   \
  void Name(const uint16_t* from, float* to, int64_t n) {                           \
    const FullTag d;                                                                \
    const int64_t step = static_cast<int64_t>(hn::Lanes(d));                        \
    int64_t i = 0;                                                                  \
    for (; i + step <= n; i += step) hn::StoreU(LoadHalf(d, from + i), d, to + i);  \
    if (i < n) {                                                                    \
      uint16_t halves[hn::MaxLanes(FullTag())] = {};                                \
      HWY_ALIGN float lanes[hn::MaxLanes(FullTag())];                               \
      std::memcpy(halves, from + i, static_cast<size_t>(n - i) * sizeof(uint16_t)); \
      hn::Store(LoadHalf(d, halves), d, lanes);                                     \
      std::memcpy(to + i, lanes, static_cast<size_t>(n - i) * sizeof(float));       \
    }                                                                               \
  }
#define RLX_NARROW(Name, StoreHalf)                                                  \
  void Name(const float* from, uint16_t* to, int64_t n) {                            \
    const FullTag d;                                                                 \
    const int64_t step = static_cast<int64_t>(hn::Lanes(d));                         \
    int64_t i = 0;                                                                   \
    for (; i + step <= n; i += step) StoreHalf(d, hn::LoadU(d, from + i), to + i);   \
    if (i < n) {                                                                     \
      uint16_t halves[hn::MaxLanes(FullTag())];                                      \
      StoreHalf(d, LoadPart(d, from + i, static_cast<size_t>(n - i), 0.0f), halves); \
      std::memcpy(to + i, halves, static_cast<size_t>(n - i) * sizeof(uint16_t));    \
    }                                                                                \
  }
RLX_WIDEN(WidenF16, LoadF16)
RLX_WIDEN(WidenBf16, LoadBf16)
RLX_NARROW(NarrowF16, StoreF16)
RLX_NARROW(NarrowBf16, StoreBf16)
#undef RLX_WIDEN
#undef RLX_NARROW

}  // namespace

F32Tiles MakeF32Tiles() {
  F32Tiles tiles;
  tiles.widen_f16 = WidenF16;
  tiles.widen_bf16 = WidenBf16;
  tiles.narrow_f16 = NarrowF16;
  tiles.narrow_bf16 = NarrowBf16;
  auto set = [&tiles](FormulaOp op, TileFunction function) {
    tiles.functions[static_cast<size_t>(op)] = function;
  };
  set(FormulaOp::neg, RunTile<NegOp, 1>);
  set(FormulaOp::abs, RunTile<AbsOp, 1>);
  set(FormulaOp::sign, RunTile<SignOp, 1>);
  set(FormulaOp::floor, RunTile<FloorOp, 1>);
  set(FormulaOp::ceil, RunTile<CeilOp, 1>);
  set(FormulaOp::round, RunTile<RoundOp, 1>);
  set(FormulaOp::trunc, RunTile<TruncOp, 1>);
  set(FormulaOp::sqrt, RunTile<SqrtOp, 1>);
  set(FormulaOp::exp, RunTile<ExpOp, 1>);
  set(FormulaOp::log, RunTile<LogOp, 1>);
  set(FormulaOp::sin, RunTile<SinOp, 1, HalfTag>);
  set(FormulaOp::cos, RunTile<CosOp, 1, HalfTag>);
  set(FormulaOp::tan, RunScalar<ScalarTan>);
  set(FormulaOp::tanh, RunTile<TanhOp, 1>);
  set(FormulaOp::erf, RunTile<ErfOp, 1>);
  set(FormulaOp::logical_not, RunTile<LogicalNotOp, 1>);
  set(FormulaOp::add, RunTile<AddOp, 2>);
  set(FormulaOp::sub, RunTile<SubOp, 2>);
  set(FormulaOp::mul, RunTile<MulOp, 2>);
  set(FormulaOp::div, RunTile<DivOp, 2>);
  set(FormulaOp::rem, RunScalar<ScalarRem>);
  set(FormulaOp::pow, RunScalar<ScalarPow>);
  set(FormulaOp::min, RunTile<MinOp, 2>);
  set(FormulaOp::max, RunTile<MaxOp, 2>);
  set(FormulaOp::equal, RunTile<EqualOp, 2>);
  set(FormulaOp::less, RunTile<LessOp, 2>);
  set(FormulaOp::less_equal, RunTile<LessEqualOp, 2>);
  set(FormulaOp::logical_and, RunTile<LogicalAndOp, 2>);
  set(FormulaOp::logical_or, RunTile<LogicalOrOp, 2>);
  set(FormulaOp::logical_xor, RunTile<LogicalXorOp, 2>);
  set(FormulaOp::select, RunTile<SelectOp, 3>);
  return tiles;
}

}  // namespace rlx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rlx::cpu {
HWY_EXPORT(MakeF32Tiles);

const F32Tiles& f32_tiles() {
  static const F32Tiles tiles = HWY_DYNAMIC_DISPATCH(MakeF32Tiles)();
  return tiles;
}

F32Tiles make_f32_tiles_for_test() { return HWY_DYNAMIC_DISPATCH(MakeF32Tiles)(); }

}  // namespace rlx::cpu
#endif
