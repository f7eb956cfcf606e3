// "attention.blocked": softmax over keys taken block by block, so that no row of scores longer than
// a block exists. The query heads that share a key head are rows of one product with it. Keys are
// summed in chunks of a fixed size, which several threads may take when there are few rows; chunks
// are combined in order, so neither the threads nor the rows beside a row change its bits.
#include "ops/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/kernels/attention_inner.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/matmul_dense.h"
#include "backends/cpu/kernels/matmul_operands.h"

namespace rlx::cpu {
namespace {

// Rows (tokens times heads of a group) that share a decoded block of keys and values.
constexpr int64_t kRowBlock = 32;
// Keys of a chunk. With up to kSplitRows rows to a key head, chunks are shared out over threads.
constexpr int64_t kChunk = 512;
constexpr int64_t kSplitRows = 16;
// From this many rows on, a block of keys or values is converted to f32 once for all of them.
constexpr int64_t kConvertRows = 7;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

static_assert(kChunk % kKeyBlock == 0);

int64_t align64(int64_t bytes) { return (bytes + 63) & ~int64_t{63}; }
int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

struct Extents {
  int64_t batch, tokens, keys, heads, key_heads, dim, value_dim;
};

// Where scratch lies: states of split chunks (all threads), then for each thread the parts below.
struct Scratch {
  int64_t partial_bytes;
  int64_t query_bytes, score_bytes, key_bytes, value_bytes, sum_bytes, state_bytes;

  explicit Scratch(const Extents& e, int num_threads)
      : partial_bytes(0),
        query_bytes(align64(kRowBlock * e.dim * 4)),
        score_bytes(kRowBlock * kKeyBlock * 4),
        key_bytes(align64(kKeyBlock * (e.dim + 16) * 4)),
        value_bytes(align64(kKeyBlock * (e.value_dim + 16) * 4)),
        sum_bytes(align64(kRowBlock * e.value_dim * 4)),
        state_bytes(align64(kRowBlock * static_cast<int64_t>(sizeof(SoftmaxState)))) {
    if (num_threads > 1 && e.keys > kChunk) {
      const int64_t rows = std::min(e.tokens * divide_up(e.heads, e.key_heads), kSplitRows);
      partial_bytes =
          align64(e.batch * e.key_heads * rows * divide_up(e.keys, kChunk) * row_bytes(e));
    }
  }
  // A row of partial sums and its state.
  static int64_t row_bytes(const Extents& e) {
    return e.value_dim * 4 + static_cast<int64_t>(sizeof(SoftmaxState));
  }
  int64_t thread_bytes() const {
    return query_bytes + score_bytes + key_bytes + value_bytes + 2 * sum_bytes + 2 * state_bytes;
  }
};

class BlockedAttention {
 public:
  explicit BlockedAttention(const KernelCall& call)
      : call_(call),
        op_(call.op<Attention>()),
        q_(call.input(0)),
        k_(call.input(1)),
        v_(call.input(2)),
        mask_(op_.mask ? &call.input(3) : nullptr),
        sinks_(op_.sinks ? &call.input(op_.mask ? 4 : 3) : nullptr),
        out_(call.output(0)),
        e_{q_.extents[0], q_.extents[1], k_.extents[1], q_.extents[2],
           k_.extents[2], q_.extents[3], v_.extents[3]},
        group_(e_.key_heads > 0 ? e_.heads / e_.key_heads : 1),
        rows_(e_.tokens * group_),
        scale_(static_cast<float>(op_.scale != 0 ? op_.scale
                                                 : 1.0 / std::sqrt(static_cast<double>(e_.dim)))),
        dense_(dense_kernels()),
        inner_(attention_inner_kernels()) {
    const Scratch scratch(e_, call.num_threads);
    partials_ = call.scratch;
    std::byte* next = call.scratch + scratch.partial_bytes + call.thread * scratch.thread_bytes();
    const auto take = [&](int64_t bytes) {
      std::byte* taken = next;
      next += bytes;
      return taken;
    };
    queries_ = reinterpret_cast<float*>(take(scratch.query_bytes));
    scores_ = reinterpret_cast<float*>(take(scratch.score_bytes));
    keys_ = reinterpret_cast<float*>(take(scratch.key_bytes));
    values_ = reinterpret_cast<float*>(take(scratch.value_bytes));
    chunk_sums_ = reinterpret_cast<float*>(take(scratch.sum_bytes));
    total_sums_ = reinterpret_cast<float*>(take(scratch.sum_bytes));
    chunk_states_ = reinterpret_cast<SoftmaxState*>(take(scratch.state_bytes));
    total_states_ = reinterpret_cast<SoftmaxState*>(take(scratch.state_bytes));
  }

