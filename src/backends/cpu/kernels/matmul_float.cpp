#include "backends/cpu/kernels/matmul_float.h"

#include <algorithm>

#include "backends/cpu/kernels/matmul_dense.h"
#include "backends/cpu/kernels/matmul_operands.h"
#include "backends/cpu/kernels/matmul_tiles.h"
#include "tensor/packed.h"

namespace rlx::cpu {
namespace {

// Up to this many rows a weight is converted in registers each time that it is read, as kStreams
// runs of columns that lie far apart, a column of each at a time. A run is read from its beginning
// to its end without a gap, which is what hardware prefetching follows: four runs read a third more
// bytes a second than four neighbouring columns.
constexpr int64_t kDirectRows = 6;
constexpr int64_t kStreams = 4;
constexpr int64_t kRunColumns = 64;
// Rows that are packed together and share an unpacked panel: by all threads when each has columns
// enough, else by each thread for itself.
constexpr int64_t kSharedRows = 512;
constexpr int64_t kOwnRows = 48;
// Columns that are unpacked at once from what cannot be read directly. A row of the tile is a
// little longer than a page, else columns would compete for the same sets of the cache.
constexpr int64_t kTileColumns = 16;
constexpr int64_t kTileStride = kDepthPart + 16;

static_assert(kTileColumns <= kMaxTileColumns && kRunColumns <= kMaxTileColumns);

int64_t align64(int64_t bytes) { return (bytes + 63) & ~int64_t{63}; }
int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Where a call's scratch lies: packed rows of the left side, then for each thread sums, what tiles
// need, and the rows of experts.
struct Scratch {
  int64_t packed_bytes, converted_bytes, sum_bytes, work_bytes, panel_bytes, tile_bytes,
      expert_bytes;

  Scratch(const MatmulBounds& bounds, int num_threads, bool converts_x, bool unpacks_w) {
    const TileKernels& tiles = tile_kernels();
    const bool packs = bounds.rows > kDirectRows;
    const int64_t row_bytes = packed_row_bytes(bounds.depth);
    const int64_t places = bounds.experts > 0
                               ? bounds.x_rows
                               : std::max(std::min(bounds.rows, kSharedRows),
                                          num_threads * std::min(bounds.rows, kOwnRows));
    const int64_t rows = std::min(bounds.rows, kSharedRows);
    packed_bytes = packs ? places * row_bytes : 0;
    converted_bytes =
        converts_x ? align64(std::min(bounds.rows, kDirectRows) * bounds.depth * 4) : 0;
    sum_bytes = align64(std::max(rows * std::max(tiles.columns, kTileColumns),
                                 std::min(rows, kDirectRows) * kStreams * kRunColumns) *
                        4);
    work_bytes = packs ? align64(kMaxLevels * rows * tiles.columns * 4) : 0;
    panel_bytes = packs ? align64(tiles.panel_floats * 4) : 0;
    tile_bytes = unpacks_w ? align64(kTileColumns * kTileStride * 4) : 0;
    expert_bytes = bounds.experts > 0 ? align64(expert_rows_bytes(bounds.rows, bounds.experts)) : 0;
  }
  static int64_t packed_row_bytes(int64_t depth) {
    // The rows of a tile must not lie in the same set of the cache.
    return divide_up(depth, kDepthPart) * tile_kernels().row_floats * 4 + 64;
  }
  int64_t thread_bytes() const {
    return converted_bytes + sum_bytes + work_bytes + panel_bytes + tile_bytes + expert_bytes;
  }
};

// One thread's view of a call.
class FloatMatmul {
 public:
  // `rows_for_place` neighbouring rows of the product are one row of the left side.
  FloatMatmul(const KernelCall& call, const MatmulCall& matmul, int64_t experts,
              int64_t rows_for_place)
      : call_(call),
        matmul_(matmul),
        kernels_(dense_kernels()),
        tiles_(tile_kernels()),
        row_bytes_(Scratch::packed_row_bytes(matmul.depth)),
        rows_for_place_(rows_for_place),
        converts_x_(matmul.x->dtype != DType::kF32 ||
                    (matmul.x_depth_stride != 1 && matmul.depth != 1)) {
    const DType w = matmul.w->dtype;
    reads_w_directly_ = (w == DType::kF32 || w == DType::kF16 || w == DType::kBF16) &&
                        (matmul.w_depth_stride == 1 || matmul.depth == 1);
    const int64_t rows = matmul.batches * matmul.rows;
    const Scratch scratch({.rows = rows,
                           .x_rows = rows / rows_for_place,
                           .columns = matmul.columns,
                           .depth = matmul.depth,
                           .experts = experts},
                          call.num_threads, converts_x_, !reads_w_directly_);
    packed_ = call.scratch;
    std::byte* next = call.scratch + scratch.packed_bytes + call.thread * scratch.thread_bytes();
    const auto take = [&](int64_t bytes) {
      std::byte* taken = next;
      next += bytes;
      return taken;
    };
    converted_ = reinterpret_cast<float*>(take(scratch.converted_bytes));
    sums_ = reinterpret_cast<float*>(take(scratch.sum_bytes));
    work_ = reinterpret_cast<float*>(take(scratch.work_bytes));
    panel_ = reinterpret_cast<float*>(take(scratch.panel_bytes));
    tile_ = reinterpret_cast<float*>(take(scratch.tile_bytes));
    expert_scratch_ = take(scratch.expert_bytes);
  }

