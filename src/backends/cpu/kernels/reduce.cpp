// Reductions over any axes, positions of extremes and running sums. Floats accumulate in f64 over
// f32 partial sums of fixed length, integers in 64 bits that wrap. Blocks and their order depend on
// extents only, so every number of threads gives the same bits.
#include "ops/reduce.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "backends/cpu/kernels/elementwise_tiles.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/reduce_tiles.h"

namespace rlx::cpu {
namespace {

// A long reduction is cut into parts of this many elements, which threads share.
constexpr int64_t kPart = 16384;
constexpr int64_t kMinElementsToSplit = 8192;
// Neighbouring columns that are reduced together: a row of them spans pages' worth of cache lines,
// and their f64 totals fit beside it in the first-level cache.
constexpr int64_t kColumns = 256;

enum class Reduction { kSum, kMean, kMax, kMin, kProd };

// ---- Reductions of tiles. A is the accumulator (f64, i64 or u64), T what tiles hold.

template <typename T>
using Accumulator = std::conditional_t<std::is_floating_point_v<T>, double, T>;

template <typename T>
constexpr ComputeType tile_type() {
  if constexpr (std::is_same_v<T, float>) return ComputeType::kF32;
  if constexpr (std::is_same_v<T, double>) return ComputeType::kF64;
  if constexpr (std::is_same_v<T, int64_t>) return ComputeType::kI64;
  return ComputeType::kU64;
}

template <typename A>
A combine(Reduction reduction, A a, A b) {
  switch (reduction) {
    case Reduction::kSum:
    case Reduction::kMean:
      return fn::add(a, b);
    case Reduction::kMax:
      return fn::max(a, b);
    case Reduction::kMin:
      return fn::min(a, b);
    case Reduction::kProd:
      break;
  }
  return fn::mul(a, b);
}

// The value of the reduction of nothing.
template <typename A>
A identity(Reduction reduction, DType dtype) {
  switch (reduction) {
    case Reduction::kSum:
    case Reduction::kMean:
      return A(0);
    case Reduction::kProd:
      return A(1);
    case Reduction::kMax:
    case Reduction::kMin:
      break;
  }
  const bool is_max = reduction == Reduction::kMax;
  if constexpr (std::is_floating_point_v<A>) {
    return is_max ? -std::numeric_limits<A>::infinity() : std::numeric_limits<A>::infinity();
  } else {
    if (dtype == DType::kBool) return is_max ? A(0) : A(1);
    const int bits = static_cast<int>(bytes_per_block(dtype)) * 8;
    const bool is_signed = dtype >= DType::kI64 && dtype <= DType::kI8;
    const uint64_t highest = ~uint64_t{0} >> (64 - bits + (is_signed ? 1 : 0));
    const uint64_t lowest = is_signed ? ~highest : 0;
    return static_cast<A>(is_max ? lowest : highest);
  }
}

template <typename T>
Accumulator<T> reduce_tile(Reduction reduction, const T* x, int64_t n, Accumulator<T> start) {
  using A = Accumulator<T>;
  if constexpr (std::is_same_v<T, float>) {
    switch (reduction) {
      case Reduction::kSum:
      case Reduction::kMean:
        return start + reduce_tiles().sum(x, n);
      case Reduction::kMax:
        return combine<A>(reduction, start, reduce_tiles().max(x, n));
      case Reduction::kMin:
        return combine<A>(reduction, start, reduce_tiles().min(x, n));
      case Reduction::kProd:
        break;
    }
  }
  // One tile's own total first: a long f64 sum then has short chains.
  A total = static_cast<A>(x[0]);
  for (int64_t i = 1; i < n; ++i) total = combine<A>(reduction, total, static_cast<A>(x[i]));
  return combine<A>(reduction, start, total);
}

// ---- The shape of a reduction: kept and reduced dimensions, each collapsed.

struct Dims {
  int rank = 0;
  int64_t total = 1;
  int64_t extents[kMaxRank], strides[kMaxRank];

