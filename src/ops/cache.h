// Key/value caches that several texts share, and caches that keep only a window. Rows are found by
// place: the row of a token is its position in its text, counted around the end of the cache, and
// which part of the cache belongs to its text is given for each token. So one program serves texts
// of different lengths, and the cache of a layer with a sliding window does not grow with the text.
#pragma once

#include "ir/op.h"

namespace rlx {

// cache_write(cache[texts, rows, ...], update[1, tokens, ...], positions i64[tokens], [texts
// i64[tokens]]): writes token t of the update, converted to the cache's dtype, into cache[texts[t],
// positions[t] % rows], in place; without the fourth input every token is of text 0. The output is
// the whole cache. No two tokens of a run go to one row.
//   window  how many of the newest rows of a text are read (cached_attention's attribute). When 0,
//           all are: a position of `rows` or more is an error of the run. When positive, positions
//           go on without end, if rows >= window + tokens - 1: the rows that the first token of a
//           run still reads are then not overwritten by the last.
struct CacheWrite {
  static constexpr std::string_view kName = "cache_write";
  static constexpr Arity kArity{3, 4};
  static constexpr int kInPlaceInput = 0;
  int64_t window = 0;
  template <typename F>
  void fields(F&& field) {
    field("window", window);
  }
  std::vector<TensorType> infer(const InferContext& context) const;
  void reference(const ReferenceContext& context) const;
  static std::vector<Sample> samples();
  static std::vector<BadSample> bad_samples();
};

// cached_attention(q[1, tokens, h, d], k[texts, rows, hk, d], v[texts, rows, hk, dv], positions
// i64[tokens], [texts i64[tokens]], [sinks f32[h]]) -> [1, tokens, h, dv]: token t attends to the
// keys of its text at positions p with positions[t] - window < p <= positions[t] (from 0 on when
// `window` is 0), which lie in rows p % rows. Otherwise as attention, with the same bits as that
// gives on the same keys in order; always in f32, so that no input is f64.
//   texts   says that the fifth input is there; without it every token is of text 0.
//   sinks   says that the last input is there.
//   window  a position of `rows` or more is an error of the run unless rows >= window + tokens - 1.
struct CachedAttention {
  static constexpr std::string_view kName = "cached_attention";
  static constexpr Arity kArity{4, 6};
  double scale = 0;
  int64_t window = 0;
  double soft_cap = 0;
  bool texts = false;
  bool sinks = false;
  template <typename F>
  void fields(F&& field) {
    field("scale", scale);
    field("window", window);
    field("soft_cap", soft_cap);
    field("texts", texts);
    field("sinks", sinks);
  }
  std::vector<TensorType> infer(const InferContext& context) const;
  void reference(const ReferenceContext& context) const;
  static std::vector<Sample> samples();
  static std::vector<BadSample> bad_samples();
};

// Whether a cache of `rows` rows serves a token at `position` of a run of `tokens` tokens.
inline bool holds_position(int64_t rows, int64_t window, int64_t tokens, int64_t position) {
  const bool wraps = window > 0 && rows >= window + tokens - 1;
  return position >= 0 && (wraps || position < rows);
}

// Fails unless input i is of a dtype that caches have: a float, or q8_0 with whole blocks along the
// last axis.
void check_cache_dtype(const InferContext& context, int i);

// Rounds `count` values from `begin` on as a packed cache keeps them: a block with a value that is
// not finite, or too large for its scale, becomes NaN throughout. Leaves other dtypes alone.
void round_cache_row(ReferenceTensor& cache, int64_t begin, int64_t count);

}  // namespace rlx
