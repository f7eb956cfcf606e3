#include "backends/cpu/kernels/matmul_float.h"

#include <algorithm>

#include "backends/cpu/kernels/matmul_dense.h"
#include "backends/cpu/kernels/matmul_operands.h"
#include "tensor/packed.h"

namespace rlx::cpu {
namespace {

// Columns that are read at once, each a row of the weight: four streams of memory.
constexpr int64_t kStrip = 4;
// Columns of a decoded tile: 32 x 1,024 f32 are 130 KiB, which leaves room in a second-level cache
// of 512 KiB for kRowStep rows of the left side (192 KiB) and the sums of kRowBlock rows (64 KiB).
constexpr int64_t kTileColumns = 32;
constexpr int64_t kRowStep = 48;
// Rows for which one decoded tile is used before it is decoded again.
constexpr int64_t kRowBlock = 512;
// A row of the tile is a little longer than a page, else the rows of a strip would compete for the
// same sets of the first-level cache (6 % slower).
constexpr int64_t kTileStride = kDepthPart + 16;
// Up to this many rows a weight is converted in registers each time that it is read.
constexpr int64_t kDirectRows = 6;

static_assert(kTileColumns <= kMaxTileColumns && kTileColumns % kStrip == 0);

int64_t align64(int64_t bytes) { return (bytes + 63) & ~int64_t{63}; }

// Where a call's scratch lies: the left side as f32 if it is not so already, then for each thread
// sums, tile, pointers to rows and the rows of experts.
struct Scratch {
  int64_t x_bytes, sums_bytes, tile_bytes, pointer_bytes, expert_bytes;

  Scratch(const MatmulBounds& bounds, bool converts_x)
      : x_bytes(converts_x ? align64(bounds.rows * bounds.depth * 4) : 0),
        sums_bytes(align64(std::min(bounds.rows, kRowBlock) * kTileColumns * 4)),
        tile_bytes(align64(kTileColumns * kTileStride * 4)),
        pointer_bytes(align64(std::min(bounds.rows, kRowBlock) * 8)),
        expert_bytes(bounds.experts > 0 ? align64(expert_rows_bytes(bounds.rows, bounds.experts))
                                        : 0) {}
  int64_t thread_bytes() const { return sums_bytes + tile_bytes + pointer_bytes + expert_bytes; }
};

// One thread's view of a call.
class FloatMatmul {
 public:
  FloatMatmul(const KernelCall& call, const MatmulCall& matmul, int64_t experts)
      : call_(call),
        matmul_(matmul),
        kernels_(dense_kernels()),
        converts_x_(matmul.x->dtype != DType::kF32 ||
                    (matmul.x_depth_stride != 1 && matmul.depth != 1)) {
    const Scratch scratch({.rows = matmul.batches * matmul.rows,
                           .columns = matmul.columns,
                           .depth = matmul.depth,
                           .experts = experts},
                          converts_x_);
    converted_x_ = reinterpret_cast<float*>(call.scratch);
    std::byte* mine = call.scratch + scratch.x_bytes + call.thread * scratch.thread_bytes();
    sums_ = reinterpret_cast<float*>(mine);
    tile_ = reinterpret_cast<float*>(mine + scratch.sums_bytes);
    x_rows_ = reinterpret_cast<const float**>(mine + scratch.sums_bytes + scratch.tile_bytes);
    expert_scratch_ = mine + scratch.sums_bytes + scratch.tile_bytes + scratch.pointer_bytes;
    const DType w = matmul.w->dtype;
    reads_w_directly_ = (w == DType::kF32 || w == DType::kF16 || w == DType::kBF16) &&
                        (matmul.w_depth_stride == 1 || matmul.depth == 1);
  }

  std::byte* expert_scratch() const { return expert_scratch_; }

  // All threads: makes the left side f32 where needed, then waits for each other.
  void convert_x() const {
    if (!converts_x_) return;
    const Range range =
        split_range(matmul_.batches * matmul_.rows, call_.thread, call_.num_threads);
    for (int64_t i = range.begin; i < range.end; ++i) {
      convert_to_f32(matmul_.x_at(i / matmul_.rows, i % matmul_.rows), matmul_.x->dtype,
                     matmul_.x_depth_stride, matmul_.depth, converted_x_ + i * matmul_.depth);
    }
    call_.barrier();
  }