  std::byte* expert_scratch() const { return expert_scratch_; }

  void multiply_all() const {
    if (matmul_.batches == 1 && matmul_.columns >= 2 * tiles_.columns * call_.num_threads) {
      share_columns();
    } else {
      share_blocks();
    }
  }

  // For a grouped product: packs all rows of the left side, each thread its part, unless each
  // expert will have few.
  void pack_for_experts() const {
    if (matmul_.rows <= kDirectRows) return;
    pack_rows(0, 0, matmul_.rows / rows_for_place_, packed_, call_.thread, call_.num_threads);
    call_.barrier();
  }

  // This thread's columns of the products of an expert with the listed rows. `places` has room for
  // as many.
  void multiply_expert(const std::byte* w, const int32_t* rows, int64_t num_rows) const {
    const Range columns =
        split_range(matmul_.columns, call_.thread, call_.num_threads, tiles_.columns);
    for (int64_t r = 0; r < num_rows; r += kSharedRows) {
      const int64_t count = std::min(kSharedRows, num_rows - r);
      if (num_rows <= kDirectRows) {
        multiply_few(0, w, rows, 0, count, columns);
      } else {
        int32_t places[kSharedRows];
        for (int64_t i = 0; i < count; ++i) {
          places[i] = static_cast<int32_t>(rows[r + i] / rows_for_place_);
        }
        multiply_many(0, w, rows + r, places, 0, count, packed_, columns);
      }
    }
  }

 private:
  // All threads work on the same rows, each on columns of its own.
  void share_columns() const {
    const Range columns =
        split_range(matmul_.columns, call_.thread, call_.num_threads, tiles_.columns);
    if (matmul_.rows <= kDirectRows) {
      multiply_few(0, matmul_.w_at(0), nullptr, 0, matmul_.rows, columns);
      return;
    }
    for (int64_t r = 0; r < matmul_.rows; r += kSharedRows) {
      const int64_t count = std::min(kSharedRows, matmul_.rows - r);
      // Nobody may still read the rows of the block before.
      if (r > 0) call_.barrier();
      pack_rows(0, r, count, packed_, call_.thread, call_.num_threads);
      call_.barrier();
      multiply_many(0, matmul_.w_at(0), nullptr, nullptr, r, count, packed_, columns);
    }
  }

  // Each thread takes blocks of rows and columns of batches, and packs the rows for itself.
  void share_blocks() const {
    const bool few = matmul_.rows <= kDirectRows;
    const int64_t row_blocks = divide_up(matmul_.rows, kOwnRows);
    const int64_t pieces = std::max<int64_t>(1, matmul_.batches * row_blocks);
    const int64_t parts = std::clamp<int64_t>(divide_up(2 * call_.num_threads, pieces), 1,
                                              divide_up(matmul_.columns, tiles_.columns));
    const Range units =
        split_range(matmul_.batches * row_blocks * parts, call_.thread, call_.num_threads);
    std::byte* mine =
        packed_ + call_.thread * std::min(matmul_.batches * matmul_.rows, kOwnRows) * row_bytes_;
    for (int64_t unit = units.begin; unit < units.end; ++unit) {
      const int64_t batch = unit / (row_blocks * parts), block = unit / parts % row_blocks;
      const Range columns = split_range(matmul_.columns, static_cast<int>(unit % parts),
                                        static_cast<int>(parts), tiles_.columns);
      const int64_t r = block * kOwnRows, count = std::min(kOwnRows, matmul_.rows - r);
      if (few) {
        multiply_few(batch, matmul_.w_at(batch), nullptr, r, count, columns);
        continue;
      }
      if (unit == units.begin || unit % parts == 0) pack_rows(batch, r, count, mine, 0, 1);
      multiply_many(batch, matmul_.w_at(batch), nullptr, nullptr, r, count, mine, columns);
    }
  }