  void run() {
    const int64_t row_blocks = divide_up(rows_, kRowBlock);
    const int64_t chunks = divide_up(e_.keys, kChunk);
    if (call_.num_threads > 1 && rows_ <= kSplitRows && chunks > 1) {
      run_split(chunks);
      return;
    }
    // Later rows see more keys, so threads take blocks in a zigzag: 0 1 1 0 0 1 ...
    const int64_t items = e_.batch * e_.key_heads * row_blocks;
    for (int64_t item = 0; item < items; ++item) {
      const int64_t lap = item / call_.num_threads, place = item % call_.num_threads;
      if ((lap % 2 == 0 ? place : call_.num_threads - 1 - place) != call_.thread) continue;
      take_rows(item / row_blocks, item % row_blocks * kRowBlock);
      start(total_states_, total_sums_);
      for (int64_t chunk = 0; chunk < chunks; ++chunk) {
        if (!sum_chunk(chunk)) continue;
        for (int64_t r = 0; r < block_rows_; ++r) add_chunk(r, chunk_states_[r], chunk_sum(r));
      }
      for (int64_t r = 0; r < block_rows_; ++r) {
        store_row(row_begin_ + r, total_states_[r], total_sums_ + r * e_.value_dim);
      }
    }
  }

 private:
  // Threads take chunks of one head, then rows to combine.
  void run_split(int64_t chunks) {
    const int64_t heads = e_.batch * e_.key_heads;
    const Range mine = split_range(heads * chunks, call_.thread, call_.num_threads);
    for (int64_t item = mine.begin; item < mine.end; ++item) {
      take_rows(item / chunks, 0);
      const bool any = sum_chunk(item % chunks);
      if (!any) start(chunk_states_, chunk_sums_);
      for (int64_t r = 0; r < rows_; ++r) {
        std::byte* partial = partial_row(item * rows_ + r);
        *reinterpret_cast<SoftmaxState*>(partial) = chunk_states_[r];
        std::copy_n(chunk_sum(r), e_.value_dim, partial_sums(partial));
      }
    }
    call_.barrier();
    const Range rows = split_range(heads * rows_, call_.thread, call_.num_threads);
    for (int64_t i = rows.begin; i < rows.end; ++i) {
      const int64_t head = i / rows_, row = i % rows_;
      batch_ = head / e_.key_heads;
      key_head_ = head % e_.key_heads;
      block_rows_ = 1;
      start(total_states_, total_sums_);
      for (int64_t chunk = 0; chunk < chunks; ++chunk) {
        std::byte* partial = partial_row((head * chunks + chunk) * rows_ + row);
        add_chunk(0, *reinterpret_cast<SoftmaxState*>(partial), partial_sums(partial));
      }
      store_row(row, total_states_[0], total_sums_);
    }
  }

  std::byte* partial_row(int64_t index) const { return partials_ + index * Scratch::row_bytes(e_); }
  static float* partial_sums(std::byte* row) {
    return reinterpret_cast<float*>(row + sizeof(SoftmaxState));
  }
  float* chunk_sum(int64_t r) const { return chunk_sums_ + r * e_.value_dim; }

  // Makes rows [row_begin, ...) of a key head the block at hand. Row r is token r / group, head
  // key_head * group + r % group.
  void take_rows(int64_t head, int64_t row_begin) {
    batch_ = head / e_.key_heads;
    key_head_ = head % e_.key_heads;
    row_begin_ = row_begin;
    block_rows_ = std::min(kRowBlock, rows_ - row_begin);
    first_key_ = e_.keys;
    last_key_ = 0;
    const bool reads_directly = q_.dtype == DType::kF32 && (q_.strides[3] == 1 || e_.dim == 1);
    for (int64_t r = 0; r < block_rows_; ++r) {
      const int64_t token = (row_begin + r) / group_;
      const std::byte* q =
          q_.data + (batch_ * q_.strides[0] + token * q_.strides[1] +
                     (key_head_ * group_ + (row_begin + r) % group_) * q_.strides[2]) *
                        bytes_per_block(q_.dtype);
      if (reads_directly) {
        query_rows_[r] = reinterpret_cast<const float*>(q);
      } else {
        convert_to_f32(q, q_.dtype, q_.strides[3], e_.dim, queries_ + r * e_.dim);
        query_rows_[r] = queries_ + r * e_.dim;
      }
      const int64_t position = e_.keys - e_.tokens + token;
      key_end_[r] = op_.causal ? std::clamp<int64_t>(position + 1, 0, e_.keys) : e_.keys;
      key_begin_[r] =
          op_.window > 0 ? std::clamp<int64_t>(position - op_.window + 1, 0, e_.keys) : 0;
      first_key_ = std::min(first_key_, key_begin_[r]);
      last_key_ = std::max(last_key_, key_end_[r]);
    }
  }

