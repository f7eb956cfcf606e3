// "attention.blocked": softmax over keys taken block by block, so that no row of scores longer than
// a block exists. The query heads that share a key head are rows of one product with it. Keys are
// summed in chunks of a fixed size, which several threads may take when there are few rows; chunks
// are combined in order, so neither the threads nor the rows beside a row change its bits.
//
// "attention.cached": the same over a cache in which keys are found by place. Blocks and chunks lie
// by a key's position in its text, not by its row, so the bits are those of keys in order.
#include "ops/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/kernels/attention_inner.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/matmul_dense.h"
#include "backends/cpu/kernels/matmul_operands.h"
#include "ops/cache.h"

namespace rlx::cpu {
namespace {

// Rows (tokens times heads of a group) that share a decoded block of keys and values.
constexpr int64_t kRowBlock = 48;
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

// What the two ops ask for. Keys are found by place when `positions` is there.
struct AttentionCall {
  const TensorView* mask = nullptr;
  const TensorView* sinks = nullptr;
  const int64_t* positions = nullptr;
  const int64_t* texts = nullptr;  // null: every token is of text 0
  double scale = 0, soft_cap = 0;
  int64_t window = 0;
  bool causal = true;
};

AttentionCall describe_attention(const KernelCall& call) {
  const Attention& op = call.op<Attention>();
  AttentionCall result;
  if (op.mask) result.mask = &call.input(3);
  if (op.sinks) result.sinks = call.inputs.back();
  result.scale = op.scale;
  result.soft_cap = op.soft_cap;
  result.window = op.window;
  result.causal = op.causal;
  return result;
}

AttentionCall describe_cached_attention(const KernelCall& call) {
  const CachedAttention& op = call.op<CachedAttention>();
  AttentionCall result;
  result.positions = call.input(3).as<int64_t>();
  if (op.texts) result.texts = call.input(4).as<int64_t>();
  if (op.sinks) result.sinks = call.inputs.back();
  result.scale = op.scale;
  result.soft_cap = op.soft_cap;
  result.window = op.window;
  return result;
}

// Where scratch lies: states of split chunks (all threads), then for each thread the parts below.
struct Scratch {
  int64_t chunks;  // of a split head, at most: keys found by place may begin within a chunk
  int64_t partial_bytes;
  int64_t query_bytes, score_bytes, key_bytes, value_bytes, sum_bytes, state_bytes;

