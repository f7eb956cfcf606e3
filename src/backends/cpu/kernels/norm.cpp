// Normalisations over rows, softmax over any axis, and rotary positions. f16 and bf16 rows are
// widened to f32 in scratch, computed there and rounded once; f32 and f64 rows with unit stride are
// used where they lie.
#include "ops/norm.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "backends/cpu/kernels/elementwise_tiles.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/norm_rows.h"
#include "ops/attention.h"

namespace rlx::cpu {
namespace {

// Below this many elements one thread does all the work.
constexpr int64_t kMinElementsToSplit = 4096;

constexpr int64_t kMaxRowBuffers = 5;

template <typename T>
constexpr ComputeType compute_type() {
  return sizeof(T) == 8 ? ComputeType::kF64 : ComputeType::kF32;
}

ComputeType choose_type(DType dtype) {
  return dtype == DType::kF64 ? ComputeType::kF64 : ComputeType::kF32;
}

int64_t round_up_64(int64_t bytes) { return (bytes + 63) / 64 * 64; }

// The rows' buffers of one thread in the step's scratch.
template <typename T>
class RowScratch {
 public:
  RowScratch(const KernelCall& call, int64_t row_elements)
      : bytes_(round_up_64(row_elements * static_cast<int64_t>(sizeof(T)))),
        next_(call.scratch + call.thread * kMaxRowBuffers * bytes_) {}

  T* take() {
    T* buffer = reinterpret_cast<T*>(next_);
    next_ += bytes_;
    return buffer;
  }

 private:
  int64_t bytes_;
  std::byte* next_;
};

// A row of n elements, row-major number `row`, as T: where it lies, or converted into a buffer.
template <typename T>
class RowReader {
 public:
  // Takes a buffer only when it needs one.
  RowReader(const TensorView& view, int64_t n, RowScratch<T>& scratch)
      : view_(view),
        n_(n),
        stride_(n == 1 ? 1 : view.strides[view.rank - 1]),
        is_direct_(view.dtype == storage_dtype(compute_type<T>()) && stride_ == 1),
        load_(find_tile_load(view.dtype, compute_type<T>())),
        buffer_(is_direct_ ? nullptr : scratch.take()) {}

  const T* read(int64_t row) const {
    int64_t offset = 0;
    for (int axis = view_.rank - 2; axis >= 0; --axis) {
      offset += row % view_.extents[axis] * view_.strides[axis];
      row /= view_.extents[axis];
    }
    const std::byte* data = view_.data + offset * bytes_per_block(view_.dtype);
    if (is_direct_) return reinterpret_cast<const T*>(data);
    load_(data, stride_, buffer_, n_);
    return buffer_;
  }

 private:
  const TensorView& view_;
  int64_t n_, stride_;
  bool is_direct_;
  TileLoad load_;
  T* buffer_;
};

// A row of the contiguous output: where it lies, or a buffer that `finish` rounds into place.
template <typename T>
class RowWriter {
 public:
  RowWriter(const TensorView& view, int64_t n, RowScratch<T>& scratch)
      : view_(view),
        n_(n),
        is_direct_(view.dtype == storage_dtype(compute_type<T>())),
        store_(find_tile_store(compute_type<T>(), view.dtype)),
        buffer_(is_direct_ ? nullptr : scratch.take()) {}

  T* place(int64_t row) const { return is_direct_ ? reinterpret_cast<T*>(data(row)) : buffer_; }
  void finish(int64_t row) const {
    if (!is_direct_) store_(buffer_, data(row), n_);
  }

 private:
  std::byte* data(int64_t row) const {
    return view_.data + row * n_ * bytes_per_block(view_.dtype);
  }

