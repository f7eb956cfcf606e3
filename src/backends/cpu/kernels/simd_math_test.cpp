// Sweeps the f32 functions against the C library in double, on every vector target that this
// processor has.
#include <gtest/gtest.h>
#include <hwy/highway.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "backends/cpu/kernels/elementwise_tiles_f32.h"
#include "backends/cpu/kernels/norm_rows.h"
#include "backends/cpu/kernels/simd.h"
#include "tensor/half.h"

namespace rlx::cpu {
namespace {

// Calls body(tiles) for each target that is both compiled and supported.
template <typename Body>
void for_each_target(Body&& body) {
  const int64_t targets = hwy::SupportedTargets() & HWY_TARGETS;
  for (int64_t rest = targets; rest != 0; rest &= rest - 1) {
    const int64_t target = rest & -rest;
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    SCOPED_TRACE(hwy::TargetName(target));
    body(make_f32_tiles_for_test());
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

// The distance in units of the expected value's last place.
double distance_in_ulp(float actual, double expected) {
  const float nearest = static_cast<float>(expected);
  if (std::isnan(expected)) return std::isnan(actual) ? 0 : 1e30;
  if (std::isinf(nearest)) return actual == nearest ? 0 : 1e30;
  if (!std::isfinite(actual)) return 1e30;
  int exponent = 0;
  std::frexp(expected, &exponent);
  const double ulp = std::ldexp(1.0, std::max(exponent - 24, -149));
  return std::abs(actual - expected) / ulp;
}

// Every `stride`th bit pattern: all exponents, both signs, subnormals, infinities and NaN.
std::vector<float> sweep_patterns(uint32_t stride) {
  std::vector<float> values;
  for (uint64_t bits = 0; bits < (1ull << 32); bits += stride) {
    values.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  }
  for (float special :
       {0.0f, -0.0f, std::numeric_limits<float>::infinity(),
        -std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN(),
        std::numeric_limits<float>::denorm_min(), std::numeric_limits<float>::min(),
        std::numeric_limits<float>::max(), std::numeric_limits<float>::lowest(), 88.72283f,
        88.72284f, -87.33655f, -103.97208f, -103.97209f, 1.0f, -1.0f, 0.625f, 4.0f}) {
    values.push_back(special);
  }
  return values;
}

std::vector<float> sweep_range(float low, float high, int count) {
  std::vector<float> values;
  for (int i = 0; i <= count; ++i) {
    values.push_back(static_cast<float>(low + (static_cast<double>(high) - low) * i / count));
  }
  return values;
}

void expect_accurate(const F32Tiles& tiles, FormulaOp op, double (*function)(double),
                     const std::vector<float>& values, double limit) {
  std::vector<float> out(values.size(), -12345.0f);
  tiles.functions[static_cast<size_t>(op)](values.data(), nullptr, nullptr, out.data(),
                                           static_cast<int64_t>(values.size()));
  double worst = 0;
  float where = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double distance = distance_in_ulp(out[i], function(values[i]));
    if (distance > worst) {
      worst = distance;
      where = values[i];
    }
  }
  EXPECT_LE(worst, limit) << to_string(op) << " at " << where;
  ::testing::Test::RecordProperty(std::string(to_string(op)), std::to_string(worst));
}

TEST(SimdMath, IsAccurateOverAllExponents) {
  const std::vector<float> values = sweep_patterns(20011);
  for_each_target([&](const F32Tiles& tiles) {
    expect_accurate(tiles, FormulaOp::exp, std::exp, values, 2.0);
    expect_accurate(tiles, FormulaOp::log, std::log, values, 2.0);
    expect_accurate(tiles, FormulaOp::tanh, std::tanh, values, 2.0);
    expect_accurate(tiles, FormulaOp::erf, std::erf, values, 2.0);
    expect_accurate(tiles, FormulaOp::sin, std::sin, values, 1.0);
    expect_accurate(tiles, FormulaOp::cos, std::cos, values, 1.0);
    expect_accurate(tiles, FormulaOp::tan, std::tan, values, 1.0);
    expect_accurate(tiles, FormulaOp::sqrt, std::sqrt, values, 0.5);
  });
}

TEST(SimdMath, IsAccurateWhereItMatters) {
  for_each_target([&](const F32Tiles& tiles) {
    expect_accurate(tiles, FormulaOp::exp, std::exp, sweep_range(-104, 89, 200001), 2.0);
    expect_accurate(tiles, FormulaOp::log, std::log, sweep_range(0.5, 2, 200001), 2.0);
    expect_accurate(tiles, FormulaOp::tanh, std::tanh, sweep_range(-2, 2, 200001), 2.0);
    expect_accurate(tiles, FormulaOp::erf, std::erf, sweep_range(-4.5, 4.5, 200001), 2.0);
    expect_accurate(tiles, FormulaOp::sin, std::sin, sweep_range(-10, 10, 100001), 1.0);
    expect_accurate(tiles, FormulaOp::cos, std::cos, sweep_range(-10, 10, 100001), 1.0);
    expect_accurate(tiles, FormulaOp::sin, std::sin, sweep_range(-1.7e6, 1.7e6, 200001), 1.0);
    expect_accurate(tiles, FormulaOp::cos, std::cos, sweep_range(-1.7e6, 1.7e6, 200001), 1.0);
  });
}

TEST(SimdMath, RoundsToWholeNumbersAsTheLibraryDoes) {
  const std::vector<float> values = sweep_patterns(100003);
  for_each_target([&](const F32Tiles& tiles) {
    expect_accurate(tiles, FormulaOp::floor, std::floor, values, 0);
    expect_accurate(tiles, FormulaOp::ceil, std::ceil, values, 0);
    expect_accurate(tiles, FormulaOp::trunc, std::trunc, values, 0);
    expect_accurate(tiles, FormulaOp::round, std::nearbyint, values, 0);
    expect_accurate(
        tiles, FormulaOp::sign, [](double x) { return fn::sign(x); }, values, 0);
    expect_accurate(
        tiles, FormulaOp::abs, [](double x) { return fn::abs(x); }, values, 0);
  });
}

// All pairs of values that decide a comparison, also in the partial vector at a tile's end.
TEST(SimdMath, ComparesAndChoosesAsTheFormulaFunctions) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> values = {0.0f, -0.0f,    1.0f,      -1.0f, 2.5f,
                                     nan,  infinity, -infinity, 1e-40f};
  std::vector<float> a, b, c;
  for (float x : values) {
    for (float y : values) {
      a.push_back(x);
      b.push_back(y);
      c.push_back(7.0f);
    }
  }
  using Function = float (*)(float, float);
  const std::pair<FormulaOp, Function> cases[] = {
      {FormulaOp::min, fn::min<float>},
      {FormulaOp::max, fn::max<float>},
      {FormulaOp::equal, fn::equal<float>},
      {FormulaOp::less, fn::less<float>},
      {FormulaOp::less_equal, fn::less_equal<float>},
      {FormulaOp::logical_and, fn::logical_and<float>},
      {FormulaOp::logical_or, fn::logical_or<float>},
      {FormulaOp::logical_xor, fn::logical_xor<float>},
      {FormulaOp::add, fn::add<float>},
      {FormulaOp::sub, fn::sub<float>},
      {FormulaOp::mul, fn::mul<float>},
      {FormulaOp::div, fn::div<float>},
      {FormulaOp::select, [](float x, float y) { return fn::select(x, y, 7.0f); }},
      {FormulaOp::logical_not, [](float x, float) { return fn::logical_not(x); }},
      {FormulaOp::neg, [](float x, float) { return fn::neg(x); }}};
  for_each_target([&](const F32Tiles& tiles) {
    for (const auto& [op, function] : cases) {
      std::vector<float> out(a.size(), -5.0f);
      tiles.functions[static_cast<size_t>(op)](a.data(), b.data(), c.data(), out.data(),
                                               static_cast<int64_t>(a.size()));
      for (size_t i = 0; i < a.size(); ++i) {
        const float expected = function(a[i], b[i]);
        if (std::isnan(expected)) {
          EXPECT_TRUE(std::isnan(out[i])) << to_string(op) << " " << a[i] << " " << b[i];
        } else {
          EXPECT_EQ(out[i], expected) << to_string(op) << " " << a[i] << " " << b[i];
        }
      }
    }
  });
}

TEST(SimdMath, ConvertsHalvesAsTheScalarDefinition) {
  std::vector<uint16_t> halves(65536);
  for (size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<uint16_t>(i);
  std::vector<float> floats = sweep_patterns(9973);
  for (uint32_t i = 0; i < 65536; ++i) {  // ties and neighbours of every f16 and bf16
    const float half = f16_to_f32_portable(static_cast<uint16_t>(i));
    floats.push_back(std::nextafter(half, 0.0f));
    floats.push_back(std::bit_cast<float>(std::bit_cast<uint32_t>(half) + 0x1000u));
    floats.push_back(std::bit_cast<float>((i << 16) + 0x8000u));
    floats.push_back(std::bit_cast<float>((i << 16) + 0x8001u));
  }
  for_each_target([&](const F32Tiles& tiles) {
    std::vector<float> wide(halves.size());
    const int64_t n = static_cast<int64_t>(halves.size());
    tiles.widen_f16(halves.data(), wide.data(), n);
    for (size_t i = 0; i < halves.size(); ++i) {
      ASSERT_EQ(std::bit_cast<uint32_t>(wide[i]),
                std::bit_cast<uint32_t>(f16_to_f32_portable(halves[i])))
          << i;
    }
    tiles.widen_bf16(halves.data(), wide.data(), n);
    for (size_t i = 0; i < halves.size(); ++i) {
      ASSERT_EQ(std::bit_cast<uint32_t>(wide[i]), static_cast<uint32_t>(i) << 16);
    }
    std::vector<uint16_t> narrow(floats.size());
    tiles.narrow_f16(floats.data(), narrow.data(), static_cast<int64_t>(floats.size()));
    for (size_t i = 0; i < floats.size(); ++i) {
      ASSERT_EQ(narrow[i], f32_to_f16_portable(floats[i])) << floats[i];
    }
    tiles.narrow_bf16(floats.data(), narrow.data(), static_cast<int64_t>(floats.size()));
    for (size_t i = 0; i < floats.size(); ++i) {
      ASSERT_EQ(narrow[i], f32_to_bf16(floats[i])) << floats[i];
    }
  });
}

}  // namespace
}  // namespace rlx::cpu
