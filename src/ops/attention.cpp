#include "ops/attention.h"

#include <cmath>
#include <limits>

#include "ops/cache.h"
#include "ops/decompose.h"
#include "ops/infer.h"
#include "ops/matmul.h"
#include "ops/move.h"
#include "ops/reduce.h"
#include "ops/reference_loops.h"

namespace rlx {
namespace {

ValueId multiply_by(Builder& builder, ValueId x, double factor) {
  if (factor == 1) return x;
  return builder.add(Mul{}, {x, builder.add_scalar(builder.type(x).dtype, factor)});
}

void check_dtype(const InferContext& context, int i, DType dtype) {
  if (context.input(i).dtype != dtype) {
    context.fail("Input {} is {}, but {} is expected.", i, to_string(context.input(i)),
                 to_string(dtype));
  }
}

}  // namespace

std::vector<TensorType> RopeTable::infer(const InferContext& context) const {
  check_dtype(context, 0, DType::kI64);
  check_rank(context, 0, 1);
  check_dtype(context, 1, DType::kF32);
  check_rank(context, 1, 1);
  return {{DType::kF32, {context.input(0).shape[0], context.input(1).shape[0] * 2}}};
}

std::vector<ValueId> RopeTable::decompose(Builder& builder, std::span<const ValueId> inputs) const {
  const Dim tokens = builder.type(inputs[0]).shape[0];
  const ValueId positions = cast_to(builder, inputs[0], DType::kF32);
  const ValueId angles = builder.add(Mul{}, {reshape(builder, positions, {tokens, 1}), inputs[1]});
  const ValueId cosines = multiply_by(builder, builder.add(Cos{}, {angles}), scale);
  const ValueId sines = multiply_by(builder, builder.add(Sin{}, {angles}), scale);
  return {builder.add(Concat{.axis = 1}, {cosines, sines})};
}

std::vector<TensorType> Rope::infer(const InferContext& context) const {
  check_float(context, 0);
  check_rank(context, 0, 4);
  check_dtype(context, 1, DType::kF32);
  check_rank(context, 1, 2);
  const TensorType& x = context.input(0);
  const TensorType& table = context.input(1);
  check_extent(context, 1, 0, x.shape[1], "the tokens of x");
  Dim half;
  if (!divide_exactly(table.shape[1], 2, half) ||
      !is_at_least(context, x.shape[3], table.shape[1])) {
    context.fail("The table is {}, but an even number of columns up to the head's {} is expected.",
                 to_string(table), to_string(x.shape[3]));
  }
  return {x};
}

std::vector<ValueId> Rope::decompose(Builder& builder, std::span<const ValueId> inputs) const {
  const TensorType type = builder.type(inputs[0]);
  const ValueId x = cast_to(builder, inputs[0], compute_dtype(type.dtype));
  const ValueId table = cast_to(builder, inputs[1], compute_dtype(type.dtype));
  const Dim& tokens = type.shape[1];
  const Dim& dim = type.shape[3];
  const Dim rotary = builder.type(table).shape[1];
  Dim half;
  RLX_CHECK(divide_exactly(rotary, 2, half));

  // Pairs lie half a rotary apart along the last axis, or side by side, which a last axis of 2
  // shows.
  ValueId turned = slice_axis(builder, x, 3, 0, rotary);
  const int pair_axis = interleaved ? 4 : 3;
  const Shape table_shape = interleaved ? Shape{tokens, 1, half, 1} : Shape{tokens, 1, half};
  const Dim pair_stride = interleaved ? Dim(1) : half;
  if (interleaved) {
    turned = reshape(builder, turned, {type.shape[0], tokens, type.shape[2], half, 2});
  }
  const ValueId x0 = slice_axis(builder, turned, pair_axis, 0, pair_stride);
  const ValueId x1 = slice_axis(builder, turned, pair_axis, pair_stride, pair_stride);
  const ValueId cosines = reshape(builder, slice_axis(builder, table, 1, 0, half), table_shape);
  const ValueId sines = reshape(builder, slice_axis(builder, table, 1, half, half), table_shape);

  const ValueId y0 =
      builder.add(Sub{}, {builder.add(Mul{}, {x0, cosines}), builder.add(Mul{}, {x1, sines})});
  const ValueId y1 =
      builder.add(Add{}, {builder.add(Mul{}, {x0, sines}), builder.add(Mul{}, {x1, cosines})});
  std::vector<ValueId> parts = {y0, y1};
  if (interleaved) {
    const ValueId pairs = builder.add(Concat{.axis = 4}, {y0, y1});
    parts = {reshape(builder, pairs, {type.shape[0], tokens, type.shape[2], rotary})};
  }
  if (rotary != dim) parts.push_back(slice_axis(builder, x, 3, rotary, dim - rotary));
  const ValueId result = parts.size() == 1 ? parts[0] : builder.add(Concat{.axis = 3}, parts);
  return {cast_to(builder, result, type.dtype)};
}

std::vector<TensorType> Attention::infer(const InferContext& context) const {
  const int expected = 3 + (mask ? 1 : 0) + (sinks ? 1 : 0);
  if (static_cast<int>(context.inputs.size()) != expected) {
    context.fail("{} inputs are given, but {} are expected with mask={} and sinks={}.",
                 context.inputs.size(), expected, mask, sinks);
  }
  check_float(context, 0);
  for (int i = 0; i < 3; ++i) {
    if (i > 0) check_cache_dtype(context, i);
    check_rank(context, i, 4);
  }
  const Shape& q = context.input(0).shape;
  const Shape& k = context.input(1).shape;
  const Shape& v = context.input(2).shape;
  check_extent(context, 1, 0, q[0], "the batch of q");
  check_extent(context, 2, 0, q[0], "the batch of q");
  check_extent(context, 1, 3, q[3], "the head size of q");
  check_extent(context, 2, 1, k[1], "the rows of k");
  check_extent(context, 2, 2, k[2], "the heads of k");
  if (!q[2].is_constant() || !k[2].is_constant() || !q[3].is_constant()) {
    context.fail("q is {} and k is {}, but constant heads and head sizes are expected.",
                 to_string(context.input(0)), to_string(context.input(1)));
  }
  if (k[2].constant() < 1 || q[2].constant() % k[2].constant() != 0) {
    context.fail("q has {} heads and k has {}, but a multiple is expected.", q[2].constant(),
                 k[2].constant());
  }
  if (causal && (k[1] - q[1]).upper_bound(context.symbols) < 0) {
    context.fail("k has {} rows and q {}, but causal attention expects a key for each query.",
                 to_string(k[1]), to_string(q[1]));
  }
  if (window < 0 || !(soft_cap >= 0) || std::isinf(soft_cap) || !std::isfinite(scale)) {
    context.fail(
        "window={}, soft_cap={} and scale={} are given, but finite values are expected, "
        "the first two of 0 or more.",
        window, soft_cap, scale);
  }
  if (mask) {
    const TensorType& type = context.input(3);
    if (type.dtype != DType::kBool) check_float(context, 3);
    check_broadcasts_to(context, "The mask", type.shape, {q[0], q[2], q[1], k[1]});
  }
  if (sinks) {
    const int i = expected - 1;
    check_dtype(context, i, DType::kF32);
    check_vector(context, i, q[2], "one sink per head of q");
  }
  return {{context.input(0).dtype, {q[0], q[1], q[2], v[3]}}};
}

namespace {

// Scores where the condition holds, else -infinity.
ValueId keep_where(Builder& builder, ValueId condition, ValueId scores) {
  const double lowest = -std::numeric_limits<double>::infinity();
  const ValueId nothing = builder.add_scalar(builder.type(scores).dtype, lowest);
  return builder.add(Select{}, {condition, scores, nothing});
}

// bool[t, s]: which keys count for which query by position alone; invalid when all do.
ValueId make_position_mask(Builder& builder, const Attention& op, const Dim& t, const Dim& s) {
  const auto rows_from = [&](Dim start) {
    return builder.add(Iota{.shape = {t, 1}, .axis = 0, .start = std::move(start)}, {});
  };
  const auto keys = [&] { return builder.add(Iota{.shape = {1, s}, .axis = 1}, {}); };
  ValueId result;
  if (op.causal) result = builder.add(LessEqual{}, {keys(), rows_from(s - t)});
  if (op.window > 0) {
    const ValueId near = builder.add(Greater{}, {keys(), rows_from(s - t - op.window)});
    result = result.is_valid() ? builder.add(LogicalAnd{}, {result, near}) : near;
  }
  return result;
}

// Softmax over the last axis of scores[b, h, t, s]. A sink takes part in maximum and sum, but
// yields no output; being finite, it keeps a row of -infinity from becoming NaN.
ValueId normalise_scores(Builder& builder, ValueId scores, const ValueId* sinks) {
  const DType dtype = builder.type(scores).dtype;
  ValueId max = builder.add(ReduceMax{.axes = {-1}, .keep_dims = true}, {scores});
  ValueId sink;
  if (sinks != nullptr) {
    const Dim heads = builder.type(*sinks).shape[0];
    sink = reshape(builder, cast_to(builder, *sinks, dtype), {1, heads, 1, 1});
    max = builder.add(Max{}, {max, sink});
  }
  const ValueId power = builder.add(Exp{}, {builder.add(Sub{}, {scores, max})});
  ValueId sum = builder.add(ReduceSum{.axes = {-1}, .keep_dims = true}, {power});
  if (sinks != nullptr) {
    const ValueId own = builder.add(Exp{}, {builder.add(Sub{}, {sink, max})});
    sum = builder.add(Add{}, {sum, own});
  }
  return builder.add(Div{}, {power, sum});
}

}  // namespace

std::vector<ValueId> Attention::decompose(Builder& builder, std::span<const ValueId> inputs) const {
  const TensorType q_type = builder.type(inputs[0]);
  const DType dtype = compute_dtype(q_type.dtype);
  const Shape k_shape = builder.type(inputs[1]).shape;
  const Dim b = q_type.shape[0], t = q_type.shape[1], h = q_type.shape[2], d = q_type.shape[3];
  const Dim s = k_shape[1], hk = k_shape[2], dv = builder.type(inputs[2]).shape[3];
  const Dim group = h.constant() / hk.constant();

  // Query heads that share a key head become one more axis, along which keys and values broadcast.
  const auto heads_first = [&](ValueId x) {
    return builder.add(Transpose{.permutation = {0, 2, 1, 3}}, {x});
  };
  const ValueId q =
      reshape(builder, heads_first(cast_to(builder, inputs[0], dtype)), {b, hk, group, t, d});
  const auto unpack = [&](ValueId x) {
    return is_packed(builder.type(x).dtype) ? cast_to(builder, x, DType::kF32) : x;
  };
  const ValueId k = reshape(builder, heads_first(unpack(inputs[1])), {b, hk, 1, s, d});
  const ValueId v = reshape(builder, heads_first(unpack(inputs[2])), {b, hk, 1, s, dv});

  ValueId scores = builder.add(Matmul{.transpose_b = true}, {q, k});
  scores = reshape(builder, scores, {b, h, t, s});
  const double factor = scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(d.constant()));
  scores = multiply_by(builder, scores, factor);
  if (soft_cap > 0) {
    scores = builder.add(Tanh{}, {multiply_by(builder, scores, 1 / soft_cap)});
    scores = multiply_by(builder, scores, soft_cap);
  }
  if (mask && builder.type(inputs[3]).dtype == DType::kBool) {
    scores = keep_where(builder, inputs[3], scores);
  } else if (mask) {
    scores = builder.add(Add{}, {scores, cast_to(builder, inputs[3], dtype)});
  }
  const ValueId positions = make_position_mask(builder, *this, t, s);
  if (positions.is_valid()) scores = keep_where(builder, positions, scores);

