// Makes the table of functions of an op from its struct. Included where kinds are made: the op
// table, the source ops, and tests that bring an op of their own.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "ir/op.h"

namespace rlx {

// Stops the process when the struct does not have exactly one meaning.
template <typename T>
OpKind make_op_kind() {
  OpKind kind;
  kind.name = T::kName;
  kind.arity = T::kArity;
  kind.make_default = []() -> std::shared_ptr<void> { return std::make_shared<T>(); };
  kind.visit_fields = [](void* op, FieldVisitor& visitor) {
    if constexpr (requires(T & t) { t.fields(visitor); }) static_cast<T*>(op)->fields(visitor);
  };
  if constexpr (requires(const T& a) { a == a; }) {
    kind.equals = [](const void* a, const void* b) {
      return *static_cast<const T*>(a) == *static_cast<const T*>(b);
    };
  }
  kind.infer = [](const void* op, const InferContext& context) {
    return static_cast<const T*>(op)->infer(context);
  };
  int meanings = 0;
  if constexpr (requires(const T& t, const double* x) { t.scalar(x); }) {
    ++meanings;
    kind.meaning = Meaning::kScalar;
    kind.domain = T::kDomain;
    kind.scalar_double = [](const void* op, const double* x) {
      return static_cast<const T*>(op)->scalar(x);
    };
    if constexpr (T::kDomain != Domain::kFloat) {
      kind.scalar_int = [](const void* op, const int64_t* x) {
        return static_cast<const T*>(op)->scalar(x);
      };
    }
    kind.formula = [](const void* op, int num_inputs) {
      Formula formula;
      std::vector<FormulaExpr> inputs;
      for (int32_t i = 0; i < num_inputs; ++i) {
        inputs.emplace_back(&formula, formula.add({FormulaOp::input, i}));
      }
      const FormulaExpr result = static_cast<const T*>(op)->scalar(inputs.data());
      formula.set_result(result.formula != nullptr
                             ? result.step
                             : formula.add({FormulaOp::constant, -1, -1, -1, result.value}));
      return formula;
    };
  }
  if constexpr (requires(const T& t, const LayoutContext& c) { t.layout(c); }) {
    ++meanings;
    kind.meaning = Meaning::kLayout;
    kind.layout = [](const void* op, const LayoutContext& context) -> std::optional<Layout> {
      return static_cast<const T*>(op)->layout(context);
    };
  }
  if constexpr (requires(const T& t, Builder& b, std::span<const ValueId> v) {
                  t.decompose(b, v);
                }) {
    ++meanings;
    kind.meaning = Meaning::kDecompose;
    kind.decompose = [](const void* op, Builder& builder, std::span<const ValueId> inputs) {
      return static_cast<const T*>(op)->decompose(builder, inputs);
    };
  }
  if constexpr (requires(const T& t, const ReferenceContext& c) { t.reference(c); }) {
    ++meanings;
    kind.meaning = Meaning::kReference;
    kind.reference = [](const void* op, const ReferenceContext& context) {
      static_cast<const T*>(op)->reference(context);
    };
  }
  if constexpr (requires { T::kIsSource; }) {
    ++meanings;
    kind.meaning = Meaning::kSource;
  }
  RLX_CHECK(meanings == 1, "op '{}' has {} meanings", kind.name, meanings);
  if constexpr (requires { T::kInPlaceInput; }) kind.in_place_input = T::kInPlaceInput;
  if constexpr (requires { T::samples(); }) kind.samples = [] { return T::samples(); };
  if constexpr (requires { T::bad_samples(); }) kind.bad_samples = [] { return T::bad_samples(); };
  return kind;
}

template <typename T>
const OpKind& op_kind() {
  static const OpKind kind = make_op_kind<T>();
  return kind;
}

}  // namespace rlx