  void add(int64_t extent, int64_t stride) {
    total *= extent;
    if (extent == 1) return;
    if (rank > 0 && strides[rank - 1] == stride * extent) {
      extents[rank - 1] *= extent;
      strides[rank - 1] = stride;
      return;
    }
    extents[rank] = extent;
    strides[rank] = stride;
    ++rank;
  }
  // Takes the innermost dimension off; {1, 1} when there is none.
  std::pair<int64_t, int64_t> pop_inner() {
    if (rank == 0) return {1, 1};
    --rank;
    total /= std::max<int64_t>(extents[rank], 1);
    return {extents[rank], strides[rank]};
  }
  int64_t offset(int64_t index) const {
    int64_t result = 0;
    for (int axis = rank - 1; axis >= 0; --axis) {
      result += index % extents[axis] * strides[axis];
      index /= extents[axis];
    }
    return result;
  }
};

uint32_t axes_mask(std::span<const int64_t> axes, int rank) {
  if (axes.empty()) return ~0u;
  uint32_t mask = 0;
  for (int64_t axis : axes) mask |= 1u << (axis < 0 ? axis + rank : axis);
  return mask;
}

struct ReducePlan {
  Dims kept, reduced;
  bool inner_is_kept = false;  // the innermost dimension (of extent above 1) is kept
};

ReducePlan plan_reduction(const TensorView& x, uint32_t mask) {
  ReducePlan plan;
  for (int axis = 0; axis < x.rank; ++axis) {
    const bool is_reduced = (mask >> axis & 1) != 0;
    (is_reduced ? plan.reduced : plan.kept).add(x.extents[axis], x.strides[axis]);
    if (x.extents[axis] != 1) plan.inner_is_kept = !is_reduced;
  }
  return plan;
}

// Elements [begin, end) of the reduced space of one output, in order.
template <typename T>
Accumulator<T> reduce_range(Reduction reduction, const std::byte* data, int64_t element_size,
                            TileLoad load, const Dims& reduced, int64_t begin, int64_t end,
                            Accumulator<T> start) {
  constexpr int64_t kTile = kTileBytes / static_cast<int64_t>(sizeof(T));
  alignas(64) std::array<T, kTile> tile;
  Dims outer = reduced;
  const auto [inner, stride] = outer.pop_inner();
  while (begin < end) {
    const int64_t place = begin % inner;
    int64_t n = std::min({end - begin, inner - place, kTile});
    const std::byte* from = data + (outer.offset(begin / inner) + place * stride) * element_size;
    const T* x = tile.data();
    if (std::is_same_v<T, float> && load == nullptr && stride == 1) {
      x = reinterpret_cast<const T*>(from);
    } else if (load == nullptr) {
      for (int64_t i = 0; i < n; ++i) tile[i] = reinterpret_cast<const T*>(from)[i * stride];
    } else {
      load(from, stride, tile.data(), n);
    }
    start = reduce_tile<T>(reduction, x, n, start);
    begin += n;
  }
  return start;
}

template <typename T>
void store_result(Reduction reduction, Accumulator<T> value, int64_t count,
                  const TensorView& output, int64_t index) {
  using A = Accumulator<T>;
  if constexpr (std::is_floating_point_v<A>) {
    if (reduction == Reduction::kMean) value /= static_cast<A>(count);
  }
  const TileStore store = find_tile_store(tile_type<A>(), output.dtype);
  store(&value, output.data + index * bytes_per_block(output.dtype), 1);
}

int64_t count_parts(int64_t count) { return std::max<int64_t>(1, (count + kPart - 1) / kPart); }

// The innermost dimension is reduced: each output, or each part of a long one, is one work item.
template <typename T>
void reduce_rows(const KernelCall& call, Reduction reduction, const ReducePlan& plan) {
  using A = Accumulator<T>;
  const TensorView& x = call.input(0);
  const TensorView& y = call.output(0);
  const int64_t count = plan.reduced.total, num_outputs = plan.kept.total;
  const int64_t parts = count_parts(count);
  const int64_t size = bytes_per_block(x.dtype);
  const TileLoad load =
      x.dtype == storage_dtype(tile_type<T>()) ? nullptr : find_tile_load(x.dtype, tile_type<T>());
  const bool is_small = num_outputs * count < kMinElementsToSplit;
  const int num_threads = is_small ? 1 : call.num_threads;
  A* partials = reinterpret_cast<A*>(call.scratch);
  if (call.thread < num_threads) {
    const Range range = split_range(num_outputs * parts, call.thread, num_threads);
    for (int64_t item = range.begin; item < range.end; ++item) {
      const int64_t output = item / parts, part = item % parts;
      const A value = reduce_range<T>(
          reduction, x.data + plan.kept.offset(output) * size, size, load, plan.reduced,
          part * kPart, std::min(count, (part + 1) * kPart), identity<A>(reduction, x.dtype));
      if (parts == 1) {
        store_result<T>(reduction, value, count, y, output);
      } else {
        partials[item] = value;
      }
    }
  }
  if (parts == 1) return;
  call.barrier();
  const Range range = split_range(num_outputs, call.thread, call.num_threads);
  for (int64_t output = range.begin; output < range.end; ++output) {
    A value = partials[output * parts];
    for (int64_t part = 1; part < parts; ++part) {
      value = combine<A>(reduction, value, partials[output * parts + part]);
    }
    store_result<T>(reduction, value, count, y, output);
  }
}

// totals[i] = combine(totals[i], row[i]), the choice made outside of the loop.
template <typename T>
void add_row(Reduction reduction, const T* row, Accumulator<T>* totals, int64_t n) {
  using A = Accumulator<T>;
  switch (reduction) {
    case Reduction::kSum:
    case Reduction::kMean:
      for (int64_t i = 0; i < n; ++i) totals[i] = fn::add(totals[i], static_cast<A>(row[i]));
      break;
    case Reduction::kMax:
      for (int64_t i = 0; i < n; ++i) totals[i] = fn::max(totals[i], static_cast<A>(row[i]));
      break;
    case Reduction::kMin:
      for (int64_t i = 0; i < n; ++i) totals[i] = fn::min(totals[i], static_cast<A>(row[i]));
      break;
    case Reduction::kProd:
      for (int64_t i = 0; i < n; ++i) totals[i] = fn::mul(totals[i], static_cast<A>(row[i]));
      break;
  }
}

// The innermost dimension is kept: blocks of neighbouring outputs are reduced side by side.
template <typename T>
void reduce_columns(const KernelCall& call, Reduction reduction, const ReducePlan& plan) {
  using A = Accumulator<T>;
  const TensorView& x = call.input(0);
  Dims outer = plan.kept;
  const auto [columns, stride] = outer.pop_inner();
  const int64_t blocks = (columns + kColumns - 1) / kColumns;
  const int64_t size = bytes_per_block(x.dtype);
  const TileLoad load = find_tile_load(x.dtype, tile_type<T>());
  const int64_t elements = plan.kept.total * plan.reduced.total;
  const int num_threads = elements < kMinElementsToSplit ? 1 : call.num_threads;
  if (call.thread >= num_threads) return;
  const Range range = split_range(outer.total * blocks, call.thread, num_threads);
  alignas(64) std::array<T, kColumns> tile;
  std::array<A, kColumns> totals;
  for (int64_t item = range.begin; item < range.end; ++item) {
    const int64_t column = item % blocks * kColumns;
    const int64_t n = std::min(kColumns, columns - column);
    const std::byte* data = x.data + (outer.offset(item / blocks) + column * stride) * size;
    totals.fill(identity<A>(reduction, x.dtype));
    for (int64_t row = 0; row < plan.reduced.total; ++row) {
      load(data + plan.reduced.offset(row) * size, stride, tile.data(), n);
      add_row<T>(reduction, tile.data(), totals.data(), n);
    }
    for (int64_t i = 0; i < n; ++i) {
      store_result<T>(reduction, totals[i], plan.reduced.total, call.output(0),
                      item / blocks * columns + column + i);
    }
  }
}

// Calls body.template operator()<T>() with the type of tiles for the dtype.
template <typename Body>
void with_tile_type(DType dtype, Body&& body) {
  switch (exact_compute_type(dtype)) {
    case ComputeType::kF32:
      return body.template operator()<float>();
    case ComputeType::kF64:
      return body.template operator()<double>();
    case ComputeType::kI64:
      return body.template operator()<int64_t>();
    case ComputeType::kU64:
      return body.template operator()<uint64_t>();
  }
}

void run_reduction(const KernelCall& call, Reduction reduction, std::span<const int64_t> axes) {
  const TensorView& x = call.input(0);
  const ReducePlan plan = plan_reduction(x, axes_mask(axes, x.rank));
  if (plan.kept.total == 0) return;
  with_tile_type(x.dtype, [&]<typename T>() {
    if (plan.inner_is_kept) {
      reduce_columns<T>(call, reduction, plan);
    } else {
      reduce_rows<T>(call, reduction, plan);
    }
  });
}

std::string reject_reduction(const KernelQuery& query) {
  const TensorType& x = query.inputs[0];
  if (!is_tile_dtype(x.dtype)) return fmt::format("the input is {}", to_string(x.dtype));
  if (x.rank() > kMaxRank) return fmt::format("the input has rank {}, more than 8", x.rank());
  return "";
}

// Room for the parts of long reductions: fewer, or no longer, in a run with smaller extents.
template <typename Op>
int64_t reduction_scratch_bytes(const KernelQuery& query) {
  const TensorType& x = query.inputs[0];
  const uint32_t mask = axes_mask(query.op.as<Op>()->axes, x.rank());
  int64_t outputs = 1, count = 1;
  for (int axis = 0; axis < x.rank(); ++axis) {
    const int64_t extent = x.shape[axis].upper_bound(query.symbols);
    ((mask >> axis & 1) != 0 ? count : outputs) *= extent;
  }
  const int64_t parts = count_parts(count);
  return parts == 1 ? 0 : outputs * parts * 8;
}

template <typename Op, Reduction reduction>
void run_reduce(const KernelCall& call) {
  run_reduction(call, reduction, call.op<Op>().axes);
}

// ---- argmax and argmin

struct Extreme {
  bool is_max, takes_last;

