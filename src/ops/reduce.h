// Reductions along axes, positions of extremes, and running sums. The meaning is plain loops:
// floats accumulate in double, integers wrap. `axes` and `axis` may be negative (counted from the
// end); empty `axes` stands for all. With keep_dims a reduced axis stays with extent 1. A max or
// min with a NaN among its elements is NaN.
#pragma once

#include "ir/op.h"

namespace rlx {

struct ReduceSum {
  static constexpr std::string_view kName = "reduce_sum";
  static constexpr Arity kArity{1, 1};
  std::vector<int64_t> axes;
  bool keep_dims = false;
  template <typename F>
  void fields(F&& field) {
    field("axes", axes);
    field("keep_dims", keep_dims);
  }
  std::vector<TensorType> infer(const InferContext& context) const;
  void reference(const ReferenceContext& context) const;
  static std::vector<Sample> samples();
  static std::vector<BadSample> bad_samples();
};

// Floats only; the mean of nothing is NaN.
struct ReduceMean {
  static constexpr std::string_view kName = "reduce_mean";
  static constexpr Arity kArity{1, 1};
  std::vector<int64_t> axes;
  bool keep_dims = false;
  template <typename F>
  void fields(F&& field) {
    field("axes", axes);
    field("keep_dims", keep_dims);
  }
  std::vector<TensorType> infer(const InferContext& context) const;
  void reference(const ReferenceContext& context) const;
  static std::vector<Sample> samples();
  static std::vector<BadSample> bad_samples();
};

// The maximum of nothing is -infinity, or the lowest integer of the dtype.
struct ReduceMax {
  static constexpr std::string_view kName = "reduce_max";
  static constexpr Arity kArity{1, 1};
  std::vector<int64_t> axes;
  bool keep_dims = false;
  template <typename F>
  void fields(F&& field) {
    field("axes", axes);
    field("keep_dims", keep_dims);
  }
  std::vector<TensorType> infer(const InferContext& context) const;
  void reference(const ReferenceContext& context) const;
  static std::vector<Sample> samples();
  static std::vector<BadSample> bad_samples();
};

// The minimum of nothing is infinity, or the highest integer of the dtype.
struct ReduceMin {
  static constexpr std::string_view kName = "reduce_min";
  static constexpr Arity kArity{1, 1};
  std::vector<int64_t> axes;
  bool keep_dims = false;
  template <typename F>
  void fields(F&& field) {
    field("axes", axes);
    field("keep_dims", keep_dims);
  }
  std::vector<TensorType> infer(const InferContext& context) const;
  void reference(const ReferenceContext& context) const;
  static std::vector<Sample> samples();
  static std::vector<BadSample> bad_samples();
};

struct ReduceProd {
  static constexpr std::string_view kName = "reduce_prod";
  static constexpr Arity kArity{1, 1};
  std::vector<int64_t> axes;
  bool keep_dims = false;
  template <typename F>
  void fields(F&& field) {
    field("axes", axes);
    field("keep_dims", keep_dims);
  }
  std::vector<TensorType> infer(const InferContext& context) const;
  void reference(const ReferenceContext& context) const;
  static std::vector<Sample> samples();
  static std::vector<BadSample> bad_samples();
};

// The index, i64, of the largest element along the axis: the first of equals, or with select_last
// the last. NaN is the largest of all. The axis must not be empty.
struct Argmax {
  static constexpr std::string_view kName = "argmax";
  static constexpr Arity kArity{1, 1};
  int64_t axis = -1;
  bool keep_dims = false;
  bool select_last = false;
  template <typename F>
  void fields(F&& field) {
    field("axis", axis);
    field("keep_dims", keep_dims);
    field("select_last", select_last);
  }
  std::vector<TensorType> infer(const InferContext& context) const;
  void reference(const ReferenceContext& context) const;
  static std::vector<Sample> samples();
  static std::vector<BadSample> bad_samples();
};

// As argmax, for the smallest element; NaN is the smallest of all.
struct Argmin {
  static constexpr std::string_view kName = "argmin";
  static constexpr Arity kArity{1, 1};
  int64_t axis = -1;
  bool keep_dims = false;
  bool select_last = false;
  template <typename F>
  void fields(F&& field) {
    field("axis", axis);
    field("keep_dims", keep_dims);
    field("select_last", select_last);
  }
  std::vector<TensorType> infer(const InferContext& context) const;
  void reference(const ReferenceContext& context) const;
  static std::vector<Sample> samples();
  static std::vector<BadSample> bad_samples();
};

// The sum of all elements up to this one along the axis; with `exclusive` without this one, with
// `reverse` from the end.
struct CumulativeSum {
  static constexpr std::string_view kName = "cumulative_sum";
  static constexpr Arity kArity{1, 1};
  int64_t axis = 0;
  bool exclusive = false;
  bool reverse = false;
  template <typename F>
  void fields(F&& field) {
    field("axis", axis);
    field("exclusive", exclusive);
    field("reverse", reverse);
  }
  std::vector<TensorType> infer(const InferContext& context) const;
  void reference(const ReferenceContext& context) const;
  static std::vector<Sample> samples();
  static std::vector<BadSample> bad_samples();
};

}  // namespace rlx
