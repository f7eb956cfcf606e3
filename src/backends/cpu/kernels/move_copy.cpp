#include "backends/cpu/kernels/move_copy.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/kernels/elementwise_tiles.h"
#include "base/error.h"
#include "base/thread_pool.h"

namespace rlx::cpu {
namespace {

struct Bytes16 {
  uint64_t low, high;
};

// Dimensions with extents of 1 dropped and neighbours merged where both sides step as one.
struct CopyDims {
  int rank = 0;
  int64_t total = 1;
  int64_t extents[kMaxRank];
  int64_t to[kMaxRank], from[kMaxRank];  // strides
};

CopyDims collapse(const TensorView& to, const TensorView& from) {
  CopyDims dims;
  for (int axis = 0; axis < to.rank; ++axis) {
    const int64_t extent = to.extents[axis];
    dims.total *= extent;
    if (extent == 1) continue;
    const int last = dims.rank - 1;
    if (last >= 0 && dims.to[last] == to.strides[axis] * extent &&
        dims.from[last] == from.strides[axis] * extent) {
      dims.extents[last] *= extent;
      dims.to[last] = to.strides[axis];
      dims.from[last] = from.strides[axis];
      continue;
    }
    dims.extents[dims.rank] = extent;
    dims.to[dims.rank] = to.strides[axis];
    dims.from[dims.rank] = from.strides[axis];
    ++dims.rank;
  }
  if (dims.rank == 0) {
    dims.rank = 1;
    dims.extents[0] = 1;
    dims.to[0] = dims.from[0] = 1;
  }
  return dims;
}

// Calls row(to_offset, from_offset, n) for every run along the innermost dimension in the elements
// [begin, end) of the row-major order.
template <typename Row>
void for_each_run(const CopyDims& dims, int64_t begin, int64_t end, Row&& row) {
  const int inner = dims.rank - 1;
  int64_t place[kMaxRank];
  int64_t rest = begin, to = 0, from = 0;
  for (int axis = inner; axis >= 0; --axis) {
    place[axis] = rest % dims.extents[axis];
    rest /= dims.extents[axis];
    to += place[axis] * dims.to[axis];
    from += place[axis] * dims.from[axis];
  }
  while (begin < end) {
    const int64_t n = std::min(end - begin, dims.extents[inner] - place[inner]);
    row(to, from, n);
    begin += n;
    to -= place[inner] * dims.to[inner];
    from -= place[inner] * dims.from[inner];
    place[inner] = 0;
    for (int axis = inner - 1; axis >= 0; --axis) {
      to += dims.to[axis];
      from += dims.from[axis];
      if (++place[axis] < dims.extents[axis]) break;
      to -= place[axis] * dims.to[axis];
      from -= place[axis] * dims.from[axis];
      place[axis] = 0;
    }
  }
}

template <typename T>
void copy_runs(const CopyDims& dims, T* to, const T* from, Range range) {
  const int64_t to_step = dims.to[dims.rank - 1], from_step = dims.from[dims.rank - 1];
  if (to_step == 1 && from_step == 1) {
    for_each_run(dims, range.begin, range.end, [&](int64_t t, int64_t f, int64_t n) {
      std::memcpy(to + t, from + f, static_cast<size_t>(n) * sizeof(T));
    });
    return;
  }
  for_each_run(dims, range.begin, range.end, [&](int64_t t, int64_t f, int64_t n) {
    T* out = to + t;
    const T* in = from + f;
    for (int64_t i = 0; i < n; ++i) out[i * to_step] = in[i * from_step];
  });
}

// A transposition: `from` is contiguous along dimension `across`, `to` along the innermost. Square
// blocks pass through a buffer, so that each cache line of either side is touched once: with
// strides of a power of two the lines of a block share one set of the cache and would push each
// other out.
template <typename T>
void copy_transposed(const CopyDims& dims, int across, T* to, const T* from, int thread,
                     int num_threads) {
  constexpr int64_t kBlock =
      64 / static_cast<int64_t>(sizeof(T)) < 16 ? 16 : 64 / static_cast<int64_t>(sizeof(T));
  alignas(64) T block[kBlock * kBlock];
  const int inner = dims.rank - 1;
  const int64_t rows = dims.extents[across], columns = dims.extents[inner];
  const int64_t row_blocks = (rows + kBlock - 1) / kBlock;
  const int64_t column_blocks = (columns + kBlock - 1) / kBlock;
  const int64_t outer = dims.total / (rows * columns);
  const Range range = split_range(outer * row_blocks * column_blocks, thread, num_threads);
  for (int64_t at = range.begin; at < range.end; ++at) {
    int64_t rest = at / (row_blocks * column_blocks);
    const int64_t row = at / column_blocks % row_blocks * kBlock;
    const int64_t column = at % column_blocks * kBlock;
    int64_t t = row * dims.to[across] + column * dims.to[inner];
    int64_t f = row * dims.from[across] + column * dims.from[inner];
    for (int axis = inner - 1; axis >= 0; --axis) {
      if (axis == across) continue;
      t += rest % dims.extents[axis] * dims.to[axis];
      f += rest % dims.extents[axis] * dims.from[axis];
      rest /= dims.extents[axis];
    }
    const int64_t num_rows = std::min(kBlock, rows - row);
    const int64_t num_columns = std::min(kBlock, columns - column);
    for (int64_t c = 0; c < num_columns; ++c) {
      const T* in = from + f + c * dims.from[inner];
      for (int64_t r = 0; r < num_rows; ++r) block[r * kBlock + c] = in[r];
    }
    for (int64_t r = 0; r < num_rows; ++r) {
      std::memcpy(to + t + r * dims.to[across], block + r * kBlock,
                  static_cast<size_t>(num_columns) * sizeof(T));
    }
  }
}

template <typename T>
void copy_typed(const CopyDims& dims, std::byte* to, const std::byte* from, int thread,
                int num_threads) {
  if (dims.total * static_cast<int64_t>(sizeof(T)) < kMinBytesToSplit) num_threads = 1;
  if (thread >= num_threads) return;
  T* out = reinterpret_cast<T*>(to);
  const T* in = reinterpret_cast<const T*>(from);
  const int inner = dims.rank - 1;
  if (dims.to[inner] == 1 && dims.from[inner] > 1 && dims.extents[inner] >= 8) {
    for (int axis = 0; axis < inner; ++axis) {
      if (dims.from[axis] == 1 && dims.extents[axis] >= 8) {
        copy_transposed(dims, axis, out, in, thread, num_threads);
        return;
      }
    }
  }
  // Threads meet at multiples of a cache line.
  copy_runs(dims, out, in, split_range(dims.total, thread, num_threads, 64));
}

}  // namespace

void copy_view(const TensorView& to, const TensorView& from, int thread, int num_threads) {
  const CopyDims dims = collapse(to, from);
  if (dims.total == 0) return;
  switch (bytes_per_block(to.dtype)) {
    case 1:
      return copy_typed<uint8_t>(dims, to.data, from.data, thread, num_threads);
    case 2:
      return copy_typed<uint16_t>(dims, to.data, from.data, thread, num_threads);
    case 4:
      return copy_typed<uint32_t>(dims, to.data, from.data, thread, num_threads);
    case 8:
      return copy_typed<uint64_t>(dims, to.data, from.data, thread, num_threads);
    default:
      return copy_typed<Bytes16>(dims, to.data, from.data, thread, num_threads);
  }
}

void convert_view(const TensorView& to, const TensorView& from, int thread, int num_threads) {
  const CopyDims dims = collapse(to, from);
  if (dims.total == 0) return;
  const ComputeType type = exact_compute_type(from.dtype);
  const int64_t from_bytes = bytes_per_block(from.dtype), to_bytes = bytes_per_block(to.dtype);
  if (dims.total * std::max(from_bytes, to_bytes) < kMinBytesToSplit) num_threads = 1;
  if (thread >= num_threads) return;
  const TileLoad load = find_tile_load(from.dtype, type);
  const TileStore store = find_tile_store(type, to.dtype);
  const int64_t to_step = dims.to[dims.rank - 1], from_step = dims.from[dims.rank - 1];
  const int64_t tile_bytes = element_bytes(type);
  const Range range = split_range(dims.total, thread, num_threads, 64);
  alignas(64) std::byte tile[kTileBytes];
  for_each_run(dims, range.begin, range.end, [&](int64_t t, int64_t f, int64_t n) {
    for (int64_t i = 0; i < n; i += elements_per_tile(type)) {
      const int64_t count = std::min(n - i, elements_per_tile(type));
      load(from.data + (f + i * from_step) * from_bytes, from_step, tile, count);
      std::byte* out = to.data + (t + i * to_step) * to_bytes;
      if (to_step == 1) {
        store(tile, out, count);
        continue;
      }
      for (int64_t k = 0; k < count; ++k) {
        store(tile + k * tile_bytes, out + k * to_step * to_bytes, 1);
      }
    }
  });
}

void fill_elements(std::byte* to, const std::byte* value, int64_t element_bytes, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    std::memcpy(to + i * element_bytes, value, static_cast<size_t>(element_bytes));
  }
}

}  // namespace rlx::cpu
