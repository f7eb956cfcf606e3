#include "backends/cpu/kernels/matmul_packed.h"

#include <algorithm>

#include "backends/cpu/kernels/matmul_operands.h"
#include "backends/cpu/kernels/packed_dot.h"

namespace rlx::cpu {
namespace {

// Up to this many rows the weight is read once a row (from the second on, from the cache).
constexpr int64_t kDirectRows = 3;
// Up to this many rows each thread quantises all of them for itself, which costs less than to wait
// for each other.
constexpr int64_t kOwnRows = 2;
// Rows that are quantised, and multiplied by a strip, at a time: bounds the scratch. Unpacking a
// strip costs as much as multiplying about 8 rows by it.
constexpr int64_t kRowBlock = 256;
// When the weight is read directly: runs of columns that are read at once, and the columns of each
// run whose sums are collected before they are stored.
constexpr int64_t kStreams = 4;
constexpr int64_t kRunColumns = 64;
constexpr int64_t kDirectColumns = kStreams * kRunColumns;
static_assert(kRunColumns <= kMaxTileColumns);

int64_t align64(int64_t bytes) { return (bytes + 63) & ~int64_t{63}; }

// Where scratch lies: quantised rows of all threads; then for each thread its own quantised rows,
// a row as f32 (when the left side is not), sums, rows, a strip and the rows of experts.
struct Scratch {
  int64_t shared_bytes, own_bytes, convert_bytes, sum_bytes, pointer_bytes, strip_bytes,
      expert_bytes;

  Scratch(const PackedKernels& kernels, const MatmulBounds& bounds, bool converts_x) {
    const QuantizedLayout layout(bounds.depth, kernels.wants_wide_codes);
    const int64_t rows = std::min(bounds.rows, kRowBlock);
    // All rows of a grouped product: experts come one after the other, and each needs its own.
    const int64_t places = bounds.experts > 0 ? bounds.x_rows : std::min(bounds.x_rows, kRowBlock);
    shared_bytes = places > kOwnRows ? places * layout.row_bytes() : 0;
    own_bytes = std::min(places, kOwnRows) * layout.row_bytes();
    convert_bytes = converts_x ? align64(bounds.depth * 4) : 0;
    sum_bytes =
        align64(std::max(rows * kStripColumns, std::min(rows, kDirectRows) * kDirectColumns) * 4);
    pointer_bytes = align64(rows * static_cast<int64_t>(sizeof(QuantizedRow)));
    strip_bytes = rows > kDirectRows
                      ? align64(layout.padded_blocks / kQuantGroup * kernels.strip_group_bytes)
                      : 0;
    expert_bytes = bounds.experts > 0 ? align64(expert_rows_bytes(bounds.rows, bounds.experts)) : 0;
  }
  int64_t thread_bytes() const {
    return own_bytes + convert_bytes + sum_bytes + pointer_bytes + strip_bytes + expert_bytes;
  }
};

bool needs_conversion(const MatmulCall& matmul) {
  return matmul.x->dtype != DType::kF32 || (matmul.x_depth_stride != 1 && matmul.depth != 1);
}

// One thread's view of a call.
class PackedMatmul {
 public:
  // `rows_for_place` neighbouring rows of the product are one row of the left side.
  PackedMatmul(const KernelCall& call, const MatmulCall& matmul, int64_t experts,
               int64_t rows_for_place)
      : call_(call),
        matmul_(matmul),
        kernels_(*find_packed_kernels(matmul.w->dtype)),
        layout_(matmul.depth, kernels_.wants_wide_codes),
        converts_x_(needs_conversion(matmul)),
        rows_for_place_(rows_for_place) {
    const int64_t rows = matmul.batches * matmul.rows;
    const MatmulBounds bounds{.rows = rows,
                              .x_rows = rows / rows_for_place,
                              .columns = matmul.columns,
                              .depth = matmul.depth,
                              .experts = experts};
    const Scratch scratch(kernels_, bounds, converts_x_);
    std::byte* next = call.scratch + scratch.shared_bytes + call.thread * scratch.thread_bytes();
    const auto take = [&](int64_t bytes) {
      std::byte* taken = next;
      next += bytes;
      return taken;
    };
    quantized_ = take(scratch.own_bytes);
    is_shared_ = bounds.x_rows > kOwnRows;
    if (is_shared_) quantized_ = call.scratch;
    converted_ = reinterpret_cast<float*>(take(scratch.convert_bytes));
    sums_ = reinterpret_cast<float*>(take(scratch.sum_bytes));
    rows_ = reinterpret_cast<QuantizedRow*>(take(scratch.pointer_bytes));
    strip_ = take(scratch.strip_bytes);
    expert_scratch_ = take(scratch.expert_bytes);
  }