  Scratch(const Extents& e, bool by_place, int num_threads)
      : chunks(divide_up(e.keys, kChunk) + (by_place ? 1 : 0)),
        partial_bytes(0),
        query_bytes(align64(kRowBlock * e.dim * 4)),
        score_bytes(kRowBlock * kKeyBlock * 4),
        key_bytes(align64(kKeyBlock * (e.dim + 16) * 4)),
        value_bytes(align64(kKeyBlock * (e.value_dim + 16) * 4)),
        sum_bytes(align64(kRowBlock * e.value_dim * 4)),
        state_bytes(align64(kRowBlock * static_cast<int64_t>(sizeof(SoftmaxState)))) {
    if (num_threads > 1 && e.keys > kChunk) {
      const int64_t rows = std::min(e.tokens * divide_up(e.heads, e.key_heads), kSplitRows);
      partial_bytes = align64(e.batch * e.key_heads * rows * chunks * row_bytes(e));
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
  BlockedAttention(const KernelCall& call, const AttentionCall& attention)
      : call_(call),
        op_(attention),
        q_(call.input(0)),
        k_(call.input(1)),
        v_(call.input(2)),
        mask_(attention.mask),
        sinks_(attention.sinks),
        out_(call.output(0)),
        e_{q_.extents[0], q_.extents[1], k_.extents[1], q_.extents[2],
           k_.extents[2], q_.extents[3], v_.extents[3]},
        group_(e_.key_heads > 0 ? e_.heads / e_.key_heads : 1),
        rows_(e_.tokens * group_),
        scale_(static_cast<float>(op_.scale != 0 ? op_.scale
                                                 : 1.0 / std::sqrt(static_cast<double>(e_.dim)))),
        dense_(dense_kernels()),
        inner_(attention_inner_kernels()) {
    const Scratch scratch(e_, op_.positions != nullptr, call.num_threads);
    most_chunks_ = scratch.partial_bytes > 0 ? scratch.chunks : 0;
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
    if (e_.tokens == 0) return;
    if (call_.num_threads > 1 && rows_ <= kSplitRows && end_of_text(0) == e_.tokens) {
      const Chunks chunks = find_chunks();
      if (chunks.end - chunks.begin > 1 && chunks.end - chunks.begin <= most_chunks_) {
        run_split(chunks);
        return;
      }
    }
    int64_t item = 0;
    for (int64_t batch = 0; batch < e_.batch; ++batch) {
      for (int64_t token = 0; token < e_.tokens; token = end_of_text(token)) {
        const int64_t row_end = end_of_text(token) * group_;
        for (int64_t head = 0; head < e_.key_heads; ++head) {
          for (int64_t row = token * group_; row < row_end; row += kRowBlock) {
            if (is_mine(item++)) sum_rows(batch, head, row, row_end);
          }
        }
      }
    }
  }

 private:
  // Chunks by their number; chunk i holds the keys from i * kChunk on.
  struct Chunks {
    int64_t begin, end;
  };

  // Later rows see more keys, so threads take blocks in a zigzag: 0 1 1 0 0 1 ...
  bool is_mine(int64_t item) const {
    const int64_t lap = item / call_.num_threads, place = item % call_.num_threads;
    return (lap % 2 == 0 ? place : call_.num_threads - 1 - place) == call_.thread;
  }

  // The end of the tokens from this one on that are of its text.
  int64_t end_of_text(int64_t token) const {
    if (op_.texts == nullptr) return e_.tokens;
    int64_t end = token + 1;
    while (end < e_.tokens && op_.texts[end] == op_.texts[token]) ++end;
    return end;
  }

  // The chunks with keys that any row sees.
  Chunks find_chunks() const {
    int64_t first = std::numeric_limits<int64_t>::max(), last = 0;
    for (int64_t token = 0; token < e_.tokens; ++token) {
      const Range keys = find_keys(token);
      if (keys.begin < keys.end) first = std::min(first, keys.begin);
      last = std::max(last, keys.end);
    }
    return {std::min(first, last) / kChunk, divide_up(last, kChunk)};
  }

  // The positions of the keys that a token sees; none when its own place is outside the cache.
  Range find_keys(int64_t token) const {
    if (op_.positions == nullptr) {
      const int64_t position = e_.keys - e_.tokens + token;
      const int64_t end = op_.causal ? std::clamp<int64_t>(position + 1, 0, e_.keys) : e_.keys;
      const int64_t begin = position - op_.window + 1;
      return {op_.window > 0 ? std::clamp<int64_t>(begin, 0, e_.keys) : 0, end};
    }
    const int64_t position = op_.positions[token];
    if (!holds_position(e_.keys, op_.window, e_.tokens, position)) {
      call_.error->store(KernelError::kCacheFull, std::memory_order_relaxed);
      return {0, 0};
    }
    if (op_.texts != nullptr && (op_.texts[token] < 0 || op_.texts[token] >= k_.extents[0])) {
      call_.error->store(KernelError::kIndexOutOfRange, std::memory_order_relaxed);
      return {0, 0};
    }
    return {op_.window > 0 ? std::max<int64_t>(0, position - op_.window + 1) : 0, position + 1};
  }

  // Attention of up to kRowBlock rows from `row` on, one chunk of keys after the other.
  void sum_rows(int64_t batch, int64_t key_head, int64_t row, int64_t row_end) {
    take_rows(batch, key_head, row, row_end);
    start(total_states_, total_sums_);
    const int64_t chunk_end = divide_up(last_key_, kChunk);
    for (int64_t chunk = first_key_ / kChunk; chunk < chunk_end; ++chunk) {
      if (!sum_chunk(chunk)) continue;
      for (int64_t r = 0; r < block_rows_; ++r) add_chunk(r, chunk_states_[r], chunk_sum(r));
    }
    for (int64_t r = 0; r < block_rows_; ++r) {
      store_row(row_begin_ + r, total_states_[r], total_sums_ + r * e_.value_dim);
    }
  }

  // Threads take chunks of one head, then rows to combine.
  void run_split(const Chunks& chunks) {
    const int64_t heads = e_.batch * e_.key_heads, count = chunks.end - chunks.begin;
    const Range mine = split_range(heads * count, call_.thread, call_.num_threads);
    for (int64_t item = mine.begin; item < mine.end; ++item) {
      const int64_t head = item / count;
      take_rows(head / e_.key_heads, head % e_.key_heads, 0, rows_);
      const bool any = sum_chunk(chunks.begin + item % count);
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
      for (int64_t chunk = 0; chunk < count; ++chunk) {
        std::byte* partial = partial_row((head * count + chunk) * rows_ + row);
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

  // Makes the rows from row_begin on, up to row_end, of a key head the block at hand. Row r is
  // token r / group, head key_head * group + r % group; all are of one text.
  void take_rows(int64_t batch, int64_t key_head, int64_t row_begin, int64_t row_end) {
    batch_ = batch;
    key_head_ = key_head;
    row_begin_ = row_begin;
    block_rows_ = std::min(kRowBlock, row_end - row_begin);
    first_key_ = std::numeric_limits<int64_t>::max();
    last_key_ = 0;
    const int64_t text = op_.texts != nullptr ? op_.texts[row_begin / group_] : 0;
    cache_text_ = op_.positions != nullptr ? text : batch;
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
      const Range keys = find_keys(token);
      key_begin_[r] = keys.begin;
      key_end_[r] = keys.end;
      if (keys.begin < keys.end) first_key_ = std::min(first_key_, keys.begin);
      last_key_ = std::max(last_key_, keys.end);
    }
    first_key_ = std::min(first_key_, last_key_);
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
    for (int64_t key = begin; key < end; key += kKeyBlock) sum_block(key);
    return true;
  }

  // Calls visit(offset, row, count) for the keys of the block from `key` on that any row at hand
  // sees: `count` of them lie side by side from a row of the cache on, `offset` within the block.
  template <typename Visit>
  void visit_keys(int64_t key, Visit visit) const {
    int64_t from = std::max(key, first_key_);
    const int64_t end = std::min(key + kKeyBlock, last_key_);
    while (from < end) {
      const int64_t row = from % e_.keys, count = std::min(end - from, e_.keys - row);
      visit(from - key, row, count);
      from += count;
    }
  }

  void sum_block(int64_t key) {
    const bool converts = block_rows_ >= kConvertRows;
    visit_keys(key, [&](int64_t offset, int64_t row, int64_t count) {
      const CacheRows k = find_rows(k_, row, count, e_.dim, converts, keys_);
      dense_.multiply(query_rows_, block_rows_, k.data, k.dtype, k.stride, count, e_.dim, false,
                      scores_ + offset, kKeyBlock);
    });
    const int64_t keys = op_.positions != nullptr ? kKeyBlock : std::min(kKeyBlock, e_.keys - key);
    for (int64_t r = 0; r < block_rows_; ++r) {
      float* scores = scores_ + r * kKeyBlock;
      const int64_t begin = std::clamp<int64_t>(key_begin_[r] - key, 0, keys);
      const int64_t end = std::clamp<int64_t>(key_end_[r] - key, 0, keys);
      const float factor =
          inner_.weigh(scores, mask_ != nullptr ? load_mask(r, key, keys) : nullptr, begin, end,
                       scale_, static_cast<float>(op_.soft_cap), &chunk_states_[r]);
      if (factor != 1.0f) inner_.combine(chunk_sum(r), factor, nullptr, 0.0f, e_.value_dim);
    }
    visit_keys(key, [&](int64_t offset, int64_t row, int64_t count) {
      const CacheRows v = find_rows(v_, row, count, e_.value_dim, converts, values_);
      inner_.accumulate(scores_ + offset, block_rows_, v.data, v.dtype, v.stride, count,
                        e_.value_dim, chunk_sums_, e_.value_dim);
    });
  }

  // Rows of keys or values as the inner loops take them.
  struct CacheRows {
    const std::byte* data;
    DType dtype;
    int64_t stride;
  };

  // Rows [row, row + count) of the head at hand, where they lie or converted to f32.
  CacheRows find_rows(const TensorView& cache, int64_t row, int64_t count, int64_t width,
                      bool converts, float* converted) const {
    const DType dtype = cache.dtype;
    const auto bytes_at = [&](int64_t elements) {
      return elements / elements_per_block(dtype) * bytes_per_block(dtype);
    };
    const std::byte* data =
        cache.data + bytes_at(cache_text_ * cache.strides[0] + row * cache.strides[1] +
                              key_head_ * cache.strides[2]);
    if (dtype == DType::kF32 || (!converts && !is_packed(dtype))) {
      return {data, dtype, cache.strides[1]};
    }
    const int64_t stride = width + 16;
    for (int64_t i = 0; i < count; ++i) {
      const std::byte* from = data + bytes_at(i * cache.strides[1]);
      if (dtype == DType::kQ8_0) {
        inner_.widen_q8_0(from, width, converted + i * stride);
      } else {
        dense_.widen(from, dtype, width, converted + i * stride);
      }
    }
    return {reinterpret_cast<const std::byte*>(converted), DType::kF32, stride};
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
  const AttentionCall& op_;
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
  int64_t most_chunks_ = 0;  // that may be split over threads

  // The rows at hand; first and last key are the ends of what any of them sees.
  int64_t batch_ = 0, cache_text_ = 0, key_head_ = 0, row_begin_ = 0, block_rows_ = 0;
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
    const DType dtype = query.inputs[i].dtype;
    if (!is_half_or_f32(dtype) && (i == 0 || dtype != DType::kQ8_0)) {
      return fmt::format("input {} is {}", i, to_string(dtype));
    }
    if (i > 0 && !query.has_unit_inner_stride(i)) {
      return fmt::format("the last dimension of input {} is not contiguous", i);
    }
  }
  return "";
}

std::string reject_cached(const KernelQuery& query) {
  const int last = query.op.as<CachedAttention>()->texts ? 4 : 3;
  for (int i = 3; i <= last; ++i) {
    if (!query.is_contiguous(i)) return "the places are not contiguous";
  }
  return reject(query);
}

int64_t scratch_bytes(const KernelQuery& query) {
  const auto bound = [&](int input, int axis) {
    return query.inputs[input].shape[axis].upper_bound(query.symbols);
  };
  const Extents e{bound(0, 0), bound(0, 1), bound(1, 1), bound(0, 2),
                  bound(1, 2), bound(0, 3), bound(2, 3)};
  const Scratch scratch(e, query.op.is<CachedAttention>(), query.max_threads);
  return scratch.partial_bytes + query.max_threads * scratch.thread_bytes();
}

}  // namespace

std::span<const Kernel> attention_kernels() {
  static const Kernel kKernels[] = {
      {.name = "attention.blocked",
       .op = Attention::kName,
       .reject = reject,
       .scratch_bytes = scratch_bytes,
       .run =
           [](const KernelCall& call) {
             const AttentionCall attention = describe_attention(call);
             BlockedAttention(call, attention).run();
           }},
      {.name = "attention.cached",
       .op = CachedAttention::kName,
       .reject = reject_cached,
       .scratch_bytes = scratch_bytes,
       .run =
           [](const KernelCall& call) {
             const AttentionCall attention = describe_cached_attention(call);
             BlockedAttention(call, attention).run();
           }},
  };
  return kKernels;
}

}  // namespace rlx::cpu
