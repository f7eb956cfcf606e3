// Ops that bring elements to other places, or make them from their place.
#pragma once

#include "ir/op.h"

namespace rlx {

// Joins the inputs along the axis; the other extents agree.
struct Concat {
  static constexpr std::string_view kName = "concat";
  static constexpr Arity kArity{1, -1};
  int64_t axis = 0;
  template <typename F>
  void fields(F&& field) {
    field("axis", axis);
  }
  std::vector<TensorType> infer(const InferContext& context) const;
  void reference(const ReferenceContext& context) const;
  static std::vector<Sample> samples();
  static std::vector<BadSample> bad_samples();
};

// Puts low[i] elements of `value` before and high[i] after the input along each axis i.
struct Pad {
  static constexpr std::string_view kName = "pad";
  static constexpr Arity kArity{1, 1};
  std::vector<int64_t> low;
  std::vector<int64_t> high;
  double value = 0;
  template <typename F>
  void fields(F&& field) {
    field("low", low);
    field("high", high);
    field("value", value);
  }
  std::vector<TensorType> infer(const InferContext& context) const;
  void reference(const ReferenceContext& context) const;
  static std::vector<Sample> samples();
  static std::vector<BadSample> bad_samples();
};

// gather(table, ids): out[a..., i..., b...] = table[a..., ids[i...], b...] with the ids at `axis`.
// A negative id counts from the end. An id outside [-extent, extent) is an error of the run. A
// packed table has rank 2 and axis 0, and gives f32.
struct Gather {
  static constexpr std::string_view kName = "gather";
  static constexpr Arity kArity{2, 2};
  int64_t axis = 0;
  template <typename F>
  void fields(F&& field) {
    field("axis", axis);
  }
  std::vector<TensorType> infer(const InferContext& context) const;
  void reference(const ReferenceContext& context) const;
  static std::vector<Sample> samples();
  static std::vector<BadSample> bad_samples();
};

// How scatter puts an update onto what is there.
enum class ScatterReduction : uint8_t { kNone, kAdd, kMul, kMin, kMax };
inline std::span<const std::string_view> enum_names(ScatterReduction) {
  static constexpr std::string_view kNames[] = {"none", "add", "mul", "min", "max"};
  return kNames;
}

// scatter(data, ids, updates): a copy of data in which each updates[i, j, ...] is put at
// [i, ..., ids[i, j, ...], ...] with the id at `axis`. ids and updates share one shape that lies
// inside data's on the other axes. Among equal places without a reduction the last update stays.
// Negative ids count from the end.
struct Scatter {
  static constexpr std::string_view kName = "scatter";
  static constexpr Arity kArity{3, 3};
  int64_t axis = 0;
  ScatterReduction reduction = ScatterReduction::kNone;
  template <typename F>
  void fields(F&& field) {
    field("axis", axis);
    field("reduction", reduction);
  }
  std::vector<TensorType> infer(const InferContext& context) const;
  void reference(const ReferenceContext& context) const;
  static std::vector<Sample> samples();
  static std::vector<BadSample> bad_samples();
};

// No inputs: start + step * (index along the axis).
struct Iota {
  static constexpr std::string_view kName = "iota";
  static constexpr Arity kArity{0, 0};
  Shape shape;
  int64_t axis = 0;
  Dim start = 0;
  int64_t step = 1;
  DType dtype = DType::kI64;
  template <typename F>
  void fields(F&& field) {
    field("shape", shape);
    field("axis", axis);
    field("start", start);
    field("step", step);
    field("dtype", dtype);
  }
  std::vector<TensorType> infer(const InferContext& context) const;
  void reference(const ReferenceContext& context) const;
  static std::vector<Sample> samples();
  static std::vector<BadSample> bad_samples();
};

// The k largest (or smallest) elements along the axis, sorted, and their indices (i64): two
// outputs. Of equals the lower index comes first; NaN is the largest of all.
struct TopK {
  static constexpr std::string_view kName = "top_k";
  static constexpr Arity kArity{1, 1};
  int64_t k = 1;
  int64_t axis = -1;
  bool largest = true;
  template <typename F>
  void fields(F&& field) {
    field("k", k);
    field("axis", axis);
    field("largest", largest);
  }
  std::vector<TensorType> infer(const InferContext& context) const;
  void reference(const ReferenceContext& context) const;
  static std::vector<Sample> samples();
  static std::vector<BadSample> bad_samples();
};

// The elements sorted along the axis, and their indices (i64): two outputs. Equals keep their
// order; NaN is the largest of all.
struct Sort {
  static constexpr std::string_view kName = "sort";
  static constexpr Arity kArity{1, 1};
  int64_t axis = -1;
  bool descending = false;
  template <typename F>
  void fields(F&& field) {
    field("axis", axis);
    field("descending", descending);
  }
  std::vector<TensorType> infer(const InferContext& context) const;
  void reference(const ReferenceContext& context) const;
  static std::vector<Sample> samples();
  static std::vector<BadSample> bad_samples();
};

}  // namespace rlx