  std::byte* expert_scratch() const { return expert_scratch_; }

  // Quantises rows of a batch from `begin` on into `places` places; when they are shared each
  // thread does its part and then waits.
  void quantize(int64_t batch, int64_t begin, int64_t places) const {
    const Range range =
        is_shared_ ? split_range(places, call_.thread, call_.num_threads) : Range{0, places};
    for (int64_t i = range.begin; i < range.end; ++i) {
      const std::byte* from = matmul_.x_at(batch, begin + i * rows_for_place_);
      const auto* x = reinterpret_cast<const float*>(from);
      if (converts_x_) {
        convert_to_f32(from, matmul_.x->dtype, matmul_.x_depth_stride, matmul_.depth, converted_);
        x = converted_;
      }
      kernels_.quantize(x, matmul_.depth, quantized_row(i));
    }
    if (is_shared_) call_.barrier();
  }

  // All batches: the columns of each are shared out.
  void multiply_all() const {
    const int64_t rows = matmul_.rows;
    for (int64_t batch = 0; batch < matmul_.batches; ++batch) {
      for (int64_t r = 0; r < rows; r += kRowBlock) {
        const int64_t block = std::min(kRowBlock, rows - r);
        // Nobody may still read the rows of the block before.
        if (is_shared_ && (batch > 0 || r > 0)) call_.barrier();
        quantize(batch, r, block);
        for (int64_t i = 0; i < block; ++i) rows_[i] = quantized_row(i);
        const Range columns = split_columns(block);
        multiply(batch, matmul_.w_at(batch), nullptr, r, block, columns.begin, columns.end);
      }
    }
  }

  // This thread's columns of the products of an expert with its rows.
  void multiply_expert(const std::byte* w, const int32_t* listed, int64_t num_rows) const {
    for (int64_t r = 0; r < num_rows; r += kRowBlock) {
      const int64_t block = std::min(kRowBlock, num_rows - r);
      for (int64_t i = 0; i < block; ++i) {
        rows_[i] = quantized_row(listed[r + i] / rows_for_place_);
      }
      const Range columns = split_columns(block);
      multiply(0, w, listed + r, 0, block, columns.begin, columns.end);
    }
  }

 private:
  QuantizedRow quantized_row(int64_t place) const {
    return layout_.row(quantized_ + place * layout_.row_bytes());
  }

  Range split_columns(int64_t rows) const {
    return split_range(matmul_.columns, call_.thread, call_.num_threads,
                       rows > kDirectRows ? kStripColumns : 4);
  }

  // The rows in rows_, which are row_begin + [0, rows) or those listed, times columns [begin, end).
  void multiply(int64_t batch, const std::byte* w, const int32_t* listed, int64_t row_begin,
                int64_t rows, int64_t begin, int64_t end) const {
    const int64_t column_bytes = matmul_.packed_column_bytes();
    const int64_t depth = matmul_.depth;
    if (rows > kDirectRows) {
      for (int64_t c = begin; c < end; c += kStripColumns) {
        const int64_t columns = std::min(kStripColumns, end - c);
        kernels_.decode_strip(w + c * column_bytes, column_bytes, columns, depth, strip_);
        kernels_.multiply_strip(strip_, depth, rows_, rows, sums_, kStripColumns);
        store_tile(matmul_, batch, listed, row_begin, rows, c, columns, sums_, kStripColumns);
      }
      return;
    }
    multiply_directly(batch, w, listed, row_begin, rows, begin, end);
  }

  // Reads the columns as kStreams runs that lie far apart, a column of each at a time: a stream is
  // read from its beginning to its end without a gap, which is what hardware prefetching follows.
  // Four runs read 30 % more bytes a second than one, or than four neighbouring columns.
  void multiply_directly(int64_t batch, const std::byte* w, const int32_t* listed,
                         int64_t row_begin, int64_t rows, int64_t begin, int64_t end) const {
    const int64_t column_bytes = matmul_.packed_column_bytes();
    const int64_t run = (end - begin) / kStreams;
    for (int64_t i = 0; i < run; i += kRunColumns) {
      const int64_t columns = std::min(kRunColumns, run - i);
      for (int64_t c = 0; c < columns; ++c) {
        // All rows before the next columns, so that only the first row reads memory.
        for (int64_t r = 0; r < rows; ++r) {
          float four[kStreams];
          kernels_.dot(w + (begin + i + c) * column_bytes, run * column_bytes, kStreams,
                       matmul_.depth, rows_[r], four);
          float* to = sums_ + r * kDirectColumns + c;
          for (int64_t s = 0; s < kStreams; ++s) to[s * kRunColumns] = four[s];
        }
      }
      for (int64_t s = 0; s < kStreams; ++s) {
        store_tile(matmul_, batch, listed, row_begin, rows, begin + s * run + i, columns,
                   sums_ + s * kRunColumns, kDirectColumns);
      }
    }
    const int64_t done = begin + kStreams * run;
    if (done == end) return;
    for (int64_t r = 0; r < rows; ++r) {
      kernels_.dot(w + done * column_bytes, column_bytes, end - done, matmul_.depth, rows_[r],
                   sums_ + r * kDirectColumns);
    }
    store_tile(matmul_, batch, listed, row_begin, rows, done, end - done, sums_, kDirectColumns);
  }

