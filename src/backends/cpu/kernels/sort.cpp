// Sorting along an axis: top_k by a heap of k, sort by merging. Both order (value, position) pairs,
// so that equals keep their order and the result is one, whatever the method. NaN is the largest.
#include <algorithm>
#include <cstring>

#include "backends/cpu/kernels/elementwise_tiles.h"
#include "backends/cpu/kernels/kernels.h"
#include "ops/move.h"

namespace rlx::cpu {
namespace {

template <typename T>
struct Entry {
  T value;
  int64_t position;
};
constexpr int64_t kEntryBytes = 16;

template <typename T>
bool is_less(T a, T b) {
  if (a != a) return false;
  if (b != b) return true;
  return a < b;
}

// The order of the result; total, since positions differ.
struct Order {
  bool descending;

  template <typename T>
  bool operator()(const Entry<T>& a, const Entry<T>& b) const {
    const T& low = descending ? b.value : a.value;
    const T& high = descending ? a.value : b.value;
    if (is_less(low, high)) return true;
    if (is_less(high, low)) return false;
    return a.position < b.position;
  }
};

// Sorts n entries; `buffer` has room for n more.
template <typename T>
void merge_sort(Entry<T>* entries, Entry<T>* buffer, int64_t n, const Order& before) {
  constexpr int64_t kRun = 16;
  for (int64_t begin = 0; begin < n; begin += kRun) {
    const int64_t end = std::min(n, begin + kRun);
    for (int64_t i = begin + 1; i < end; ++i) {
      const Entry<T> entry = entries[i];
      int64_t k = i;
      for (; k > begin && before(entry, entries[k - 1]); --k) entries[k] = entries[k - 1];
      entries[k] = entry;
    }
  }
  Entry<T>* from = entries;
  Entry<T>* to = buffer;
  for (int64_t width = kRun; width < n; width *= 2) {
    for (int64_t begin = 0; begin < n; begin += 2 * width) {
      const int64_t middle = std::min(n, begin + width), end = std::min(n, begin + 2 * width);
      int64_t a = begin, b = middle;
      for (int64_t i = begin; i < end; ++i) {
        const bool takes_b = a == middle || (b < end && before(from[b], from[a]));
        to[i] = takes_b ? from[b++] : from[a++];
      }
    }
    std::swap(from, to);
  }
  if (from != entries) std::copy(from, from + n, entries);
}

// Keeps the first `size` entries in the order as a heap whose root is the last of them.
template <typename T>
void sift_down(Entry<T>* heap, int64_t size, int64_t at, const Order& before) {
  const Entry<T> entry = heap[at];
  while (true) {
    int64_t child = 2 * at + 1;
    if (child >= size) break;
    if (child + 1 < size && before(heap[child], heap[child + 1])) ++child;
    if (!before(entry, heap[child])) break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = entry;
}

// Leaves the first k of the lane, in order, in `entries`; fetch(i) gives entry i of the lane.
template <typename T, typename Fetch>
void select_first(Entry<T>* entries, Entry<T>* buffer, int64_t k, int64_t n, const Order& before,
                  Fetch&& fetch) {
  for (int64_t i = 0; i < k; ++i) entries[i] = fetch(i);
  if (k < n) {
    for (int64_t i = k / 2 - 1; i >= 0; --i) sift_down(entries, k, i, before);
    for (int64_t i = k; i < n; ++i) {
      const Entry<T> entry = fetch(i);
      if (!before(entry, entries[0])) continue;
      entries[0] = entry;
      sift_down(entries, k, 0, before);
    }
  }
  merge_sort(entries, buffer, k, before);
}

int normalize_axis(int64_t axis, int rank) {
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

// Threads that have a lane of their own.
int64_t count_useful_threads(int64_t lanes, int64_t num_threads) {
  return std::min(lanes, num_threads);
}

// The first k of every lane along the axis.
template <typename T>
void run_lanes(const KernelCall& call, int axis, int64_t k, bool descending) {
  constexpr int64_t kTile = 256;
  const TensorView& x = call.input(0);
  const TensorView& values = call.output(0);
  const TensorView& indices = call.output(1);
  const int64_t n = x.extents[axis];
  if (values.num_elements() == 0) return;
  const int64_t lanes = values.num_elements() / k;
  const int num_threads = static_cast<int>(count_useful_threads(lanes, call.num_threads));
  if (call.thread >= num_threads) return;
  const ComputeType type = exact_compute_type(x.dtype);
  const TileLoad load = find_tile_load(x.dtype, type);
  const int64_t size = bytes_per_block(x.dtype);
  auto* entries = reinterpret_cast<Entry<T>*>(call.scratch + call.thread * 2 * k * kEntryBytes);
  auto* buffer = entries + k;
  const Order before{descending};

  const Range range = split_range(lanes, call.thread, num_threads);
  for (int64_t lane = range.begin; lane < range.end; ++lane) {
    int64_t rest = lane, from = 0, to = 0;
    for (int i = x.rank - 1; i >= 0; --i) {
      if (i == axis) continue;
      from += rest % x.extents[i] * x.strides[i];
      to += rest % x.extents[i] * values.strides[i];
      rest /= x.extents[i];
    }
    alignas(64) T tile[kTile];
    select_first<T>(entries, buffer, k, n, before, [&](int64_t i) {
      if (i % kTile == 0) {
        load(x.data + (from + i * x.strides[axis]) * size, x.strides[axis], tile,
             std::min(kTile, n - i));
      }
      return Entry<T>{tile[i % kTile], i};
    });
    for (int64_t i = 0; i < k; ++i) {
      const int64_t position = entries[i].position;
      const int64_t place = to + i * values.strides[axis];
      std::memcpy(values.data + place * size, x.data + (from + position * x.strides[axis]) * size,
                  static_cast<size_t>(size));
      indices.as<int64_t>()[place] = position;
    }
  }
}

void run_first(const KernelCall& call, int axis, int64_t k, bool descending) {
  switch (exact_compute_type(call.input(0).dtype)) {
    case ComputeType::kF32:
      return run_lanes<float>(call, axis, k, descending);
    case ComputeType::kF64:
      return run_lanes<double>(call, axis, k, descending);
    case ComputeType::kI64:
      return run_lanes<int64_t>(call, axis, k, descending);
    case ComputeType::kU64:
      return run_lanes<uint64_t>(call, axis, k, descending);
  }
}

void run_top_k(const KernelCall& call) {
  const TopK& op = call.op<TopK>();
  run_first(call, normalize_axis(op.axis, call.input(0).rank), op.k, op.largest);
}

void run_sort(const KernelCall& call) {
  const Sort& op = call.op<Sort>();
  const int axis = normalize_axis(op.axis, call.input(0).rank);
  run_first(call, axis, call.input(0).extents[axis], op.descending);
}

std::string reject_sort(const KernelQuery& query) {
  const TensorType& x = query.inputs[0];
  if (!is_tile_dtype(x.dtype)) return fmt::format("the input is {}", to_string(x.dtype));
  if (x.rank() == 0) return "the input is a scalar";
  if (x.rank() > kMaxRank) return fmt::format("the input has rank {}, more than 8", x.rank());
  return "";
}

// Two lists of k entries for each thread that can have a lane.
int64_t entries_bytes(const KernelQuery& query, int axis, int64_t k) {
  int64_t lanes = 1;
  for (int i = 0; i < query.inputs[0].rank(); ++i) {
    if (i != axis) lanes *= query.inputs[0].shape[i].upper_bound(query.symbols);
  }
  return count_useful_threads(lanes, query.max_threads) * 2 * k * kEntryBytes;
}

int64_t top_k_scratch_bytes(const KernelQuery& query) {
  const TopK& op = *query.op.as<TopK>();
  return entries_bytes(query, normalize_axis(op.axis, query.inputs[0].rank()), op.k);
}

int64_t sort_scratch_bytes(const KernelQuery& query) {
  const int axis = normalize_axis(query.op.as<Sort>()->axis, query.inputs[0].rank());
  return entries_bytes(query, axis, query.inputs[0].shape[axis].upper_bound(query.symbols));
}

}  // namespace

std::span<const Kernel> sort_kernels() {
  static constexpr Kernel kKernels[] = {
      {.name = "sort.top_k",
       .op = TopK::kName,
       .reject = reject_sort,
       .scratch_bytes = top_k_scratch_bytes,
       .run = run_top_k},
      {.name = "sort.sort",
       .op = Sort::kName,
       .reject = reject_sort,
       .scratch_bytes = sort_scratch_bytes,
       .run = run_sort},
  };
  return kKernels;
}

}  // namespace rlx::cpu