  void start(SoftmaxState* states, float* sums) const {
    std::fill_n(states, block_rows_, SoftmaxState{-kInfinity, 0.0f});
    std::fill_n(sums, block_rows_ * e_.value_dim, 0.0f);
  }

  // The weighted sum of a chunk's values for every row at hand; false when none of its keys counts.
  bool sum_chunk(int64_t chunk) {
    const int64_t begin = std::max(chunk * kChunk, first_key_ / kKeyBlock * kKeyBlock);
    const int64_t end = std::min((chunk + 1) * kChunk, last_key_);
    if (begin >= end) return false;
    start(chunk_states_, chunk_sums_);
    for (int64_t key = begin; key < end; key += kKeyBlock) {
      sum_block(key, std::min(kKeyBlock, e_.keys - key));
    }
    return true;
  }

  void sum_block(int64_t key, int64_t keys) {
    const bool converts = block_rows_ >= kConvertRows;
    score_block(key, keys, converts && k_.dtype != DType::kF32);
    for (int64_t r = 0; r < block_rows_; ++r) {
      float* scores = scores_ + r * kKeyBlock;
      const int64_t begin = std::clamp<int64_t>(key_begin_[r] - key, 0, keys);
      const int64_t end = std::clamp<int64_t>(key_end_[r] - key, 0, keys);
      const float factor =
          inner_.weigh(scores, mask_ != nullptr ? load_mask(r, key, keys) : nullptr, begin, end,
                       scale_, static_cast<float>(op_.soft_cap), &chunk_states_[r]);
      if (factor != 1.0f) inner_.combine(chunk_sum(r), factor, nullptr, 0.0f, e_.value_dim);
    }
    const int64_t element = bytes_per_block(v_.dtype);
    const std::byte* v =
        v_.data +
        (batch_ * v_.strides[0] + key * v_.strides[1] + key_head_ * v_.strides[2]) * element;
    DType dtype = v_.dtype;
    int64_t stride = v_.strides[1];
    if (converts && dtype != DType::kF32) {
      for (int64_t i = 0; i < keys; ++i) {
        dense_.widen(v + i * stride * element, dtype, e_.value_dim,
                     values_ + i * (e_.value_dim + 16));
      }
      v = reinterpret_cast<const std::byte*>(values_);
      dtype = DType::kF32;
      stride = e_.value_dim + 16;
    }
    inner_.accumulate(scores_, block_rows_, v, dtype, stride, keys, e_.value_dim, chunk_sums_,
                      e_.value_dim);
  }

  void score_block(int64_t key, int64_t keys, bool converts) {
    const int64_t element = bytes_per_block(k_.dtype);
    const std::byte* k =
        k_.data +
        (batch_ * k_.strides[0] + key * k_.strides[1] + key_head_ * k_.strides[2]) * element;
    DType dtype = k_.dtype;
    int64_t stride = k_.strides[1];
    if (converts) {
      for (int64_t i = 0; i < keys; ++i) {
        dense_.widen(k + i * stride * element, dtype, e_.dim, keys_ + i * (e_.dim + 16));
      }
      k = reinterpret_cast<const std::byte*>(keys_);
      dtype = DType::kF32;
      stride = e_.dim + 16;
    }
    dense_.multiply(query_rows_, block_rows_, k, dtype, stride, keys, e_.dim, false, scores_,
                    kKeyBlock);
  }

  // What is added to the scores of a row: a bool mask gives 0 or -infinity.
  const float* load_mask(int64_t r, int64_t key, int64_t keys) {
    const int64_t token = (row_begin_ + r) / group_;
    const int64_t head = key_head_ * group_ + (row_begin_ + r) % group_;
    const int64_t index[4] = {batch_, head, token, key};
    int64_t offset = 0, stride = 0;
    for (int i = 0; i < mask_->rank; ++i) {
      if (mask_->last_extent(i) == 1) continue;
      offset += index[3 - i] * mask_->last_stride(i);
      if (i == 0) stride = mask_->last_stride(0);
    }
    const std::byte* from = mask_->data + offset * bytes_per_block(mask_->dtype);
    if (mask_->dtype != DType::kBool) {
      convert_to_f32(from, mask_->dtype, stride, keys, mask_row_);
    } else {
      for (int64_t i = 0; i < keys; ++i) {
        mask_row_[i] = from[i * stride] != std::byte{0} ? 0.0f : -kInfinity;
      }
    }
    return mask_row_;
  }

