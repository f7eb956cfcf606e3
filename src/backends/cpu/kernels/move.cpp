// Kernels that bring elements to other places: copy, concat, pad, gather, scatter and iota; and
// cast of packed blocks.
#include "ops/move.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "backends/cpu/kernels/elementwise_tiles.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/move_copy.h"
#include "ops/elementwise.h"
#include "tensor/packed.h"

namespace rlx::cpu {
namespace {

int normalize_axis(int64_t axis, int rank) {
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

// The threads that share a step of `bytes`: all of them, or one when it is small.
int count_useful_threads(const KernelCall& call, int64_t bytes) {
  return bytes < kMinBytesToSplit ? 1 : call.num_threads;
}

void set_error(const KernelCall& call, KernelError error) {
  call.error->store(error, std::memory_order_relaxed);
}

std::string reject_rank(const TensorType& type, const char* which) {
  if (type.rank() <= kMaxRank) return "";
  return fmt::format("{} has rank {}, more than {}", which, type.rank(), kMaxRank);
}

// Every input and output unpacked and of a rank that views hold.
std::string reject_packed(const KernelQuery& query) {
  for (size_t i = 0; i < query.inputs.size(); ++i) {
    if (is_packed(query.inputs[i].dtype)) {
      return fmt::format("input {} is packed ({})", i, to_string(query.inputs[i].dtype));
    }
    if (std::string reason = reject_rank(query.inputs[i], "an input"); !reason.empty()) {
      return reason;
    }
  }
  return reject_rank(query.outputs[0], "the output");
}

// ---- copy

void run_copy(const KernelCall& call) {
  copy_view(call.output(0), call.input(0), call.thread, call.num_threads);
}

// ---- concat

void run_concat(const KernelCall& call) {
  const TensorView& output = call.output(0);
  const int axis = normalize_axis(call.op<Concat>().axis, output.rank);
  const int64_t step_bytes = output.strides[axis] * bytes_per_block(output.dtype);
  TensorView part = output;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const TensorView& input = *call.inputs[i];
    part.extents[axis] = input.extents[axis];
    copy_view(part, input, call.thread, call.num_threads);
    part.data += input.extents[axis] * step_bytes;
  }
}

// ---- pad

// One output row: `value` everywhere outside the input's row.
void pad_row(std::byte* to, const std::byte* from, int64_t from_step, int64_t low, int64_t inside,
             int64_t high, const std::byte* value, int64_t size) {
  fill_elements(to, value, size, low);
  to += low * size;
  if (from_step == 1) {
    std::memcpy(to, from, static_cast<size_t>(inside * size));
  } else {
    for (int64_t i = 0; i < inside; ++i) {
      std::memcpy(to + i * size, from + i * from_step * size, static_cast<size_t>(size));
    }
  }
  fill_elements(to + inside * size, value, size, high);
}

void run_pad(const KernelCall& call) {
  const Pad& op = call.op<Pad>();
  const TensorView& input = call.input(0);
  const TensorView& output = call.output(0);
  const int64_t total = output.num_elements();
  if (total == 0) return;
  alignas(16) std::byte value[16];
  if (is_float(output.dtype)) {
    find_tile_store(ComputeType::kF64, output.dtype)(&op.value, value, 1);
  } else {
    int64_t whole = 0;
    find_tile_store(ComputeType::kF64, DType::kI64)(&op.value, &whole, 1);
    find_tile_store(ComputeType::kI64, output.dtype)(&whole, value, 1);
  }
  const int64_t size = bytes_per_block(output.dtype);
  if (output.rank == 0) {
    if (call.thread == 0) std::memcpy(output.data, input.data, static_cast<size_t>(size));
    return;
  }
  const int num_threads = count_useful_threads(call, total * size);
  if (call.thread >= num_threads) return;
  const int inner = output.rank - 1;
  const int64_t columns = output.extents[inner];
  const Range rows = split_range(total / columns, call.thread, num_threads);
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    int64_t rest = row, offset = 0;
    bool is_inside = input.extents[inner] > 0;
    for (int axis = inner - 1; axis >= 0; --axis) {
      const int64_t place = rest % output.extents[axis] - op.low[axis];
      rest /= output.extents[axis];
      is_inside = is_inside && place >= 0 && place < input.extents[axis];
      offset += place * input.strides[axis];
    }
    std::byte* to = output.data + row * columns * size;
    if (!is_inside) {
      fill_elements(to, value, size, columns);
      continue;
    }
    pad_row(to, input.data + offset * size, input.strides[inner], op.low[inner],
            input.extents[inner], columns - op.low[inner] - input.extents[inner], value, size);
  }
}

std::string reject_pad(const KernelQuery& query) {
  if (is_complex(query.outputs[0].dtype)) return "the dtype is complex";
  return reject_packed(query);
}

// ---- gather

// Reads element `index` of a contiguous integer tensor.
int64_t read_index(DType dtype, const std::byte* data, int64_t index) {
  auto read = [&]<typename T>(T) {
    T value;
    std::memcpy(&value, data + index * static_cast<int64_t>(sizeof(T)), sizeof(T));
    return static_cast<int64_t>(value);
  };
  switch (dtype) {
    case DType::kI32:
      return read(int32_t{});
    case DType::kI16:
      return read(int16_t{});
    case DType::kI8:
      return read(int8_t{});
    case DType::kU32:
      return read(uint32_t{});
    case DType::kU16:
      return read(uint16_t{});
    case DType::kU8:
      return read(uint8_t{});
    default:  // a u64 beyond i64 reads as negative, below every -extent that memory can hold
      return read(int64_t{});
  }
}

// The index counted from the front, or -1 when it lies outside.
int64_t resolve_index(int64_t index, int64_t extent) {
  if (index < 0) index += extent;
  return index >= 0 && index < extent ? index : -1;
}

// Dimensions after the gathered axis must lie without gaps, so that a row is one copy.
std::string reject_gather(const KernelQuery& query) {
  const TensorType& table = query.inputs[0];
  if (std::string reason = reject_rank(query.outputs[0], "the output"); !reason.empty()) {
    return reason;
  }
  if (table.rank() > kMaxRank) return reject_rank(table, "the table");
  if (!query.is_contiguous(1)) return "the ids are not contiguous";
  const Gather& op = *query.op.as<Gather>();
  const int axis = normalize_axis(op.axis, table.rank());
  const Shape inner(table.shape.begin() + axis + 1, table.shape.end());
  Layout layout;
  layout.strides.assign(query.layouts[0].strides.begin() + axis + 1,
                        query.layouts[0].strides.end());
  if (!is_contiguous(inner, layout)) return "the table's rows are not contiguous";
  return "";
}

void run_gather(const KernelCall& call) {
  const TensorView& table = call.input(0);
  const TensorView& ids = call.input(1);
  const TensorView& output = call.output(0);
  const int axis = normalize_axis(call.op<Gather>().axis, table.rank);
  const int64_t num_ids = ids.num_elements();
  int64_t outer = 1, inner = 1;
  for (int i = 0; i < axis; ++i) outer *= table.extents[i];
  for (int i = axis + 1; i < table.rank; ++i) inner *= table.extents[i];
  if (outer * num_ids * inner == 0) return;

  const bool decodes = is_packed(table.dtype);
  const int64_t block = elements_per_block(table.dtype);
  const int64_t block_bytes = bytes_per_block(table.dtype);
  const int64_t row_bytes = inner * bytes_per_block(output.dtype);
  const int num_threads = count_useful_threads(call, outer * num_ids * row_bytes);
  if (call.thread >= num_threads) return;
  const Range rows = split_range(outer * num_ids, call.thread, num_threads);
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    const int64_t index =
        resolve_index(read_index(ids.dtype, ids.data, row % num_ids), table.extents[axis]);
    if (index < 0) {
      set_error(call, KernelError::kIndexOutOfRange);
      continue;
    }
    int64_t offset = index * table.strides[axis];
    int64_t rest = row / num_ids;
    for (int i = axis - 1; i >= 0; --i) {
      offset += rest % table.extents[i] * table.strides[i];
      rest /= table.extents[i];
    }
    const std::byte* from = table.data + offset / block * block_bytes;
    std::byte* to = output.data + row * row_bytes;
    if (decodes) {
      decode_row(table.dtype, from, inner, reinterpret_cast<float*>(to));
    } else {
      std::memcpy(to, from, static_cast<size_t>(row_bytes));
    }
  }
}

