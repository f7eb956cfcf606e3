// Normalisations, built from simpler ops. f16 and bf16 inputs are computed in f32 and rounded once
// at the end.
#pragma once

#include "ir/op.h"

namespace rlx {

// exp(x - max) / sum(exp(x - max)) along the axis.
struct Softmax {
  static constexpr std::string_view kName = "softmax";
  static constexpr Arity kArity{1, 1};
  int64_t axis = -1;
  template <typename F>
  void fields(F&& field) {
    field("axis", axis);
  }
  std::vector<TensorType> infer(const InferContext& context) const;
  std::vector<ValueId> decompose(Builder& builder, std::span<const ValueId> inputs) const;
  static std::vector<Sample> samples();
  static std::vector<BadSample> bad_samples();
};

// x - max - log(sum(exp(x - max))) along the axis.
struct LogSoftmax {
  static constexpr std::string_view kName = "log_softmax";
  static constexpr Arity kArity{1, 1};
  int64_t axis = -1;
  template <typename F>
  void fields(F&& field) {
    field("axis", axis);
  }
  std::vector<TensorType> infer(const InferContext& context) const;
  std::vector<ValueId> decompose(Builder& builder, std::span<const ValueId> inputs) const;
  static std::vector<Sample> samples();
  static std::vector<BadSample> bad_samples();
};

// rms_norm(x, weight): x / sqrt(mean(x^2) + eps) * weight[n] over the last axis. The weight may be
// of another float dtype.
struct RmsNorm {
  static constexpr std::string_view kName = "rms_norm";
  static constexpr Arity kArity{2, 2};
  double eps = 1e-6;
  template <typename F>
  void fields(F&& field) {
    field("eps", eps);
  }
  std::vector<TensorType> infer(const InferContext& context) const;
  std::vector<ValueId> decompose(Builder& builder, std::span<const ValueId> inputs) const;
  static std::vector<Sample> samples();
  static std::vector<BadSample> bad_samples();
};

// layer_norm(x, weight, bias): (x - mean) / sqrt(mean((x - mean)^2) + eps) * weight[n] + bias[n]
// over the last axis. Weight and bias may be of another float dtype.
struct LayerNorm {
  static constexpr std::string_view kName = "layer_norm";
  static constexpr Arity kArity{3, 3};
  double eps = 1e-5;
  template <typename F>
  void fields(F&& field) {
    field("eps", eps);
  }
  std::vector<TensorType> infer(const InferContext& context) const;
  std::vector<ValueId> decompose(Builder& builder, std::span<const ValueId> inputs) const;
  static std::vector<Sample> samples();
  static std::vector<BadSample> bad_samples();
};

// add_rms_norm(x, y, weight) gives two outputs: x + y and rms_norm(x + y, weight). Made by a pass.
struct AddRmsNorm {
  static constexpr std::string_view kName = "add_rms_norm";
  static constexpr Arity kArity{3, 3};
  double eps = 1e-6;
  template <typename F>
  void fields(F&& field) {
    field("eps", eps);
  }
  std::vector<TensorType> infer(const InferContext& context) const;
  std::vector<ValueId> decompose(Builder& builder, std::span<const ValueId> inputs) const;
  static std::vector<Sample> samples();
  static std::vector<BadSample> bad_samples();
};

}  // namespace rlx