  ValueId weights = normalise_scores(builder, scores, sinks ? &inputs.back() : nullptr);
  weights = reshape(builder, weights, {b, hk, group, t, s});
  ValueId result = builder.add(Matmul{}, {weights, v});
  result = heads_first(reshape(builder, result, {b, h, t, dv}));
  return {cast_to(builder, result, q_type.dtype)};
}

std::vector<TensorType> CacheAppend::infer(const InferContext& context) const {
  const TensorType& cache = context.input(0);
  const TensorType& update = context.input(1);
  check_cache_dtype(context, 0);
  check_float(context, 1);
  check_rank(context, 1, cache.rank());
  const int along = normalise_axis(context, axis, cache.rank());
  if (is_packed(cache.dtype) && along == cache.rank() - 1) {
    context.fail("The cache is {}, which has no rows along its last axis.", to_string(cache));
  }
  for (int d = 0; d < cache.rank(); ++d) {
    if (d != along) check_extent(context, 1, d, cache.shape[d], "the extent of the cache");
  }
  if (!is_at_least(context, row, 0)) {
    context.fail("The attribute `row` is {}, which may be negative.", to_string(row));
  }
  TensorType output = cache;
  output.shape[along] = row + update.shape[along];
  if (!is_at_least(context, cache.shape[along], 0) ||
      (output.shape[along] - cache.shape[along]).lower_bound(context.symbols) > 0) {
    context.fail("Rows up to {} are written, but the cache {} never has as many at axis {}.",
                 to_string(output.shape[along]), to_string(cache), along);
  }
  return {output};
}

