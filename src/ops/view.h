// Views: ops that move no bytes where the consumer accepts strides. Their meaning is where the
// elements of the output lie in the input.
#pragma once

#include "ir/op.h"

namespace rlx {

// The same elements in row-major order under another shape. One extent may be -1: the number of
// elements divided by the others, which must be exact for every value of the symbols.
struct Reshape {
  static constexpr std::string_view kName = "reshape";
  static constexpr Arity kArity{1, 1};
  Shape shape;
  template <typename F>
  void fields(F&& field) {
    field("shape", shape);
  }
  std::vector<TensorType> infer(const InferContext& context) const;
  std::optional<Layout> layout(const LayoutContext& context) const;
  static std::vector<Sample> samples();
  static std::vector<BadSample> bad_samples();
};

// Output axis i is input axis permutation[i]; empty reverses the axes.
struct Transpose {
  static constexpr std::string_view kName = "transpose";
  static constexpr Arity kArity{1, 1};
  std::vector<int64_t> permutation;
  template <typename F>
  void fields(F&& field) {
    field("permutation", permutation);
  }
  std::vector<TensorType> infer(const InferContext& context) const;
  std::optional<Layout> layout(const LayoutContext& context) const;
  static std::vector<Sample> samples();
  static std::vector<BadSample> bad_samples();
};

// Stretches extents of 1 and adds leading axes, as numpy does.
struct Broadcast {
  static constexpr std::string_view kName = "broadcast";
  static constexpr Arity kArity{1, 1};
  Shape shape;
  template <typename F>
  void fields(F&& field) {
    field("shape", shape);
  }
  std::vector<TensorType> infer(const InferContext& context) const;
  std::optional<Layout> layout(const LayoutContext& context) const;
  static std::vector<Sample> samples();
  static std::vector<BadSample> bad_samples();
};

// Element i along an axis is input element start + i * step. Every axis is listed; steps are
// positive, and empty `steps` are all 1. That the slice lies inside must follow from the symbols'
// bounds.
struct Slice {
  static constexpr std::string_view kName = "slice";
  static constexpr Arity kArity{1, 1};
  Shape starts;
  Shape sizes;
  std::vector<int64_t> steps;
  template <typename F>
  void fields(F&& field) {
    field("starts", starts);
    field("sizes", sizes);
    field("steps", steps);
  }
  std::vector<TensorType> infer(const InferContext& context) const;
  std::optional<Layout> layout(const LayoutContext& context) const;
  static std::vector<Sample> samples();
  static std::vector<BadSample> bad_samples();
};

}  // namespace rlx