// ---- cast of packed blocks

std::string reject_cast_packed(const KernelQuery& query) {
  if (!is_packed(query.inputs[0].dtype)) return "the input is not packed";
  if (query.inputs[0].rank() == 0) return "the input is a scalar";
  if (query.outputs[0].dtype != DType::kF32) return "the output is not f32";
  if (!query.is_contiguous(0)) return "the input is not contiguous";
  return reject_rank(query.outputs[0], "the output");
}

void run_cast_packed(const KernelCall& call) {
  const TensorView& input = call.input(0);
  const TensorView& output = call.output(0);
  const int64_t total = output.num_elements();
  if (total == 0) return;
  // Blocks of a contiguous tensor follow each other across rows.
  const int64_t block = elements_per_block(input.dtype);
  const int num_threads = count_useful_threads(call, total * 4);
  if (call.thread >= num_threads) return;
  const Range range = split_range(total, call.thread, num_threads, block);
  if (range.begin == range.end) return;
  decode_row(input.dtype, input.data + range.begin / block * bytes_per_block(input.dtype),
             range.end - range.begin, output.as<float>() + range.begin);
}

// ---- scatter

// Puts one update onto one element of the same dtype, computing in f64 or i64.
struct Combine {
  ScatterReduction reduction;
  ComputeType type;
  TileLoad load;
  TileStore store;
  int64_t size;