void CacheAppend::reference(const ReferenceContext& context) const {
  const ReferenceTensor& cache = context.input(0);
  const ReferenceTensor& update = context.input(1);
  ReferenceTensor& output = context.outputs[0];
  const int along = wrap_axis(axis, static_cast<int>(cache.shape.size()));
  const AxisSplit held = split_at_axis(cache.shape, along);
  const AxisSplit added = split_at_axis(update.shape, along);
  const AxisSplit to = split_at_axis(output.shape, along);
  const int64_t first = context.evaluate(row);
  if (first + added.extent > held.extent) {
    throw_error(ErrorCode::kOutOfRange,
                "cache_append writes rows {} to {}, but the cache has {} rows.", first,
                first + added.extent - 1, held.extent);
  }
  for (int64_t o = 0; o < to.outer; ++o) {
    for (int64_t e = 0; e < to.extent; ++e) {
      for (int64_t i = 0; i < to.inner; ++i) {
        if (e < first) {
          copy_element(cache, held.index(o, e, i), output, to.index(o, e, i));
        } else {
          convert_element(update, added.index(o, e - first, i), output, to.index(o, e, i));
        }
      }
      if (e >= first) round_cache_row(output, to.index(o, e, 0), to.inner);
    }
  }
}

}  // namespace rlx