  // Packs rows row_begin + [0, count) of the left side; this is part `part` of `parts`.
  void pack_rows(int64_t batch, int64_t row_begin, int64_t count, std::byte* to, int part,
                 int parts) const {
    const Range range = split_range(count, part, parts);
    const int64_t element = bytes_per_block(matmul_.x->dtype);
    float piece[kConvertPiece];
    for (int64_t i = range.begin; i < range.end; ++i) {
      const std::byte* from = matmul_.x_at(batch, (row_begin + i) * rows_for_place_);
      auto* row = reinterpret_cast<float*>(to + i * row_bytes_);
      for (int64_t k = 0; k < matmul_.depth; k += kDepthPart, row += tiles_.row_floats) {
        const int64_t depth = std::min(kDepthPart, matmul_.depth - k);
        if (!converts_x_) {
          tiles_.pack_row(from + k * element, DType::kF32, depth, row);
          continue;
        }
        convert_to_f32(from + k * matmul_.x_depth_stride * element, matmul_.x->dtype,
                       matmul_.x_depth_stride, depth, piece);
        tiles_.pack_row(piece, DType::kF32, depth, row);
      }
    }
  }

  // Few rows (row_begin + [0, rows), or those listed): w is read as it lies, or unpacked to a tile
  // that is read once.
  void multiply_few(int64_t batch, const std::byte* w, const int32_t* listed, int64_t row_begin,
                    int64_t rows, Range columns) const {
    const float* x[kDirectRows];
    for (int64_t r = 0; r < rows; ++r) {
      const std::byte* from = matmul_.x_at(batch, listed != nullptr ? listed[r] : row_begin + r);
      x[r] = reinterpret_cast<const float*>(from);
      if (converts_x_) {
        float* to = converted_ + r * matmul_.depth;
        convert_to_f32(from, matmul_.x->dtype, matmul_.x_depth_stride, matmul_.depth, to);
        x[r] = to;
      }
    }
    if (!reads_w_directly_) {
      for (int64_t c = columns.begin; c < columns.end; c += kTileColumns) {
        const int64_t count = std::min(kTileColumns, columns.end - c);
        for (int64_t k = 0; k == 0 || k < matmul_.depth; k += kDepthPart) {
          const int64_t depth = std::min(kDepthPart, matmul_.depth - k);
          decode_tile(w, c, count, k, depth);
          multiply_part(x, rows, k, depth, reinterpret_cast<const std::byte*>(tile_), DType::kF32,
                        kTileStride, count, sums_, kTileColumns);
        }
        store_tile(matmul_, batch, listed, row_begin, rows, c, count, sums_, kTileColumns);
      }
      return;
    }
    const int64_t run = (columns.end - columns.begin) / kStreams;
    constexpr int64_t kStride = kStreams * kRunColumns;
    for (int64_t i = 0; i < run; i += kRunColumns) {
      const int64_t count = std::min(kRunColumns, run - i);
      for (int64_t c = 0; c < count; ++c) {
        float four[kDirectRows * kStreams];
        multiply_columns(x, rows, w, columns.begin + i + c, run, kStreams, four, kStreams);
        for (int64_t r = 0; r < rows; ++r) {
          float* to = sums_ + r * kStride + c;
          for (int64_t s = 0; s < kStreams; ++s) to[s * kRunColumns] = four[r * kStreams + s];
        }
      }
      for (int64_t s = 0; s < kStreams; ++s) {
        store_tile(matmul_, batch, listed, row_begin, rows, columns.begin + s * run + i, count,
                   sums_ + s * kRunColumns, kStride);
      }
    }
    const int64_t done = columns.begin + kStreams * run;
    if (done == columns.end) return;
    multiply_columns(x, rows, w, done, 1, columns.end - done, sums_, kStride);
    store_tile(matmul_, batch, listed, row_begin, rows, done, columns.end - done, sums_, kStride);
  }

  // `count` columns of w from `column` on, `step` columns apart, over the whole depth.
  void multiply_columns(const float* const* x, int64_t rows, const std::byte* w, int64_t column,
                        int64_t step, int64_t count, float* out, int64_t out_stride) const {
    const int64_t element = bytes_per_block(matmul_.w->dtype);
    const std::byte* from = w + column * matmul_.w_column_stride * element;
    for (int64_t k = 0; k == 0 || k < matmul_.depth; k += kDepthPart) {
      multiply_part(x, rows, k, std::min(kDepthPart, matmul_.depth - k), from + k * element,
                    matmul_.w->dtype, step * matmul_.w_column_stride, count, out, out_stride);
    }
  }

