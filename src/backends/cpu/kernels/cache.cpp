// Kernels that write key/value caches in place: cache_append, whose rows follow each other, and
// cache_write, which finds a row for each token. Values are converted on the way, to q8_0 block by
// block.
#include "ops/cache.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "backends/cpu/kernels/elementwise_tiles.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/matmul_operands.h"
#include "backends/cpu/kernels/move_copy.h"
#include "ops/attention.h"
#include "tensor/packed.h"

namespace rlx::cpu {
namespace {

constexpr int64_t kBlock = 32;  // elements of a block of q8_0
constexpr int64_t kBlockBytes = 34;

void encode_block(const float* values, std::byte* block) {
  constexpr float kLargest = 65504.0f * 127.0f;  // that an f16 scale stands for
  bool fits = true;
  for (int64_t i = 0; i < kBlock; ++i) fits = fits && std::fabs(values[i]) <= kLargest;
  if (fits) {
    encode_row(DType::kQ8_0, values, kBlock, block);
    return;
  }
  // A scale of NaN and codes of 1 decode to NaN.
  constexpr uint16_t kNaN = 0x7e00;
  std::memset(block, 1, kBlockBytes);
  std::memcpy(block, &kNaN, sizeof(kNaN));
}

// Writes this thread's share of `from` into the q8_0 view `to` of the same extents.
void encode_view(const TensorView& to, const TensorView& from, int thread, int num_threads) {
  const int inner = to.rank - 1;
  const int64_t columns = to.extents[inner];
  const int64_t total = to.num_elements();
  if (total == 0) return;
  if (total < kMinBytesToSplit / 4) num_threads = 1;
  if (thread >= num_threads) return;
  const Range lines = split_range(total / columns, thread, num_threads);
  float values[kBlock];
  for (int64_t line = lines.begin; line < lines.end; ++line) {
    int64_t rest = line, t = 0, f = 0;
    for (int axis = inner - 1; axis >= 0; --axis) {
      const int64_t place = rest % to.extents[axis];
      rest /= to.extents[axis];
      t += place * to.strides[axis];
      f += place * from.strides[axis];
    }
    for (int64_t i = 0; i < columns; i += kBlock) {
      convert_to_f32(from.data + (f + i * from.strides[inner]) * bytes_per_block(from.dtype),
                     from.dtype, from.strides[inner], kBlock, values);
      encode_block(values, to.data + (t + i) / kBlock * kBlockBytes);
    }
  }
}

// The same for a view of any dtype that a cache has.
void store_view(const TensorView& to, const TensorView& from, int thread, int num_threads) {
  if (to.dtype == DType::kQ8_0) {
    encode_view(to, from, thread, num_threads);
  } else if (to.dtype == from.dtype) {
    copy_view(to, from, thread, num_threads);
  } else {
    convert_view(to, from, thread, num_threads);
  }
}

int64_t bytes_at(DType dtype, int64_t elements) {
  return elements / elements_per_block(dtype) * bytes_per_block(dtype);
}

std::string reject(const KernelQuery& query) {
  const DType cache = query.inputs[0].dtype, update = query.inputs[1].dtype;
  if (cache != DType::kQ8_0 && !is_tile_dtype(cache)) {
    return fmt::format("the cache is {}", to_string(cache));
  }
  if (!is_tile_dtype(update)) return fmt::format("the update is {}", to_string(update));
  if (query.outputs[0].rank() > kMaxRank) {
    return fmt::format("the cache has rank {}, more than {}", query.outputs[0].rank(), kMaxRank);
  }
  return "";
}

void run_append(const KernelCall& call) {
  const TensorView& cache = call.input(0);
  const TensorView& update = call.input(1);
  int axis = static_cast<int>(call.op<CacheAppend>().axis);
  if (axis < 0) axis += cache.rank;
  const int64_t row = call.dims[0];
  if (row < 0 || row + update.extents[axis] > cache.extents[axis]) {
    call.error->store(KernelError::kCacheFull, std::memory_order_relaxed);
    return;
  }
  TensorView rows = cache;
  rows.extents[axis] = update.extents[axis];
  rows.data += bytes_at(cache.dtype, row * cache.strides[axis]);
  store_view(rows, update, call.thread, call.num_threads);
}

std::string reject_write(const KernelQuery& query) {
  for (size_t i = 2; i < query.inputs.size(); ++i) {
    if (!query.is_contiguous(static_cast<int>(i))) return "the places are not contiguous";
  }
  return reject(query);
}

// The view of row `index` of axis `axis` without it and the axes before.
TensorView take_row(const TensorView& view, int64_t outer, int64_t index) {
  TensorView row;
  row.dtype = view.dtype;
  row.rank = view.rank - 2;
  for (int axis = 0; axis < row.rank; ++axis) {
    row.extents[axis] = view.extents[axis + 2];
    row.strides[axis] = view.strides[axis + 2];
  }
  row.data = view.data + bytes_at(view.dtype, outer * view.strides[0] + index * view.strides[1]);
  return row;
}

void run_write(const KernelCall& call) {
  const TensorView& cache = call.input(0);
  const TensorView& update = call.input(1);
  const auto* positions = call.input(2).as<int64_t>();
  const int64_t* texts = call.inputs.size() > 3 ? call.input(3).as<int64_t>() : nullptr;
  const int64_t tokens = update.extents[1], rows = cache.extents[1];
  const int64_t window = call.op<CacheWrite>().window;
  const Range mine = split_range(tokens, call.thread, call.num_threads);
  for (int64_t token = mine.begin; token < mine.end; ++token) {
    const int64_t text = texts != nullptr ? texts[token] : 0;
    if (text < 0 || text >= cache.extents[0]) {
      call.error->store(KernelError::kIndexOutOfRange, std::memory_order_relaxed);
    } else if (!holds_position(rows, window, tokens, positions[token])) {
      call.error->store(KernelError::kCacheFull, std::memory_order_relaxed);
    } else {
      store_view(take_row(cache, text, positions[token] % rows), take_row(update, 0, token), 0, 1);
    }
  }
}

}  // namespace

std::span<const Kernel> cache_kernels() {
  static constexpr Kernel kKernels[] = {
      {.name = "cache.append", .op = CacheAppend::kName, .reject = reject, .run = run_append},
      {.name = "cache.write", .op = CacheWrite::kName, .reject = reject_write, .run = run_write},
  };
  return kKernels;
}

}  // namespace rlx::cpu