  // Adds a chunk to the total of row r of the block.
  void add_chunk(int64_t r, const SoftmaxState& state, const float* sums) const {
    SoftmaxState& total = total_states_[r];
    const float largest = std::max(total.largest, state.largest);
    const float base = largest == -kInfinity ? 0.0f : largest;
    const float total_factor = total.largest == largest ? 1.0f : inner_.exp(total.largest - base);
    const float factor = state.largest == largest ? 1.0f : inner_.exp(state.largest - base);
    inner_.combine(total_sums_ + r * e_.value_dim, total_factor, sums, factor, e_.value_dim);
    total.sum = total.sum * total_factor + state.sum * factor;
    total.largest = largest;
  }

  // Divides by the sum of weights, to which a sink adds its own, and stores in q's dtype.
  void store_row(int64_t row, const SoftmaxState& state, float* sums) const {
    const int64_t token = row / group_, head = key_head_ * group_ + row % group_;
    float sum = state.sum, factor = 1.0f;
    if (sinks_ != nullptr) {
      float sink;
      convert_to_f32(sinks_->data + head * sinks_->strides[0] * bytes_per_block(sinks_->dtype),
                     sinks_->dtype, 1, 1, &sink);
      const float largest = std::max(state.largest, sink);
      factor = state.largest == largest ? 1.0f : inner_.exp(state.largest - largest);
      sum = sum * factor + inner_.exp(sink - largest);
    }
    inner_.combine(sums, factor / sum, nullptr, 0.0f, e_.value_dim);
    std::byte* to = out_.data + ((batch_ * e_.tokens + token) * e_.heads + head) * e_.value_dim *
                                    bytes_per_block(out_.dtype);
    dense_.narrow(sums, e_.value_dim, out_.dtype, to);
  }

  const KernelCall& call_;
  const Attention& op_;
  const TensorView &q_, &k_, &v_;
  const TensorView* mask_;
  const TensorView* sinks_;
  const TensorView& out_;
  const Extents e_;
  const int64_t group_, rows_;
  const float scale_;
  const DenseKernels& dense_;
  const AttentionKernels& inner_;

  std::byte* partials_ = nullptr;
  float *queries_ = nullptr, *scores_ = nullptr, *keys_ = nullptr, *values_ = nullptr;
  float *chunk_sums_ = nullptr, *total_sums_ = nullptr;
  SoftmaxState *chunk_states_ = nullptr, *total_states_ = nullptr;

  // The rows at hand.
  int64_t batch_ = 0, key_head_ = 0, row_begin_ = 0, block_rows_ = 0;
  int64_t first_key_ = 0, last_key_ = 0;
  const float* query_rows_[kRowBlock];
  int64_t key_begin_[kRowBlock], key_end_[kRowBlock];
  float mask_row_[kKeyBlock] = {};
};

bool is_half_or_f32(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
}

std::string reject(const KernelQuery& query) {
  for (int i = 0; i < 3; ++i) {
    if (!is_half_or_f32(query.inputs[i].dtype)) {
      return "input " + std::to_string(i) + " is not f32, f16 or bf16";
    }
    if (i > 0 && !query.has_unit_inner_stride(i)) {
      return "the last dimension of input " + std::to_string(i) + " is not contiguous";
    }
  }
  return "";
}

int64_t scratch_bytes(const KernelQuery& query) {
  const auto bound = [&](int input, int axis) {
    return query.inputs[input].shape[axis].upper_bound(query.symbols);
  };
  const Extents e{bound(0, 0), bound(0, 1), bound(1, 1), bound(0, 2),
                  bound(1, 2), bound(0, 3), bound(2, 3)};
  const Scratch scratch(e, query.max_threads);
  return scratch.partial_bytes + query.max_threads * scratch.thread_bytes();
}

}  // namespace

std::span<const Kernel> attention_kernels() {
  static const Kernel kKernels[] = {
      {.name = "attention.blocked",
       .op = "attention",
       .reject = reject,
       .scratch_bytes = scratch_bytes,
       .run = [](const KernelCall& call) { BlockedAttention(call).run(); }},
  };
  return kKernels;
}

}  // namespace rlx::cpu