  void multiply_part(const float* const* x, int64_t rows, int64_t k, int64_t depth,
                     const std::byte* w, DType dtype, int64_t w_stride, int64_t columns, float* out,
                     int64_t out_stride) const {
    const float* part_rows[kDirectRows];
    for (int64_t r = 0; r < rows; ++r) part_rows[r] = x[r] + k;
    kernels_.multiply(part_rows, rows, w, dtype, w_stride, columns, depth, k > 0, out, out_stride);
  }

  // Many rows, packed at `packed`: row_begin + [0, rows) in order, or those listed, which are at
  // `places`.
  void multiply_many(int64_t batch, const std::byte* w, const int32_t* listed,
                     const int32_t* places, int64_t row_begin, int64_t rows,
                     const std::byte* packed, Range columns) const {
    const DType dtype = matmul_.w->dtype;
    const int64_t element = bytes_per_block(dtype);
    for (int64_t c = columns.begin; c < columns.end; c += tiles_.columns) {
      const int64_t count = std::min(tiles_.columns, columns.end - c);
      const auto* x = reinterpret_cast<const float*>(packed);
      for (int64_t k = 0; k == 0 || k < matmul_.depth; k += kDepthPart, x += tiles_.row_floats) {
        const int64_t depth = std::min(kDepthPart, matmul_.depth - k);
        if (reads_w_directly_) {
          tiles_.pack_panel(w + (c * matmul_.w_column_stride + k) * element, dtype,
                            matmul_.w_column_stride, count, depth, panel_);
        } else {
          decode_tile(w, c, count, k, depth);
          tiles_.pack_panel(tile_, DType::kF32, kTileStride, count, depth, panel_);
        }
        tiles_.multiply(x, row_bytes_ / 4, places, rows, panel_, depth, k > 0, work_, sums_);
      }
      store_tile(matmul_, batch, listed, row_begin, rows, c, count, sums_, tiles_.columns);
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
    if (matmul_.w_column_stride == 1 && dtype != DType::kF64) {
      kernels_.widen_transposed(from, dtype, matmul_.w_depth_stride, depth, columns, tile_,
                                kTileStride);
      return;
    }
    for (int64_t c = 0; c < columns; ++c) {
      convert_to_f32(from + c * matmul_.w_column_stride * bytes, dtype, matmul_.w_depth_stride,
                     depth, tile_ + c * kTileStride);
    }
  }

  static constexpr int64_t kConvertPiece = kDepthPart;

  const KernelCall& call_;
  const MatmulCall& matmul_;
  const DenseKernels& kernels_;
  const TileKernels& tiles_;
  const int64_t row_bytes_;
  const int64_t rows_for_place_;
  bool converts_x_ = false;
  bool reads_w_directly_ = false;
  std::byte* packed_ = nullptr;
  float* converted_ = nullptr;
  float* sums_ = nullptr;
  float* work_ = nullptr;
  float* panel_ = nullptr;
  float* tile_ = nullptr;
  std::byte* expert_scratch_ = nullptr;
};

void run_matmul(const KernelCall& call) {
  const MatmulCall matmul = describe_matmul(call);
  FloatMatmul(call, matmul, 0, 1).multiply_all();
}

void run_linear(const KernelCall& call) {
  const MatmulCall matmul = describe_linear(call);
  FloatMatmul(call, matmul, 0, 1).multiply_all();
}

void run_grouped_matmul(const KernelCall& call) {
  const MatmulCall matmul = describe_grouped_matmul(call);
  const TensorView& w = *matmul.w;
  const int64_t experts = w.extents[0];
  if (matmul.rows == 0) return;
  // With x[tokens, k] the active experts of a token share its row.
  const int64_t rows_for_place = matmul.x->rank == 2 ? call.input(2).extents[1] : 1;
  const FloatMatmul product(call, matmul, experts, rows_for_place);
  product.pack_for_experts();
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

bool unpacks_w(const KernelQuery& query) {
  const DType dtype = query.inputs[1].dtype;
  if (dtype != DType::kF32 && dtype != DType::kF16 && dtype != DType::kBF16) return true;
  const auto* matmul = query.op.as<Matmul>();
  if (matmul == nullptr || matmul->transpose_b) return !query.has_unit_inner_stride(1);
  const Shape& shape = query.inputs[1].shape;
  const size_t depth = shape.size() - 2;
  return !shape[depth].is(1) && !query.layouts[1].strides[depth].is(1);
}

int64_t scratch_bytes(const KernelQuery& query, const MatmulBounds& bounds) {
  const Scratch scratch(bounds, query.max_threads, converts_x(query), unpacks_w(query));
  return scratch.packed_bytes + query.max_threads * scratch.thread_bytes();
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