  // This thread's part of all batches.
  void multiply_all() const {
    const int64_t strips = (matmul_.columns + kStrip - 1) / kStrip;
    // Columns are split first, because rows share the reading of a weight; rows only when there are
    // too few columns.
    int64_t groups = 1;
    if (matmul_.batches * strips < 2 * call_.num_threads) {
      groups =
          std::clamp<int64_t>((matmul_.rows + kRowStep - 1) / kRowStep, 1, 4 * call_.num_threads);
    }
    const Range range =
        split_range(matmul_.batches * groups * strips, call_.thread, call_.num_threads);
    for (int64_t unit = range.begin; unit < range.end;) {
      const int64_t batch = unit / (groups * strips), group = unit / strips % groups;
      const int64_t strip = unit % strips;
      const int64_t strip_end = std::min(strips, strip + range.end - unit);
      const Range rows =
          split_range(matmul_.rows, static_cast<int>(group), static_cast<int>(groups));
      multiply(batch, matmul_.w_at(batch), nullptr, rows.begin, rows.end - rows.begin,
               strip * kStrip, std::min(strip_end * kStrip, matmul_.columns));
      unit += strip_end - strip;
    }
  }

  // This thread's columns of the products of an expert with its rows.
  void multiply_expert(const std::byte* w, const int32_t* rows, int64_t num_rows) const {
    const Range columns = split_range(matmul_.columns, call_.thread, call_.num_threads, kStrip);
    multiply(0, w, rows, 0, num_rows, columns.begin, columns.end);
  }

 private:
  // Rows row_begin + [0, rows), or those listed in row_of, times columns [begin, end).
  void multiply(int64_t batch, const std::byte* w, const int32_t* row_of, int64_t row_begin,
                int64_t rows, int64_t begin, int64_t end) const {
    for (int64_t c = begin; c < end; c += kTileColumns) {
      const int64_t columns = std::min(kTileColumns, end - c);
      for (int64_t r = 0; r < rows; r += kRowBlock) {
        const int64_t block = std::min(kRowBlock, rows - r);
        const int32_t* block_rows = row_of != nullptr ? row_of + r : nullptr;
        for (int64_t i = 0; i < block; ++i) {
          const int64_t row = block_rows != nullptr ? block_rows[i] : row_begin + r + i;
          x_rows_[i] = converts_x_ ? converted_x_ + (batch * matmul_.rows + row) * matmul_.depth
                                   : reinterpret_cast<const float*>(matmul_.x_at(batch, row));
        }
        if (reads_w_directly_ && block <= kDirectRows) {
          multiply_directly(w, block, c, columns);
        } else {
          multiply_tiles(w, block, c, columns);
        }
        store_tile(matmul_, batch, block_rows, row_begin + r, block, c, columns, sums_,
                   kTileColumns);
      }
    }
  }

  void multiply_directly(const std::byte* w, int64_t rows, int64_t column_begin,
                         int64_t columns) const {
    const int64_t element = bytes_per_block(matmul_.w->dtype);
    for (int64_t c = 0; c < columns; c += kStrip) {
      const std::byte* strip = w + (column_begin + c) * matmul_.w_column_stride * element;
      const float* part_rows[kDirectRows];
      for (int64_t k = 0; k == 0 || k < matmul_.depth; k += kDepthPart) {
        for (int64_t r = 0; r < rows; ++r) part_rows[r] = x_rows_[r] + k;
        kernels_.multiply(part_rows, rows, strip + k * element, matmul_.w->dtype,
                          matmul_.w_column_stride, std::min(kStrip, columns - c),
                          std::min(kDepthPart, matmul_.depth - k), k > 0, sums_ + c, kTileColumns);
      }
    }
  }

  void multiply_tiles(const std::byte* w, int64_t rows, int64_t column_begin,
                      int64_t columns) const {
    for (int64_t k = 0; k == 0 || k < matmul_.depth; k += kDepthPart) {
      const int64_t depth = std::min(kDepthPart, matmul_.depth - k);
      decode_tile(w, column_begin, columns, k, depth);
      for (int64_t r = 0; r < rows; r += kRowStep) {
        kernels_.multiply(x_rows_ + r, std::min(kRowStep, rows - r), tile_, DType::kF32,
                          kTileStride, columns, depth, k > 0, sums_ + r * kTileColumns,
                          kTileColumns);
      }
      for (int64_t r = 0; r < rows; ++r) x_rows_[r] += depth;
    }
  }