  const KernelCall& call_;
  const MatmulCall& matmul_;
  const PackedKernels& kernels_;
  const QuantizedLayout layout_;
  const bool converts_x_;
  const int64_t rows_for_place_;
  bool is_shared_ = false;
  std::byte* quantized_ = nullptr;
  float* converted_ = nullptr;
  float* sums_ = nullptr;
  QuantizedRow* rows_ = nullptr;
  std::byte* strip_ = nullptr;
  std::byte* expert_scratch_ = nullptr;
};

void run_matmul(const KernelCall& call) {
  const MatmulCall matmul = describe_matmul(call);
  PackedMatmul(call, matmul, 0, 1).multiply_all();
}

void run_linear(const KernelCall& call) {
  const MatmulCall matmul = describe_linear(call);
  PackedMatmul(call, matmul, 0, 1).multiply_all();
}

void run_grouped_matmul(const KernelCall& call) {
  const MatmulCall matmul = describe_grouped_matmul(call);
  const TensorView& w = *matmul.w;
  const int64_t experts = w.extents[0];
  if (matmul.rows == 0) return;
  // With x[tokens, k] the active experts of a token share its row.
  const int64_t rows_for_place = matmul.x->rank == 2 ? call.input(2).extents[1] : 1;
  const PackedMatmul product(call, matmul, experts, rows_for_place);
  product.quantize(0, 0, matmul.rows / rows_for_place);
  const ExpertRows sorted = sort_by_expert(call, experts, product.expert_scratch());
  const int64_t expert_bytes =
      w.strides[0] / elements_per_block(w.dtype) * bytes_per_block(w.dtype);
  for (int64_t e = 0; e < experts; ++e) {
    const int32_t begin = sorted.starts[e], end = sorted.starts[e + 1];
    if (begin == end) continue;
    product.multiply_expert(w.data + e * expert_bytes, sorted.rows + begin, end - begin);
  }
}

std::string reject(const KernelQuery& query) {
  if (!query.quantize_activations) return "activations are not to be quantised";
  const DType x = query.inputs[0].dtype, w = query.inputs[1].dtype;
  if (x != DType::kF32 && x != DType::kF16 && x != DType::kBF16) {
    return "input 0 is not f32, f16 or bf16";
  }
  if (!is_packed(w)) return "input 1 is not packed";
  if (find_packed_kernels(w) == nullptr) {
    return "there is no integer product for " + std::string(to_string(w));
  }
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
  const Scratch scratch(*find_packed_kernels(query.inputs[1].dtype), bounds, converts_x(query));
  return scratch.shared_bytes + query.max_threads * scratch.thread_bytes();
}

}  // namespace

std::span<const Kernel> packed_matmul_kernels() {
  static const Kernel kKernels[] = {
      {.name = "matmul.packed",
       .op = "matmul",
       .reject = reject,
       .scratch_bytes =
           [](const KernelQuery& query) { return scratch_bytes(query, bound_matmul(query)); },
       .run = run_matmul},
      // The bias has the output's size only with one row, and is then read where it is written.
      {.name = "linear.packed",
       .op = "linear",
       .reject = reject,
       .scratch_bytes =
           [](const KernelQuery& query) { return scratch_bytes(query, bound_linear(query)); },
       .run = run_linear,
       .may_alias_inputs = 0b1100},
      {.name = "grouped_matmul.packed",
       .op = "grouped_matmul",
       .reject = reject,
       .scratch_bytes =
           [](const KernelQuery& query) {
             return scratch_bytes(query, bound_grouped_matmul(query));
           },
       .run = run_grouped_matmul},
  };
  return kKernels;
}

}  // namespace rlx::cpu