  template <typename T>
  void apply(std::byte* to, const std::byte* update) const {
    T a, b;
    load(to, 0, &a, 1);
    load(update, 0, &b, 1);
    switch (reduction) {
      case ScatterReduction::kAdd:
        a = fn::add(a, b);
        break;
      case ScatterReduction::kMul:
        a = fn::mul(a, b);
        break;
      case ScatterReduction::kMin:
        a = fn::min(a, b);
        break;
      case ScatterReduction::kMax:
        a = fn::max(a, b);
        break;
      case ScatterReduction::kNone:
        break;
    }
    store(&a, to, 1);
  }
  void operator()(std::byte* to, const std::byte* update) const {
    if (reduction == ScatterReduction::kNone) {
      std::memcpy(to, update, static_cast<size_t>(size));
    } else if (type == ComputeType::kF64) {
      apply<double>(to, update);
    } else if (type == ComputeType::kU64) {
      apply<uint64_t>(to, update);
    } else {
      apply<int64_t>(to, update);
    }
  }
};

std::string reject_scatter(const KernelQuery& query) {
  const Scatter& op = *query.op.as<Scatter>();
  if (op.reduction != ScatterReduction::kNone && !is_tile_dtype(query.outputs[0].dtype)) {
    return fmt::format("a reduction over {} is not supported", to_string(query.outputs[0].dtype));
  }
  return reject_packed(query);
}