  // Whether `value`, which stands behind, takes the place of `best`. NaN beats all but a NaN.
  template <typename T>
  bool replaces(T value, T best) const {
    if (best != best) return takes_last && value != value;
    if (value != value) return true;
    if (value == best) return takes_last;
    return is_max ? value > best : value < best;
  }
};

template <typename T>
T extreme_of_tile(bool is_max, const T* x, int64_t n) {
  const Reduction reduction = is_max ? Reduction::kMax : Reduction::kMin;
  if constexpr (std::is_same_v<T, float>) {
    return is_max ? reduce_tiles().max(x, n) : reduce_tiles().min(x, n);
  }
  return static_cast<T>(reduce_tile<T>(reduction, x, n, static_cast<Accumulator<T>>(x[0])));
}

// The position along one lane. A tile is searched only when its extreme takes the lead.
template <typename T>
int64_t find_extreme(const Extreme& extreme, const std::byte* data, int64_t size, TileLoad load,
                     int64_t stride, int64_t length) {
  constexpr int64_t kTile = kTileBytes / static_cast<int64_t>(sizeof(T));
  alignas(64) std::array<T, kTile> tile;
  int64_t best_index = 0;
  T best{};
  for (int64_t at = 0; at < length; at += kTile) {
    const int64_t n = std::min(kTile, length - at);
    load(data + at * stride * size, stride, tile.data(), n);
    const T leader = extreme_of_tile(extreme.is_max, tile.data(), n);
    if (at > 0 && !extreme.replaces(leader, best)) continue;
    int64_t i = 0;
    if (at == 0) {
      best = tile[0];
      i = 1;
    }
    for (; i < n; ++i) {
      if (!extreme.replaces(tile[i], best)) continue;
      best = tile[i];
      best_index = at + i;
    }
  }
  return best_index;
}

void run_position(const KernelCall& call, int64_t axis, const Extreme& extreme) {
  const TensorView& x = call.input(0);
  if (axis < 0) axis += x.rank;
  const ReducePlan plan = plan_reduction(x, 1u << axis);
  const int64_t length = x.extents[axis];
  if (plan.kept.total == 0 || length == 0) return;
  const int64_t size = bytes_per_block(x.dtype);
  const int num_threads = plan.kept.total * length < kMinElementsToSplit ? 1 : call.num_threads;
  if (call.thread >= num_threads) return;
  const Range range = split_range(plan.kept.total, call.thread, num_threads);
  with_tile_type(x.dtype, [&]<typename T>() {
    const TileLoad load = find_tile_load(x.dtype, tile_type<T>());
    for (int64_t output = range.begin; output < range.end; ++output) {
      call.output(0).as<int64_t>()[output] = find_extreme<T>(
          extreme, x.data + plan.kept.offset(output) * size, size, load, x.strides[axis], length);
    }
  });
}

void run_argmax(const KernelCall& call) {
  const Argmax& op = call.op<Argmax>();
  run_position(call, op.axis, {true, op.select_last});
}
void run_argmin(const KernelCall& call) {
  const Argmin& op = call.op<Argmin>();
  run_position(call, op.axis, {false, op.select_last});
}

// ---- cumulative_sum

// One lane along the innermost axis, in tiles; T is the accumulator.
template <typename T>
void sum_row(const CumulativeSum& op, const TensorView& x, const TensorView& y, int64_t from,
             int64_t to) {
  constexpr int64_t kTile = 256;
  const TileLoad load = find_tile_load(x.dtype, tile_type<T>());
  const TileStore store = find_tile_store(tile_type<T>(), y.dtype);
  const int64_t x_size = bytes_per_block(x.dtype), y_size = bytes_per_block(y.dtype);
  const int64_t length = x.last_extent(0), x_step = x.last_stride(0);
  const int64_t num_tiles = (length + kTile - 1) / kTile;
  std::array<T, kTile> values;
  T total(0);
  for (int64_t k = 0; k < num_tiles; ++k) {
    const int64_t at = (op.reverse ? num_tiles - 1 - k : k) * kTile;
    const int64_t n = std::min(kTile, length - at);
    load(x.data + (from + at * x_step) * x_size, x_step, values.data(), n);
    for (int64_t i = 0; i < n; ++i) {
      T& value = values[op.reverse ? n - 1 - i : i];
      const T before = total;
      total = fn::add(total, value);
      value = op.exclusive ? before : total;
    }
    store(values.data(), y.data + (to + at) * y_size, n);
  }
}

// One lane per column of a block, along another axis than the innermost.
template <typename T>
void sum_columns(const CumulativeSum& op, const TensorView& x, const TensorView& y, int64_t from,
                 int64_t to, int axis, int64_t columns) {
  const TileLoad load = find_tile_load(x.dtype, tile_type<T>());
  const TileStore store = find_tile_store(tile_type<T>(), y.dtype);
  const int64_t x_size = bytes_per_block(x.dtype), y_size = bytes_per_block(y.dtype);
  const int64_t length = x.extents[axis];
  std::array<T, kColumns> totals, values;
  totals.fill(T(0));
  for (int64_t k = 0; k < length; ++k) {
    const int64_t row = op.reverse ? length - 1 - k : k;
    load(x.data + (from + row * x.strides[axis]) * x_size, x.last_stride(0), values.data(),
         columns);
    for (int64_t i = 0; i < columns; ++i) {
      const T before = totals[i];
      totals[i] = fn::add(totals[i], values[i]);
      values[i] = op.exclusive ? before : totals[i];
    }
    store(values.data(), y.data + (to + row * y.strides[axis]) * y_size, columns);
  }
}

void run_cumulative_sum(const KernelCall& call) {
  const CumulativeSum& op = call.op<CumulativeSum>();
  const TensorView& x = call.input(0);
  const TensorView& y = call.output(0);
  const int64_t total = x.num_elements();
  if (total == 0) return;
  const int axis = static_cast<int>(op.axis < 0 ? op.axis + x.rank : op.axis);
  const int inner = x.rank - 1;
  const int num_threads = total < kMinElementsToSplit ? 1 : call.num_threads;
  if (call.thread >= num_threads) return;
  const bool is_row = axis == inner;
  const int64_t columns = is_row ? 1 : x.extents[inner];
  const int64_t blocks = (columns + kColumns - 1) / kColumns;
  const int64_t outer = total / (columns * x.extents[axis]);
  const Range range = split_range(outer * blocks, call.thread, num_threads);
  for (int64_t item = range.begin; item < range.end; ++item) {
    const int64_t column = item % blocks * kColumns;
    int64_t rest = item / blocks, from = column * x.strides[inner], to = column;
    for (int i = inner; i >= 0; --i) {
      if (i == axis || (i == inner && !is_row)) continue;
      from += rest % x.extents[i] * x.strides[i];
      to += rest % x.extents[i] * y.strides[i];
      rest /= x.extents[i];
    }
    const int64_t n = std::min(kColumns, columns - column);
    auto run = [&]<typename T>(T) {
      if (is_row) {
        sum_row<T>(op, x, y, from, to);
      } else {
        sum_columns<T>(op, x, y, from, to, axis, n);
      }
    };
    if (is_float(x.dtype)) {
      run(double{});
    } else if (x.dtype == DType::kU64) {
      run(uint64_t{});
    } else {
      run(int64_t{});
    }
  }
}

template <typename Op, Reduction reduction>
constexpr Kernel reduction_kernel(std::string_view name) {
  return {.name = name,
          .op = Op::kName,
          .reject = reject_reduction,
          .scratch_bytes = reduction_scratch_bytes<Op>,
          .run = run_reduce<Op, reduction>};
}

}  // namespace

std::span<const Kernel> reduce_kernels() {
  static constexpr Kernel kKernels[] = {
      reduction_kernel<ReduceSum, Reduction::kSum>("reduce.sum"),
      reduction_kernel<ReduceMean, Reduction::kMean>("reduce.mean"),
      reduction_kernel<ReduceMax, Reduction::kMax>("reduce.max"),
      reduction_kernel<ReduceMin, Reduction::kMin>("reduce.min"),
      reduction_kernel<ReduceProd, Reduction::kProd>("reduce.prod"),
      {.name = "reduce.argmax", .op = Argmax::kName, .reject = reject_reduction, .run = run_argmax},
      {.name = "reduce.argmin", .op = Argmin::kName, .reject = reject_reduction, .run = run_argmin},
      {.name = "reduce.cumulative_sum",
       .op = CumulativeSum::kName,
       .reject = reject_reduction,
       .run = run_cumulative_sum,
       .may_alias_inputs = 1},
  };
  return kKernels;
}

}  // namespace rlx::cpu