  const TensorView& view_;
  int64_t n_;
  bool is_direct_;
  TileStore store_;
  T* buffer_;
};

Range share_rows(const KernelCall& call, int64_t rows, int64_t row_elements) {
  const int num_threads = rows * row_elements < kMinElementsToSplit ? 1 : call.num_threads;
  if (call.thread >= num_threads) return {0, 0};
  return split_range(rows, call.thread, num_threads);
}

// ---- What all kernels here accept: floats in views' rank.

std::string reject_norm(const KernelQuery& query) {
  for (size_t i = 0; i < query.inputs.size(); ++i) {
    const TensorType& type = query.inputs[i];
    if (!is_float(type.dtype)) {
      return fmt::format("input {} is {}, not a float", i, to_string(type.dtype));
    }
    if (type.rank() > kMaxRank) {
      return fmt::format("input {} has rank {}, more than {}", i, type.rank(), kMaxRank);
    }
  }
  return "";
}

// Room for rows that cannot be used where they lie; none when all can.
int64_t row_scratch_bytes(const KernelQuery& query) {
  const TensorType& x = query.inputs[0];
  const ComputeType type = choose_type(x.dtype);
  bool is_direct = true;
  for (size_t i = 0; i < query.inputs.size(); ++i) {
    is_direct = is_direct && query.inputs[i].dtype == storage_dtype(type) &&
                query.has_unit_inner_stride(static_cast<int>(i));
  }
  if (is_direct || x.shape.empty()) return 0;
  const int64_t n = x.shape.back().upper_bound(query.symbols);
  return round_up_64(n * element_bytes(type)) * kMaxRowBuffers * query.max_threads;
}

// Calls body.template operator()<T>() with the type in which x is computed.
template <typename Body>
void with_type(DType dtype, Body&& body) {
  if (dtype == DType::kF64) {
    body.template operator()<double>();
  } else {
    body.template operator()<float>();
  }
}

// ---- rms_norm, add_rms_norm, layer_norm

template <typename T>
void run_rms_norm_as(const KernelCall& call) {
  const TensorView& x = call.input(0);
  const int64_t n = x.last_extent(0);
  if (x.num_elements() == 0) return;
  const int64_t rows = x.num_elements() / n;
  const Range range = share_rows(call, rows, n);
  if (range.begin == range.end) return;
  RowScratch<T> scratch(call, n);
  const RowReader<T> in(x, n, scratch);
  const T* weight = RowReader<T>(call.input(1), n, scratch).read(0);
  const RowWriter<T> out(call.output(0), n, scratch);
  for (int64_t row = range.begin; row < range.end; ++row) {
    norm_rows<T>().rms_norm(in.read(row), weight, call.op<RmsNorm>().eps, out.place(row), n);
    out.finish(row);
  }
}

void run_rms_norm(const KernelCall& call) {
  with_type(call.input(0).dtype, [&]<typename T>() { run_rms_norm_as<T>(call); });
}

template <typename T>
void run_add_rms_norm_as(const KernelCall& call) {
  const TensorView& x = call.input(0);
  const int64_t n = x.last_extent(0);
  if (x.num_elements() == 0) return;
  const int64_t rows = x.num_elements() / n;
  const Range range = share_rows(call, rows, n);
  if (range.begin == range.end) return;
  RowScratch<T> scratch(call, n);
  const RowReader<T> left(x, n, scratch), right(call.input(1), n, scratch);
  const T* weight = RowReader<T>(call.input(2), n, scratch).read(0);
  const RowWriter<T> sum(call.output(0), n, scratch), out(call.output(1), n, scratch);
  for (int64_t row = range.begin; row < range.end; ++row) {
    norm_rows<T>().add_rms_norm(left.read(row), right.read(row), weight, call.op<AddRmsNorm>().eps,
                                sum.place(row), out.place(row), n);
    sum.finish(row);
    out.finish(row);
  }
}

void run_add_rms_norm(const KernelCall& call) {
  with_type(call.input(0).dtype, [&]<typename T>() { run_add_rms_norm_as<T>(call); });
}

template <typename T>
void run_layer_norm_as(const KernelCall& call) {
  const TensorView& x = call.input(0);
  const int64_t n = x.last_extent(0);
  if (x.num_elements() == 0) return;
  const int64_t rows = x.num_elements() / n;
  const Range range = share_rows(call, rows, n);
  if (range.begin == range.end) return;
  RowScratch<T> scratch(call, n);
  const RowReader<T> in(x, n, scratch);
  const T* weight = RowReader<T>(call.input(1), n, scratch).read(0);
  const T* bias = RowReader<T>(call.input(2), n, scratch).read(0);
  const RowWriter<T> out(call.output(0), n, scratch);
  for (int64_t row = range.begin; row < range.end; ++row) {
    norm_rows<T>().layer_norm(in.read(row), weight, bias, call.op<LayerNorm>().eps, out.place(row),
                              n);
    out.finish(row);
  }
}

void run_layer_norm(const KernelCall& call) {
  with_type(call.input(0).dtype, [&]<typename T>() { run_layer_norm_as<T>(call); });
}

// ---- softmax and log_softmax

template <typename T>
void run_softmax_rows(const KernelCall& call, bool is_log) {
  const TensorView& x = call.input(0);
  const int64_t n = x.last_extent(0);
  const int64_t rows = x.num_elements() / n;
  const Range range = share_rows(call, rows, n);
  if (range.begin == range.end) return;
  RowScratch<T> scratch(call, n);
  const RowReader<T> in(x, n, scratch);
  const RowWriter<T> out(call.output(0), n, scratch);
  for (int64_t row = range.begin; row < range.end; ++row) {
    const auto function = is_log ? norm_rows<T>().log_softmax : norm_rows<T>().softmax;
    function(in.read(row), out.place(row), n);
    out.finish(row);
  }
}

// Along another axis than the last: blocks of neighbouring columns, whose rows are the axis.
template <typename T>
void run_softmax_columns(const KernelCall& call, int axis, bool is_log) {
  constexpr int64_t kColumns = 64;
  const TensorView& x = call.input(0);
  const TensorView& y = call.output(0);
  const int inner = x.rank - 1;
  const int64_t columns = x.extents[inner], length = x.extents[axis];
  const int64_t column_blocks = (columns + kColumns - 1) / kColumns;
  const int64_t outer = x.num_elements() / (columns * length);
  const int64_t x_bytes = bytes_per_block(x.dtype), y_bytes = bytes_per_block(y.dtype);
  const TileLoad load = find_tile_load(x.dtype, compute_type<T>());
  const TileStore store = find_tile_store(compute_type<T>(), y.dtype);
  const NormRows<T>& rows = norm_rows<T>();
  const Range range = share_rows(call, outer * column_blocks, columns * length / column_blocks);
  alignas(64) std::array<T, kColumns> max, values, results;
  std::array<double, kColumns> sum;
  for (int64_t at = range.begin; at < range.end; ++at) {
    const int64_t column = at % column_blocks * kColumns;
    const int64_t n = std::min(kColumns, columns - column);
    int64_t rest = at / column_blocks;
    int64_t from = column * x.strides[inner], to = column * y.strides[inner];
    for (int i = inner - 1; i >= 0; --i) {
      if (i == axis) continue;
      from += rest % x.extents[i] * x.strides[i];
      to += rest % x.extents[i] * y.strides[i];
      rest /= x.extents[i];
    }
    auto read = [&](int64_t row) {
      load(x.data + (from + row * x.strides[axis]) * x_bytes, x.strides[inner], values.data(), n);
      return values.data();
    };
    max.fill(-std::numeric_limits<T>::infinity());
    sum.fill(0);
    for (int64_t row = 0; row < length; ++row) rows.column_max(read(row), max.data(), n);
    for (int64_t row = 0; row < length; ++row) {
      rows.column_sum(read(row), max.data(), sum.data(), n);
    }
    for (int64_t row = 0; row < length; ++row) {
      const auto function = is_log ? rows.column_log_softmax : rows.column_softmax;
      function(read(row), max.data(), sum.data(), results.data(), n);
      store(results.data(), y.data + (to + row * y.strides[axis]) * y_bytes, n);
    }
  }
}

void run_softmax_along(const KernelCall& call, int64_t axis, bool is_log) {
  const TensorView& x = call.input(0);
  if (x.num_elements() == 0) return;
  if (axis < 0) axis += x.rank;
  with_type(x.dtype, [&]<typename T>() {
    if (axis == x.rank - 1) {
      run_softmax_rows<T>(call, is_log);
    } else {
      run_softmax_columns<T>(call, static_cast<int>(axis), is_log);
    }
  });
}

void run_softmax(const KernelCall& call) {
  run_softmax_along(call, call.op<Softmax>().axis, false);
}
void run_log_softmax(const KernelCall& call) {
  run_softmax_along(call, call.op<LogSoftmax>().axis, true);
}

// ---- rope and rope_table

std::string reject_rope(const KernelQuery& query) {
  if (query.inputs[1].dtype != DType::kF32) return "the table is not f32";
  if (!query.has_unit_inner_stride(1)) return "the table's rows are not contiguous";
  return reject_norm(query);
}

template <typename T>
void run_rope_as(const KernelCall& call) {
  const TensorView& x = call.input(0);
  const TensorView& table = call.input(1);
  if (x.num_elements() == 0) return;
  const int64_t dim = x.extents[3], heads = x.extents[2], tokens = x.extents[1];
  const int64_t rotary = table.extents[1], half = rotary / 2;
  const Range range = share_rows(call, x.num_elements() / dim, dim);
  if (range.begin == range.end) return;
  RowScratch<T> scratch(call, dim);
  const RowReader<T> in(x, dim, scratch);
  const RowWriter<T> out(call.output(0), dim, scratch);
  const auto function =
      call.op<Rope>().interleaved ? norm_rows<T>().rope_interleaved : norm_rows<T>().rope;
  for (int64_t row = range.begin; row < range.end; ++row) {
    const float* cosines = table.as<float>() + row / heads % tokens * table.strides[0];
    const T* from = in.read(row);
    T* to = out.place(row);
    function(from, cosines, cosines + half, to, half);
    if (to != from && rotary < dim) {
      std::memcpy(to + rotary, from + rotary, static_cast<size_t>(dim - rotary) * sizeof(T));
    }
    out.finish(row);
  }
}

void run_rope(const KernelCall& call) {
  with_type(call.input(0).dtype, [&]<typename T>() { run_rope_as<T>(call); });
}

std::string reject_rope_table(const KernelQuery& query) {
  if (!query.is_contiguous(1)) return "the frequencies are not contiguous";
  if (query.inputs[0].dtype != DType::kI64) return "the positions are not i64";
  if (query.inputs[1].dtype != DType::kF32) return "the frequencies are not f32";
  return "";
}

void run_rope_table(const KernelCall& call) {
  const TensorView& positions = call.input(0);
  const TensorView& frequencies = call.input(1);
  const int64_t half = frequencies.extents[0];
  const float scale = static_cast<float>(call.op<RopeTable>().scale);
  const Range range = share_rows(call, positions.extents[0], half * 16);
  for (int64_t token = range.begin; token < range.end; ++token) {
    const float position =
        static_cast<float>(positions.as<int64_t>()[token * positions.strides[0]]);
    float* row = call.output(0).as<float>() + token * half * 2;
    fill_rope_row(position, frequencies.as<float>(), scale, row, row + half, half);
  }
}

}  // namespace

std::span<const Kernel> norm_kernels() {
  static constexpr Kernel kKernels[] = {
      {.name = "norm.rms_norm",
       .op = RmsNorm::kName,
       .reject = reject_norm,
       .scratch_bytes = row_scratch_bytes,
       .run = run_rms_norm,
       .may_alias_inputs = 1},
      {.name = "norm.add_rms_norm",
       .op = AddRmsNorm::kName,
       .reject = reject_norm,
       .scratch_bytes = row_scratch_bytes,
       .run = run_add_rms_norm,
       .may_alias_inputs = 3},
      {.name = "norm.layer_norm",
       .op = LayerNorm::kName,
       .reject = reject_norm,
       .scratch_bytes = row_scratch_bytes,
       .run = run_layer_norm,
       .may_alias_inputs = 1},
      {.name = "norm.softmax",
       .op = Softmax::kName,
       .reject = reject_norm,
       .scratch_bytes = row_scratch_bytes,
       .run = run_softmax,
       .may_alias_inputs = 1},
      {.name = "norm.log_softmax",
       .op = LogSoftmax::kName,
       .reject = reject_norm,
       .scratch_bytes = row_scratch_bytes,
       .run = run_log_softmax,
       .may_alias_inputs = 1},
      {.name = "norm.rope",
       .op = Rope::kName,
       .reject = reject_rope,
       .scratch_bytes = row_scratch_bytes,
       .run = run_rope,
       .may_alias_inputs = 1},
      {.name = "norm.rope_table",
       .op = RopeTable::kName,
       .reject = reject_rope_table,
       .run = run_rope_table},
  };
  return kKernels;
}

}  // namespace rlx::cpu