void run_scatter(const KernelCall& call) {
  const Scatter& op = call.op<Scatter>();
  const TensorView& data = call.input(0);
  const TensorView& ids = call.input(1);
  const TensorView& updates = call.input(2);
  const TensorView& output = call.output(0);
  // In place when the output shares the data's bytes.
  if (output.data != data.data) {
    copy_view(output, data, call.thread, call.num_threads);
    call.barrier();
  }
  const int64_t total = ids.num_elements();
  if (total == 0) return;
  const int axis = normalize_axis(op.axis, output.rank);
  const int64_t size = bytes_per_block(output.dtype);
  const ComputeType type =
      is_float(output.dtype) ? ComputeType::kF64 : exact_compute_type(output.dtype);
  const bool reduces = op.reduction != ScatterReduction::kNone;
  const Combine combine{op.reduction, type, reduces ? find_tile_load(output.dtype, type) : nullptr,
                        reduces ? find_tile_store(type, output.dtype) : nullptr, size};
  const int64_t id_bytes = bytes_per_block(ids.dtype);

  // Updates that differ on another axis meet different elements: a lane along the axis belongs to
  // one thread, which goes through it in order.
  const int64_t lanes = total / ids.extents[axis];
  const int num_threads = count_useful_threads(call, total * 16);
  if (call.thread >= num_threads) return;
  const Range range = split_range(lanes, call.thread, num_threads);
  for (int64_t lane = range.begin; lane < range.end; ++lane) {
    int64_t rest = lane, id = 0, update = 0, to = 0;
    for (int i = ids.rank - 1; i >= 0; --i) {
      if (i == axis) continue;
      const int64_t place = rest % ids.extents[i];
      rest /= ids.extents[i];
      id += place * ids.strides[i];
      update += place * updates.strides[i];
      to += place * output.strides[i];
    }
    for (int64_t k = 0; k < ids.extents[axis]; ++k) {
      const int64_t raw =
          read_index(ids.dtype, ids.data + (id + k * ids.strides[axis]) * id_bytes, 0);
      const int64_t index = resolve_index(raw, output.extents[axis]);
      if (index < 0) {
        set_error(call, KernelError::kIndexOutOfRange);
        continue;
      }
      combine(output.data + (to + index * output.strides[axis]) * size,
              updates.data + (update + k * updates.strides[axis]) * size);
    }
  }
}

// ---- iota

std::string reject_iota(const KernelQuery& query) {
  if (!is_tile_dtype(query.outputs[0].dtype)) return "the dtype is not a real number";
  return reject_rank(query.outputs[0], "the output");
}

void run_iota(const KernelCall& call) {
  const Iota& op = call.op<Iota>();
  const TensorView& output = call.output(0);
  const int64_t total = output.num_elements();
  if (total == 0) return;
  const int64_t size = bytes_per_block(output.dtype);
  const int num_threads = count_useful_threads(call, total * size);
  if (call.thread >= num_threads) return;
  // The dims are the extents, then the start.
  const uint64_t start = static_cast<uint64_t>(call.dims.back());
  const uint64_t step = static_cast<uint64_t>(op.step);
  const int axis = normalize_axis(op.axis, output.rank);
  int64_t inner = 1;
  for (int i = axis + 1; i < output.rank; ++i) inner *= output.extents[i];
  const TileStore store = find_tile_store(ComputeType::kI64, output.dtype);
  const Range range = split_range(total, call.thread, num_threads, 64);
  std::array<int64_t, 256> values;
  for (int64_t at = range.begin; at < range.end; at += 256) {
    const int64_t n = std::min<int64_t>(256, range.end - at);
    for (int64_t i = 0; i < n; ++i) {
      const int64_t index = (at + i) / inner % output.extents[axis];
      values[i] = static_cast<int64_t>(start + step * static_cast<uint64_t>(index));
    }
    store(values.data(), output.data + at * size, n);
  }
}

}  // namespace

std::span<const Kernel> move_kernels() {
  static constexpr Kernel kKernels[] = {
      {.name = "move.copy", .op = Copy::kName, .reject = reject_packed, .run = run_copy},
      {.name = "move.concat", .op = Concat::kName, .reject = reject_packed, .run = run_concat},
      {.name = "move.pad", .op = Pad::kName, .reject = reject_pad, .run = run_pad},
      {.name = "move.gather", .op = Gather::kName, .reject = reject_gather, .run = run_gather},
      {.name = "move.cast_packed",
       .op = Cast::kName,
       .reject = reject_cast_packed,
       .run = run_cast_packed},
      {.name = "move.scatter",
       .op = Scatter::kName,
       .reject = reject_scatter,
       .run = run_scatter,
       .may_alias_inputs = 1},
      {.name = "move.iota", .op = Iota::kName, .reject = reject_iota, .run = run_iota},
  };
  return kKernels;
}

}  // namespace rlx::cpu
