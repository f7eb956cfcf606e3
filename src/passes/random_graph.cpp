#include "passes/random_graph.h"

#include <random>

#include "ops/attention.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/move.h"
#include "ops/norm.h"
#include "ops/reduce.h"
#include "ops/view.h"

namespace rlx {
namespace {

struct RandomGraph {
  std::mt19937 random;
  Graph graph{"random"};
  Builder builder{graph};
  std::vector<ValueId> pool{};  // f32[2, 4, 8] values
  std::vector<ValueId> bools{};
  ValueId vector, weight, norm_weight, state;

  explicit RandomGraph(uint32_t seed) : random(seed) {
    for (int i = 0; i < 3; ++i) {
      pool.push_back(builder.add_input(fmt::format("x{}", i), {DType::kF32, {2, 4, 8}}));
    }
    vector = builder.add_input("v", {DType::kF32, {8}});
    weight = builder.add_weight("w", {DType::kF32, {8, 8}});
    norm_weight = builder.add_weight("n", {DType::kF32, {8}});
    state = builder.add_state("s", {DType::kF32, {2, 6, 8}});
    bools.push_back(builder.add(Less{}, {pool[0], pool[1]}));
  }

  int pick(int count) { return std::uniform_int_distribution<int>(0, count - 1)(random); }
  // Later values are chosen more often, so that chains grow.
  ValueId pick_value() {
    const int size = static_cast<int>(pool.size());
    return pick(2) == 0 ? pool[pick(size)] : pool[size - 1 - pick(std::min(size, 4))];
  }
  ValueId scalar(double value) { return builder.add_scalar(DType::kF32, value); }
  ValueId pick_scalar() { return scalar((pick(17) - 8) / 8.0); }
  // Something that broadcasts with the pool.
  ValueId pick_operand() {
    switch (pick(6)) {
      case 0:
        return pick_scalar();
      case 1:
        return vector;
      case 2:
        return builder.add(ReduceMean{.axes = {1}, .keep_dims = true}, {pick_value()});
      default:
        return pick_value();
    }
  }

  ValueId add_unary() {
    const ValueId x = pick_value();
    switch (pick(10)) {
      case 0:
        return builder.add(Neg{}, {x});
      case 1:
        return builder.add(Abs{}, {x});
      case 2:
        return builder.add(Tanh{}, {x});
      case 3:
        return builder.add(Sigmoid{}, {x});
      case 4:
        return builder.add(Silu{}, {x});
      case 5:
        return builder.add(Gelu{}, {x});
      case 6:
        return builder.add(Relu{}, {x});
      case 7:
        return builder.add(Clamp{.low = -1, .high = 1}, {x});
      case 8:
        return builder.add(Pow{}, {builder.add(Tanh{}, {x}), scalar(pick(3))});
      default:
        return builder.add(Exp{}, {builder.add(Sin{}, {x})});
    }
  }

  ValueId add_binary() {
    const ValueId x = pick_value();
    const ValueId y = pick_operand();
    switch (pick(7)) {
      case 0:
        return builder.add(Add{}, {x, y});
      case 1:
        return builder.add(Sub{}, {y, x});
      case 2:
        return builder.add(Mul{}, {x, builder.add(Tanh{}, {y})});
      case 3:
        return builder.add(Min{}, {x, y});
      case 4:
        return builder.add(Div{}, {x, scalar(pick(2) == 0 ? 4 : 3)});
      case 5:
        return builder.add(Sub{}, {x, pick_scalar()});
      default:
        return builder.add(Max{}, {y, x});
    }
  }

  ValueId add_view() {
    const ValueId x = pick_value();
    switch (pick(6)) {
      case 0: {
        const ValueId turned = builder.add(Transpose{.permutation = {1, 0, 2}}, {x});
        return builder.add(Transpose{.permutation = {1, 0, 2}}, {add_neg(turned)});
      }
      case 1:
        return builder.add(Reshape{.shape = {2, 4, 8}},
                           {builder.add(Reshape{.shape = {8, 8}}, {x})});
      case 2:
        return builder.add(
            Reshape{.shape = {2, 4, 8}},
            {builder.add(Transpose{}, {builder.add(Reshape{.shape = {8, 8}}, {x})})});
      case 3: {
        Slice slice;
        slice.starts = {1, 0, 0};
        slice.sizes = {1, 4, 8};
        const ValueId half = builder.add(slice, {x});
        return builder.add(Broadcast{.shape = {2, 4, 8}}, {half});
      }
      case 4:
        return builder.add(Copy{}, {x});
      default:
        return builder.add(Concat{.axis = 0}, {add_neg(split(x, 1)), add_neg(split(x, 0))});
    }
  }
  ValueId add_neg(ValueId x) { return pick(2) == 0 ? x : builder.add(Neg{}, {x}); }
  ValueId split(ValueId x, int64_t row) {
    Slice slice;
    slice.starts = {row, 0, 0};
    slice.sizes = {1, 4, 8};
    return builder.add(slice, {x});
  }

  ValueId add_choice() {
    if (pick(2) == 0) bools.push_back(builder.add(LogicalNot{}, {bools[pick_bool()]}));
    if (pick(3) == 0) bools.push_back(builder.add(Less{}, {pool[pick(3)], vector}));
    return builder.add(Select{}, {bools[pick_bool()], pick_value(), pick_operand()});
  }
  int pick_bool() { return pick(static_cast<int>(bools.size())); }

