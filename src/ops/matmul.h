// Contractions. A weight may be of another float dtype than the activations, or packed; the result
// has the activations' dtype.
#pragma once

#include "ir/op.h"

namespace rlx {

// a[..., m, k] x b[..., k, n] -> [..., m, n]. The leading dims broadcast; ranks are at least 2.
// transpose_a and transpose_b read a as [..., k, m] and b as [..., n, k]. A packed b needs
// transpose_b. Integers need one dtype and wrap.
struct Matmul {
  static constexpr std::string_view kName = "matmul";
  static constexpr Arity kArity{2, 2};
  bool transpose_a = false;
  bool transpose_b = false;
  template <typename F>
  void fields(F&& field) {
    field("transpose_a", transpose_a);
    field("transpose_b", transpose_b);
  }
  std::vector<TensorType> infer(const InferContext& context) const;
  void reference(const ReferenceContext& context) const;
  static std::vector<Sample> samples();
  static std::vector<BadSample> bad_samples();
};

// What linear applies after the bias.
enum class Activation : uint8_t { kNone, kRelu, kGelu, kGeluTanh, kSilu, kSigmoid, kTanh };
inline std::span<const std::string_view> enum_names(Activation) {
  static constexpr std::string_view kNames[] = {"none", "relu",    "gelu", "gelu_tanh",
                                                "silu", "sigmoid", "tanh"};
  return kNames;
}

// linear(x, w, [bias], [residual]) = activation(x[..., m, k] x w[n, k]^T + bias[n]) + residual, the
// residual of the output's shape. `bias` and `residual` say which of the inputs are there. Made by
// the epilogue pass.
struct Linear {
  static constexpr std::string_view kName = "linear";
  static constexpr Arity kArity{2, 4};
  bool bias = false;
  bool residual = false;
  Activation activation = Activation::kNone;
  template <typename F>
  void fields(F&& field) {
    field("bias", bias);
    field("residual", residual);
    field("activation", activation);
  }
  std::vector<TensorType> infer(const InferContext& context) const;
  std::vector<ValueId> decompose(Builder& builder, std::span<const ValueId> inputs) const;
  static std::vector<Sample> samples();
  static std::vector<BadSample> bad_samples();
};

// grouped_matmul(x, w, expert_ids): out[t, a] = w[expert_ids[t, a]] . x[t] with w[experts, n, k]
// and expert_ids[tokens, active] of i32 or i64. x is [tokens, k], or [tokens, active, k] for x[t,
// a]. The output is [tokens, active, n] in x's dtype. An id outside [0, experts) is an error of the
// run.
struct GroupedMatmul {
  static constexpr std::string_view kName = "grouped_matmul";
  static constexpr Arity kArity{3, 3};
  std::vector<TensorType> infer(const InferContext& context) const;
  void reference(const ReferenceContext& context) const;
  static std::vector<Sample> samples();
  static std::vector<BadSample> bad_samples();
};

}  // namespace rlx
