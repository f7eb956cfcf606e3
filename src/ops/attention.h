// What a transformer's attention needs: rotary positions, attention over grouped heads, and the
// key/value cache. Sequences are laid out [batch, tokens, heads, dim].
#pragma once

#include "ir/op.h"

namespace rlx {

// rope_table(positions i64[tokens], inv_freq f32[rotary / 2]) -> f32[tokens, rotary]: with the
// angle a = position * inv_freq, the first half of a row holds cos(a) * scale, the second sin(a) *
// scale.
struct RopeTable {
  static constexpr std::string_view kName = "rope_table";
  static constexpr Arity kArity{2, 2};
  double scale = 1;
  template <typename F>
  void fields(F&& field) {
    field("scale", scale);
  }
  std::vector<TensorType> infer(const InferContext& context) const;
  std::vector<ValueId> decompose(Builder& builder, std::span<const ValueId> inputs) const;
  static std::vector<Sample> samples();
  static std::vector<BadSample> bad_samples();
};

// rope(x[batch, tokens, heads, dim], table f32[tokens, rotary]): turns the first `rotary` elements
// of each head by the table's angles: (x0, x1) -> (x0 * cos - x1 * sin, x0 * sin + x1 * cos). A
// pair is (i, i + rotary / 2), or with `interleaved` (2 i, 2 i + 1). The rest passes unchanged.
struct Rope {
  static constexpr std::string_view kName = "rope";
  static constexpr Arity kArity{2, 2};
  bool interleaved = false;
  template <typename F>
  void fields(F&& field) {
    field("interleaved", interleaved);
  }
  std::vector<TensorType> infer(const InferContext& context) const;
  std::vector<ValueId> decompose(Builder& builder, std::span<const ValueId> inputs) const;
  static std::vector<Sample> samples();
  static std::vector<BadSample> bad_samples();
};

// attention(q[b, t, h, d], k[b, s, hk, d], v[b, s, hk, dv], [mask], [sinks]) -> [b, t, h, dv]:
// softmax(q . k^T * scale) . v per head, in f32 when q is f16 or bf16; the output has q's dtype. h
// is a multiple of hk: query head i reads key head i / (h / hk). Query row i stands at position (s
// - t) + i, so with a cache s is past + tokens. k and v may be q8_0, as a cache is.
//   scale     of the scores; 0 stands for 1 / sqrt(d).
//   causal    only keys at or before the query's position count.
//   window    when positive, only keys after (query position - window) count.
//   soft_cap  when positive, score -> soft_cap * tanh(score / soft_cap), before any mask.
//   mask      says that a mask is there, broadcastable to [b, h, t, s]: floats are added to the
//   scores,
//             of bools only true ones count.
//   sinks     says that f32[h] is there: one more logit per head in the softmax's denominator.
// A row in which no key counts is zero with sinks, NaN without.
struct Attention {
  static constexpr std::string_view kName = "attention";
  static constexpr Arity kArity{3, 5};
  double scale = 0;
  bool causal = true;
  int64_t window = 0;
  double soft_cap = 0;
  bool mask = false;
  bool sinks = false;
  template <typename F>
  void fields(F&& field) {
    field("scale", scale);
    field("causal", causal);
    field("window", window);
    field("soft_cap", soft_cap);
    field("mask", mask);
    field("sinks", sinks);
  }
  std::vector<TensorType> infer(const InferContext& context) const;
  std::vector<ValueId> decompose(Builder& builder, std::span<const ValueId> inputs) const;
  static std::vector<Sample> samples();
  static std::vector<BadSample> bad_samples();
};

// cache_append(cache, update): writes the update, converted to the cache's dtype, into the cache at
// rows [row, row + n) along the axis, in place, n being the update's extent there. The output is
// the view of the cache's first row + n rows. That they fit into the cache is checked by each run.
// A cache of q8_0 keeps blocks of 32 along the last axis; a block with a value that is not finite,
// or too large for the block's f16 scale, becomes NaN throughout.
struct CacheAppend {
  static constexpr std::string_view kName = "cache_append";
  static constexpr Arity kArity{2, 2};
  static constexpr int kInPlaceInput = 0;
  Dim row = 0;
  int64_t axis = 1;
  template <typename F>
  void fields(F&& field) {
    field("row", row);
    field("axis", axis);
  }
  std::vector<TensorType> infer(const InferContext& context) const;
  void reference(const ReferenceContext& context) const;
  static std::vector<Sample> samples();
  static std::vector<BadSample> bad_samples();
};

}  // namespace rlx