  // act(x . w^T + v) + r, with some of it left out.
  ValueId add_linear() {
    ValueId y;
    if (pick(2) == 0) {
      y = builder.add(Matmul{.transpose_b = true}, {pick_value(), weight});
    } else {
      y = builder.add(Matmul{}, {pick_value(), builder.add(Transpose{}, {weight})});
    }
    y = builder.add(Mul{}, {y, scalar(0.125)});
    if (pick(2) == 0) y = builder.add(Matmul{.transpose_b = true}, {y, weight});
    if (pick(2) == 0) y = builder.add(Add{}, {vector, y});
    if (pick(2) == 0) y = builder.add(Silu{}, {y});
    if (pick(2) == 0) y = builder.add(Add{}, {y, pick_value()});
    return y;
  }

  ValueId add_norm() {
    ValueId x = pick_value();
    if (pick(2) == 0) {
      x = builder.add(Add{}, {x, pick_value()});
      pool.push_back(x);
    }
    if (pick(3) == 0) return builder.add(RmsNorm{}, {x, norm_weight});
    const bool centers = pick(2) == 0;
    if (centers) {
      x = builder.add(Sub{}, {x, builder.add(ReduceMean{.axes = {2}, .keep_dims = true}, {x})});
    }
    const ValueId square =
        pick(2) == 0 ? builder.add(Mul{}, {x, x}) : builder.add(Pow{}, {x, scalar(2)});
    const ValueId mean = builder.add(ReduceMean{.axes = {-1}, .keep_dims = true}, {square});
    const ValueId sum = builder.add(Add{}, {mean, scalar(0.5)});
    ValueId y = pick(2) == 0 ? builder.add(Mul{}, {x, builder.add(Rsqrt{}, {sum})})
                             : builder.add(Div{}, {x, builder.add(Sqrt{}, {sum})});
    y = builder.add(Mul{}, {y, norm_weight});
    if (centers) y = builder.add(Add{}, {y, vector});
    // A part that is used again must keep the norm from being fused.
    if (pick(4) == 0) y = builder.add(Add{}, {y, sum});
    return y;
  }

  ValueId add_gate() {
    const ValueId x = pick_value();
    const ValueId gate = pick(2) == 0 ? builder.add(Silu{}, {x})
                                      : builder.add(Mul{}, {x, builder.add(Sigmoid{}, {x})});
    return builder.add(Mul{}, {builder.add(Tanh{}, {pick_value()}), gate});
  }

  ValueId heads(ValueId x) {
    const ValueId split_heads = builder.add(Reshape{.shape = {2, 4, 2, 4}}, {x});
    return builder.add(Transpose{.permutation = {0, 2, 1, 3}}, {split_heads});
  }
  ValueId add_attention() {
    const ValueId q = heads(pick_value()), k = heads(pick_value()), v = heads(pick_value());
    ValueId scores = builder.add(Matmul{.transpose_b = true}, {q, k});
    scores = builder.add(Mul{}, {scores, scalar(0.25)});
    if (pick(2) == 0) {
      const ValueId mask = builder.add(Iota{.shape = {4, 4}, .axis = 1, .dtype = DType::kF32}, {});
      scores = builder.add(Add{}, {scores, mask});
    }
    const ValueId probabilities = builder.add(Softmax{}, {scores});
    const ValueId y = builder.add(Matmul{}, {probabilities, v});
    const ValueId turned = builder.add(Transpose{.permutation = {0, 2, 1, 3}}, {y});
    return builder.add(Reshape{.shape = {2, 4, 8}}, {turned});
  }

  // Reads the state before and after a write into it.
  ValueId add_cache() {
    ValueId before = builder.add(Copy{}, {state});
    if (pick(2) == 0) before = builder.add(Exp{}, {before});
    const ValueId after =
        builder.add(CacheAppend{.row = pick(3), .axis = 1}, {state, pick_value()});
    const ValueId sum = builder.add(ReduceSum{.axes = {1}, .keep_dims = true}, {after});
    const ValueId mean =
        builder.add(ReduceMean{.axes = {1}, .keep_dims = true}, {builder.add(Neg{}, {before})});
    return builder.add(Tanh{},
                       {builder.add(Add{}, {pick_value(), builder.add(Mul{}, {sum, mean})})});
  }

  ValueId add_any() {
    switch (pick(12)) {
      case 0:
      case 1:
        return add_unary();
      case 2:
      case 3:
      case 4:
        return add_binary();
      case 5:
        return add_view();
      case 6:
        return add_choice();
      case 7:
        return add_linear();
      case 8:
        return add_norm();
      case 9:
        return add_gate();
      case 10:
        return add_attention();
      default:
        return add_cache();
    }
  }

  Graph make() {
    const int count = 4 + pick(16);
    // Sums of products grow: a bounded value now and then keeps f32 rounding small.
    for (int i = 0; i < count; ++i) {
      pool.push_back(add_any());
      if (i % 3 == 2) pool.push_back(builder.add(Tanh{}, {pool.back()}));
    }
    graph.add_output("last", pool.back());
    for (int i = pick(3); i > 0; --i) {
      graph.add_output(fmt::format("y{}", i), pool[pick(static_cast<int>(pool.size()))]);
    }
    if (pick(2) == 0) graph.add_output("sum", builder.add(ReduceSum{}, {pick_value()}));
    return std::move(graph);
  }
};

}  // namespace

Graph make_random_graph(uint32_t seed) { return RandomGraph(seed).make(); }

}  // namespace rlx