  // Columns and depth of w as f32 rows of the tile.
  void decode_tile(const std::byte* w, int64_t column_begin, int64_t columns, int64_t depth_begin,
                   int64_t depth) const {
    const DType dtype = matmul_.w->dtype;
    const int64_t bytes = bytes_per_block(dtype);
    if (is_packed(dtype)) {
      const int64_t column_bytes = matmul_.packed_column_bytes();
      const std::byte* from =
          w + column_begin * column_bytes + depth_begin / elements_per_block(dtype) * bytes;
      for (int64_t c = 0; c < columns; ++c) {
        decode_row(dtype, from + c * column_bytes, depth, tile_ + c * kTileStride);
      }
      return;
    }
    const std::byte* from =
        w + (column_begin * matmul_.w_column_stride + depth_begin * matmul_.w_depth_stride) * bytes;
    if (!reads_w_directly_ && matmul_.w_column_stride == 1 && dtype != DType::kF64) {
      kernels_.widen_transposed(from, dtype, matmul_.w_depth_stride, depth, columns, tile_,
                                kTileStride);
      return;
    }
    const int64_t depth_stride = reads_w_directly_ ? 1 : matmul_.w_depth_stride;
    for (int64_t c = 0; c < columns; ++c) {
      convert_to_f32(from + c * matmul_.w_column_stride * bytes, dtype, depth_stride, depth,
                     tile_ + c * kTileStride);
    }
  }

  const KernelCall& call_;
  const MatmulCall& matmul_;
  const DenseKernels& kernels_;
  bool converts_x_ = false;
  bool reads_w_directly_ = false;
  float* converted_x_ = nullptr;
  float* sums_ = nullptr;
  float* tile_ = nullptr;
  const float** x_rows_ = nullptr;
  std::byte* expert_scratch_ = nullptr;
};

void run_matmul(const KernelCall& call) {
  const MatmulCall matmul = describe_matmul(call);
  const FloatMatmul product(call, matmul, 0);
  product.convert_x();
  product.multiply_all();
}

void run_linear(const KernelCall& call) {
  const MatmulCall matmul = describe_linear(call);
  const FloatMatmul product(call, matmul, 0);
  product.convert_x();
  product.multiply_all();
}

void run_grouped_matmul(const KernelCall& call) {
  const MatmulCall matmul = describe_grouped_matmul(call);
  const TensorView& w = *matmul.w;
  const int64_t experts = w.extents[0];
  const FloatMatmul product(call, matmul, experts);
  product.convert_x();
  const ExpertRows sorted = sort_by_expert(call, experts, product.expert_scratch());
  const int64_t expert_bytes =
      w.strides[0] / elements_per_block(w.dtype) * bytes_per_block(w.dtype);
  for (int64_t e = 0; e < experts; ++e) {
    const int32_t begin = sorted.starts[e], end = sorted.starts[e + 1];
    if (begin == end) continue;
    product.multiply_expert(w.data + e * expert_bytes, sorted.rows + begin, end - begin);
  }
}

std::string reject_float(const KernelQuery& query) {
  const DType x = query.inputs[0].dtype, w = query.inputs[1].dtype;
  if (x != DType::kF32 && x != DType::kF16 && x != DType::kBF16) {
    return "input 0 is not f32, f16 or bf16";
  }
  if (!is_float(w) && !is_packed(w)) return "input 1 is neither a float nor packed";
  return "";
}

bool converts_x(const KernelQuery& query) {
  if (query.inputs[0].dtype != DType::kF32) return true;
  const auto* matmul = query.op.as<Matmul>();
  if (matmul == nullptr || !matmul->transpose_a) return !query.has_unit_inner_stride(0);
  const Shape& shape = query.inputs[0].shape;
  const size_t depth = shape.size() - 2;
  return !shape[depth].is(1) && !query.layouts[0].strides[depth].is(1);
}

int64_t scratch_bytes(const KernelQuery& query, const MatmulBounds& bounds) {
  const Scratch scratch(bounds, converts_x(query));
  return scratch.x_bytes + query.max_threads * scratch.thread_bytes();
}

}  // namespace

std::span<const Kernel> float_matmul_kernels() {
  static const Kernel kKernels[] = {
      {.name = "matmul.float",
       .op = "matmul",
       .reject = reject_float,
       .scratch_bytes =
           [](const KernelQuery& query) { return scratch_bytes(query, bound_matmul(query)); },
       .run = run_matmul},
      // The bias has the output's size only with one row, and is then read where it is written.
      {.name = "linear.float",
       .op = "linear",
       .reject = reject_float,
       .scratch_bytes =
           [](const KernelQuery& query) { return scratch_bytes(query, bound_linear(query)); },
       .run = run_linear,
       .may_alias_inputs = 0b1100},
      {.name = "grouped_matmul.float",
       .op = "grouped_matmul",
       .reject = reject_float,
       .scratch_bytes =
           [](const KernelQuery& query) {
             return scratch_bytes(query, bound_grouped_matmul(query));
           },
       .run = run_grouped_matmul},
  };
  return kKernels;
}

}  // namespace rlx::cpu
