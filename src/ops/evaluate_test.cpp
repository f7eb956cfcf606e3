#include "ops/evaluate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ir/graph.h"
#include "ops/attention.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/move.h"
#include "ops/reduce.h"
#include "ops/view.h"

namespace rlx {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");
constexpr int64_t kMaxInt = std::numeric_limits<int64_t>::max();
constexpr int64_t kMinInt = std::numeric_limits<int64_t>::min();

ReferenceTensor floats(std::vector<int64_t> shape, std::vector<double> values,
                       DType dtype = DType::kF32) {
  ReferenceTensor tensor = make_reference_tensor(dtype, std::move(shape));
  EXPECT_EQ(tensor.floats.size(), values.size());
  tensor.floats = std::move(values);
  return tensor;
}

ReferenceTensor integers(std::vector<int64_t> shape, std::vector<int64_t> values,
                         DType dtype = DType::kI64) {
  ReferenceTensor tensor = make_reference_tensor(dtype, std::move(shape));
  EXPECT_EQ(tensor.integers.size(), values.size());
  tensor.integers = std::move(values);
  return tensor;
}

// Evaluates on types whose extents are those of the inputs.
std::vector<ReferenceTensor> run(const Op& op, const std::vector<ReferenceTensor>& inputs) {
  std::vector<const ReferenceTensor*> pointers;
  std::vector<TensorType> types;
  for (const ReferenceTensor& input : inputs) {
    pointers.push_back(&input);
    types.push_back({input.dtype, Shape(input.shape.begin(), input.shape.end())});
  }
  return evaluate(op, pointers, types, SymbolTable{}, {});
}

std::string run_error(const Op& op, const std::vector<ReferenceTensor>& inputs) {
  try {
    run(op, inputs);
  } catch (const Error& error) {
    return std::string(to_string(error.code())) + ": " + error.what();
  }
  return "no error";
}

MATCHER(IsNan, "is NaN") { return std::isnan(arg); }

TEST(Evaluate, RoundsHalvesToTheEvenInteger) {
  EXPECT_THAT(run(Round{}, {floats({6}, {0.5, 1.5, 2.5, -0.5, -1.5, 2.4})})[0].floats,
              ElementsAre(0, 2, 2, 0, -2, 2));
}

TEST(Evaluate, WrapsIntegersToTheirWidth) {
  EXPECT_THAT(
      run(Add{}, {integers({2}, {127, -128}, DType::kI8), integers({2}, {1, -1}, DType::kI8)})[0]
          .integers,
      ElementsAre(-128, 127));
  EXPECT_THAT(run(Neg{}, {integers({2}, {1, 0}, DType::kU8)})[0].integers, ElementsAre(255, 0));
  EXPECT_THAT(run(Mul{}, {integers({1}, {kMaxInt}), integers({1}, {2})})[0].integers,
              ElementsAre(-2));
  EXPECT_THAT(run(Abs{}, {integers({1}, {kMinInt})})[0].integers, ElementsAre(kMinInt));
}

TEST(Evaluate, KeepsIntegersBeyondWhatADoubleHolds) {
  const int64_t big = (int64_t{1} << 53) + 1;
  EXPECT_THAT(run(Add{}, {integers({1}, {big}), integers({}, {2})})[0].integers,
              ElementsAre(big + 2));
  EXPECT_THAT(run(Equal{}, {integers({1}, {big}), integers({1}, {big - 1})})[0].integers,
              ElementsAre(0));
  EXPECT_THAT(run(Select{}, {integers({2}, {1, 0}, DType::kBool), integers({1}, {big}),
                             integers({1}, {-big})})[0]
                  .integers,
              ElementsAre(big, -big));
  EXPECT_THAT(run(ReduceSum{}, {integers({2}, {big, big})})[0].integers, ElementsAre(2 * big));
  EXPECT_THAT(run(Matmul{}, {integers({1, 1}, {big}), integers({1, 1}, {3})})[0].integers,
              ElementsAre(3 * big));
  EXPECT_THAT(run(Concat{}, {integers({1}, {big}), integers({1}, {0})})[0].integers,
              ElementsAre(big, 0));
}

TEST(Evaluate, OrdersUnsignedIntegersAboveTheSignedRange) {
  const ReferenceTensor high = integers({1}, {-1}, DType::kU64);  // 2^64 - 1
  const ReferenceTensor low = integers({1}, {5}, DType::kU64);
  EXPECT_THAT(run(Max{}, {high, low})[0].integers, ElementsAre(-1));
  EXPECT_THAT(run(Less{}, {low, high})[0].integers, ElementsAre(1));
  EXPECT_THAT(run(Div{}, {high, low})[0].integers, ElementsAre(3689348814741910323));
  EXPECT_THAT(run(Relu{}, {high})[0].integers, ElementsAre(-1));
  const ReferenceTensor both = integers({2}, {-1, 5}, DType::kU64);
  EXPECT_THAT(run(ReduceMin{}, {both})[0].integers, ElementsAre(5));
  EXPECT_THAT(run(Argmax{}, {both})[0].integers, ElementsAre(0));
  EXPECT_THAT(run(Sort{}, {both})[0].integers, ElementsAre(5, -1));
  EXPECT_THAT(run(Cast{.dtype = DType::kF64}, {high})[0].floats, ElementsAre(0x1p64));
}

TEST(Evaluate, DividesIntegersTowardZeroAndByZeroToZero) {
  EXPECT_THAT(
      run(Div{}, {integers({4}, {7, -7, 5, kMinInt}), integers({4}, {2, 2, 0, -1})})[0].integers,
      ElementsAre(3, -3, 0, kMinInt));
  EXPECT_THAT(run(Rem{}, {integers({3}, {7, -7, 5}), integers({3}, {4, 4, 0})})[0].integers,
              ElementsAre(3, -3, 0));
  EXPECT_THAT(run(Rem{}, {floats({2}, {7.5, -7.5}), floats({}, {2})})[0].floats,
              ElementsAre(1.5, -1.5));
}

TEST(Evaluate, SpreadsNanThroughExtremesButNotThroughComparisons) {
  const ReferenceTensor x = floats({3}, {1, kNan, 3});
  EXPECT_THAT(run(Max{}, {x, floats({}, {2})})[0].floats, ElementsAre(2, IsNan(), 3));
  EXPECT_THAT(run(ReduceMin{}, {x})[0].floats, ElementsAre(IsNan()));
  EXPECT_THAT(run(Clamp{.low = 2}, {x})[0].floats, ElementsAre(2, IsNan(), 3));
  EXPECT_THAT(run(Equal{}, {x, x})[0].integers, ElementsAre(1, 0, 1));
  EXPECT_THAT(run(NotEqual{}, {x, x})[0].integers, ElementsAre(0, 1, 0));
  EXPECT_THAT(run(GreaterEqual{}, {x, x})[0].integers, ElementsAre(1, 0, 1));
}

TEST(Evaluate, BroadcastsAlignedAtTheLastAxis) {
  EXPECT_THAT(run(Sub{}, {floats({2, 1}, {10, 20}), floats({3}, {1, 2, 3})})[0].floats,
              ElementsAre(9, 8, 7, 19, 18, 17));
}

TEST(Evaluate, CastsTowardZeroAndStopsAtTheEnds) {
  const ReferenceTensor x = floats({7}, {1.9, -1.9, 300, -300, kNan, kInf, -kInf});
  EXPECT_THAT(run(Cast{.dtype = DType::kI8}, {x})[0].integers,
              ElementsAre(1, -1, 127, -128, 0, 127, -128));
  EXPECT_THAT(run(Cast{.dtype = DType::kU8}, {x})[0].integers,
              ElementsAre(1, 0, 255, 0, 0, 255, 0));
  EXPECT_THAT(run(Cast{.dtype = DType::kI64}, {x})[0].integers,
              ElementsAre(1, -1, 300, -300, 0, kMaxInt, kMinInt));
  EXPECT_THAT(run(Cast{.dtype = DType::kBool}, {x})[0].integers, ElementsAre(1, 1, 1, 1, 1, 1, 1));
  EXPECT_THAT(run(Cast{.dtype = DType::kU8}, {integers({2}, {257, -1})})[0].integers,
              ElementsAre(1, 255));
}

TEST(Evaluate, CastRoundsToTheTargetWhileOtherOpsDoNot) {
  const ReferenceTensor third = floats({1}, {1.0 / 3}, DType::kF16);
  EXPECT_EQ(run(Cast{.dtype = DType::kF32}, {third})[0].floats[0], 1.0f / 3.0f);
  EXPECT_EQ(run(Cast{.dtype = DType::kBF16}, {third})[0].floats[0], 0.333984375);
  EXPECT_EQ(run(Copy{}, {third})[0].floats[0], 1.0 / 3);
  // 2^24 + 1 lies between two floats; the even one is 2^24.
  EXPECT_EQ(run(Cast{.dtype = DType::kF32}, {integers({1}, {(1 << 24) + 1})})[0].floats[0], 0x1p24);
}

TEST(Evaluate, RunsAFusedFormulaOnFloatsOrOnIntegers) {
  const Fused half{.formula = parse_formula("t0 = div(i0, 2); t0"), .dtype = DType::kF32};
  EXPECT_THAT(run(half, {floats({2}, {3, 5})})[0].floats, ElementsAre(1.5, 2.5));
  const Fused integer{.formula = parse_formula("t0 = div(i0, 2); t0"), .dtype = DType::kI64};
  EXPECT_THAT(run(integer, {integers({2}, {3, -5})})[0].integers, ElementsAre(1, -2));
}

TEST(Evaluate, ReducesAlongTheListedAxes) {
  const ReferenceTensor x = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(run(ReduceSum{.axes = {0}}, {x})[0].floats, ElementsAre(5, 7, 9));
  const ReferenceTensor kept = run(ReduceMean{.axes = {-1}, .keep_dims = true}, {x})[0];
  EXPECT_THAT(kept.shape, ElementsAre(2, 1));
  EXPECT_THAT(kept.floats, ElementsAre(2, 5));
  EXPECT_THAT(run(ReduceProd{}, {x})[0].floats, ElementsAre(720));
}

TEST(Evaluate, ReducesNothingToTheNeutralElement) {
  const ReferenceTensor none = floats({2, 0}, {});
  EXPECT_THAT(run(ReduceSum{.axes = {1}}, {none})[0].floats, ElementsAre(0, 0));
  EXPECT_THAT(run(ReduceMax{.axes = {1}}, {none})[0].floats, ElementsAre(-kInf, -kInf));
  EXPECT_THAT(run(ReduceMean{.axes = {1}}, {none})[0].floats, ElementsAre(IsNan(), IsNan()));
  EXPECT_THAT(run(ReduceMin{}, {integers({0}, {}, DType::kU8)})[0].integers, ElementsAre(255));
  EXPECT_THAT(run(ReduceMax{}, {integers({0}, {}, DType::kI32)})[0].integers,
              ElementsAre(std::numeric_limits<int32_t>::min()));
}

TEST(Evaluate, ArgmaxTakesTheFirstOfEqualsOrTheLast) {
  const ReferenceTensor x = floats({5}, {1, 7, 0, 7, 2});
  EXPECT_THAT(run(Argmax{}, {x})[0].integers, ElementsAre(1));
  EXPECT_THAT(run(Argmax{.select_last = true}, {x})[0].integers, ElementsAre(3));
  const ReferenceTensor y = floats({5}, {1, kNan, 9, kNan, -9});
  EXPECT_THAT(run(Argmax{}, {y})[0].integers, ElementsAre(1));
  EXPECT_THAT(run(Argmax{.select_last = true}, {y})[0].integers, ElementsAre(3));
  EXPECT_THAT(run(Argmin{}, {y})[0].integers, ElementsAre(1));
}

TEST(Evaluate, SumsUpWithoutTheElementItselfAndFromTheEnd) {
  const ReferenceTensor x = floats({4}, {1, 2, 3, 4});
  EXPECT_THAT(run(CumulativeSum{}, {x})[0].floats, ElementsAre(1, 3, 6, 10));
  EXPECT_THAT(run(CumulativeSum{.exclusive = true}, {x})[0].floats, ElementsAre(0, 1, 3, 6));
  EXPECT_THAT(run(CumulativeSum{.reverse = true}, {x})[0].floats, ElementsAre(10, 9, 7, 4));
  EXPECT_THAT(run(CumulativeSum{.exclusive = true, .reverse = true}, {x})[0].floats,
              ElementsAre(9, 7, 4, 0));
}

TEST(Evaluate, MultipliesMatricesInEveryOrientation) {
  const ReferenceTensor a = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  const ReferenceTensor at = floats({3, 2}, {1, 4, 2, 5, 3, 6});
  const ReferenceTensor b = floats({3, 2}, {7, 8, 9, 10, 11, 12});
  const ReferenceTensor bt = floats({2, 3}, {7, 9, 11, 8, 10, 12});
  const auto expected = ElementsAre(58, 64, 139, 154);
  EXPECT_THAT(run(Matmul{}, {a, b})[0].floats, expected);
  EXPECT_THAT(run(Matmul{.transpose_a = true}, {at, b})[0].floats, expected);
  EXPECT_THAT(run(Matmul{.transpose_b = true}, {a, bt})[0].floats, expected);
  EXPECT_THAT(run(Matmul{.transpose_a = true, .transpose_b = true}, {at, bt})[0].floats, expected);
}

TEST(Evaluate, GroupedMatmulRefusesAnUnknownExpert) {
  EXPECT_THAT(run_error(GroupedMatmul{},
                        {floats({1, 1}, {1}), floats({2, 1, 1}, {1, 2}), integers({1, 1}, {2})}),
              HasSubstr("out of range: grouped_matmul meets the expert 2, but there are 2."));
}

TEST(Evaluate, SlicesWithSteps) {
  const ReferenceTensor x = floats({2, 5}, {0, 1, 2, 3, 4, 10, 11, 12, 13, 14});
  EXPECT_THAT(run(Slice{.starts = {0, 1}, .sizes = {2, 2}, .steps = {1, 3}}, {x})[0].floats,
              ElementsAre(1, 4, 11, 14));
  EXPECT_THAT(run(Slice{.starts = {1, 0}, .sizes = {1, 3}, .steps = {1, 2}}, {x})[0].floats,
              ElementsAre(10, 12, 14));
}

TEST(Evaluate, SlicesTheLastTokenOfASymbolicSequence) {
  SymbolTable symbols;
  symbols.declare({"tokens", 1, 8});
  const Dim tokens = Dim::symbol("tokens");
  const ReferenceTensor x = floats({3, 2}, {1, 2, 3, 4, 5, 6});
  const ReferenceTensor* inputs[] = {&x};
  const TensorType types[] = {{DType::kF32, {tokens, 2}}};
  const int64_t values[] = {3};
  const Slice last{.starts = {tokens - 1, 0}, .sizes = {1, 2}};
  EXPECT_THAT(evaluate(last, inputs, types, symbols, values)[0].floats, ElementsAre(5, 6));
}

TEST(Evaluate, TransposesAndReshapes) {
  const ReferenceTensor x = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(run(Transpose{}, {x})[0].floats, ElementsAre(1, 4, 2, 5, 3, 6));
  const ReferenceTensor reshaped = run(Reshape{.shape = {3, -1}}, {x})[0];
  EXPECT_THAT(reshaped.shape, ElementsAre(3, 2));
  EXPECT_THAT(reshaped.floats, ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(Evaluate, PadsWithTheValue) {
  const ReferenceTensor padded =
      run(Pad{.low = {0, 1}, .high = {1, 0}, .value = 9}, {floats({1, 2}, {1, 2})})[0];
  EXPECT_THAT(padded.shape, ElementsAre(2, 3));
  EXPECT_THAT(padded.floats, ElementsAre(9, 1, 2, 9, 9, 9));
}

TEST(Evaluate, GathersRowsAndColumns) {
  const ReferenceTensor table = floats({3, 2}, {0, 1, 10, 11, 20, 21});
  EXPECT_THAT(run(Gather{}, {table, integers({2}, {2, -3})})[0].floats, ElementsAre(20, 21, 0, 1));
  EXPECT_THAT(run(Gather{.axis = 1}, {table, integers({1}, {1}, DType::kU8)})[0].floats,
              ElementsAre(1, 11, 21));
  EXPECT_THAT(run_error(Gather{}, {table, integers({1}, {3})}),
              HasSubstr("out of range: gather meets the id 3, but the axis has 3 elements"));
  EXPECT_THAT(run_error(Gather{}, {table, integers({1}, {-4})}), HasSubstr("meets the id -4"));
}

TEST(Evaluate, ScattersAlongTheAxis) {
  const ReferenceTensor data = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  const ReferenceTensor ids = integers({2, 2}, {0, -1, 1, 1});
  const ReferenceTensor updates = floats({2, 2}, {10, 20, 30, 40});
  EXPECT_THAT(run(Scatter{.axis = 1}, {data, ids, updates})[0].floats,
              ElementsAre(10, 2, 20, 4, 40, 6));
  const auto reduce = [&](ScatterReduction reduction) {
    return run(Scatter{.axis = 1, .reduction = reduction}, {data, ids, updates})[0].floats;
  };
  EXPECT_THAT(reduce(ScatterReduction::kAdd), ElementsAre(11, 2, 23, 4, 75, 6));
  EXPECT_THAT(reduce(ScatterReduction::kMul), ElementsAre(10, 2, 60, 4, 6000, 6));
  EXPECT_THAT(reduce(ScatterReduction::kMin), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(reduce(ScatterReduction::kMax), ElementsAre(10, 2, 20, 4, 40, 6));
  EXPECT_THAT(run_error(Scatter{}, {floats({2}, {0, 0}), integers({1}, {2}), floats({1}, {1})}),
              HasSubstr("scatter meets the id 2"));
}

TEST(Evaluate, TopKPutsNanFirstAndTheLowerIndexOfEquals) {
  const ReferenceTensor x = floats({6}, {3, 1, kNan, 3, 5, 3});
  const auto largest = run(TopK{.k = 4}, {x});
  EXPECT_THAT(largest[0].floats, ElementsAre(IsNan(), 5, 3, 3));
  EXPECT_THAT(largest[1].integers, ElementsAre(2, 4, 0, 3));
  const auto smallest = run(TopK{.k = 3, .largest = false}, {x});
  EXPECT_THAT(smallest[0].floats, ElementsAre(1, 3, 3));
  EXPECT_THAT(smallest[1].integers, ElementsAre(1, 0, 3));
}

TEST(Evaluate, SortKeepsTheOrderOfEquals) {
  const ReferenceTensor x = floats({5}, {2, kNan, 1, 2, 0});
  EXPECT_THAT(run(Sort{}, {x})[1].integers, ElementsAre(4, 2, 0, 3, 1));
  EXPECT_THAT(run(Sort{.descending = true}, {x})[1].integers, ElementsAre(1, 0, 3, 2, 4));
}

TEST(Evaluate, IotaCountsFromASymbolicStart) {
  SymbolTable symbols;
  symbols.declare({"past", 0, 100});
  const int64_t values[] = {40};
  const Iota op{.shape = {3}, .start = Dim::symbol("past") + 1, .step = 2};
  EXPECT_THAT(evaluate(op, {}, {}, symbols, values)[0].integers, ElementsAre(41, 43, 45));
}

TEST(Evaluate, CacheAppendGivesTheRowsSoFarInTheCachesDtype) {
  const ReferenceTensor cache = floats({4, 1}, {1, 2, 3, 4}, DType::kF16);
  const auto out = run(CacheAppend{.row = 1, .axis = 0}, {cache, floats({2, 1}, {7, 1.0 / 3})})[0];
  EXPECT_EQ(out.dtype, DType::kF16);
  EXPECT_THAT(out.shape, ElementsAre(3, 1));
  EXPECT_THAT(out.floats, ElementsAre(1, 7, 0.333251953125));
}

TEST(Evaluate, CacheAppendRefusesRowsPastTheCapacity) {
  SymbolTable symbols;
  symbols.declare({"past", 0, 4});
  const ReferenceTensor cache = floats({4}, {0, 0, 0, 0}), update = floats({2}, {1, 2});
  const ReferenceTensor* inputs[] = {&cache, &update};
  const TensorType types[] = {{DType::kF32, {4}}, {DType::kF32, {2}}};
  const CacheAppend op{.row = Dim::symbol("past"), .axis = 0};
  const int64_t fits[] = {2}, too_far[] = {3};
  EXPECT_THAT(evaluate(op, inputs, types, symbols, fits)[0].floats, ElementsAre(0, 0, 1, 2));
  EXPECT_THROW(evaluate(op, inputs, types, symbols, too_far), Error);
}

TEST(Evaluate, AttentionOverNothingButMaskedKeysNeedsASinkToStayFinite) {
  const ReferenceTensor q = floats({1, 1, 1, 1}, {1}), k = q, v = floats({1, 1, 1, 1}, {5});
  const ReferenceTensor mask = integers({1, 1, 1, 1}, {0}, DType::kBool);
  EXPECT_THAT(run(Attention{.mask = true}, {q, k, v, mask})[0].floats, ElementsAre(IsNan()));
  EXPECT_THAT(
      run(Attention{.mask = true, .sinks = true}, {q, k, v, mask, floats({1}, {0})})[0].floats,
      ElementsAre(0));
}

TEST(Evaluate, NamesTheInputWhoseShapeIsNotThatOfItsType) {
  const ReferenceTensor x = floats({2}, {1, 2});
  const ReferenceTensor* inputs[] = {&x};
  const TensorType types[] = {{DType::kF32, {3}}};
  try {
    evaluate(Neg{}, inputs, types, SymbolTable{}, {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "Input 0 of op 'neg' is f32[2], but f32[3] (here [3]) is expected.");
  }
}

TEST(Evaluate, RefusesSources) {
  EXPECT_THAT(run_error(Input{.name = "x"}, {}), HasSubstr("unsupported"));
}

}  // namespace
}  // namespace rlx
