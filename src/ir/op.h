// The op contract. An op is a plain struct: its fields are attributes, its members say what it
// means.
//
//   struct Softmax {
//     static constexpr std::string_view kName = "softmax";
//     static constexpr Arity kArity{1, 1};
//     int64_t axis = -1;
//     template <typename F> void fields(F&& field) { field("axis", axis); }
//
//     std::vector<TensorType> infer(const InferContext& context) const;
//     std::vector<ValueId> decompose(Builder& builder, std::span<const ValueId> inputs) const;
//     static std::vector<Sample> samples();
//     static std::vector<BadSample> bad_samples();
//   };
//
// Besides `infer`, an op has exactly one meaning, given by the member that it has:
//   template <typename S> S scalar(const S* x) const;     elementwise; x[i] is input i after
//   broadcast.
//       Written with the functions of ir/formula.h; `static constexpr Domain kDomain` says on which
//       numbers it is defined.
//   std::optional<Layout> layout(const LayoutContext&) const;     a view of input 0: where its
//   elements
//       lie; nullopt when this input layout cannot be viewed so (the compiler then copies first).
//       On a contiguous input it always succeeds.
//   std::vector<ValueId> decompose(Builder&, std::span<const ValueId>) const;     built from other
//   ops. void reference(const ReferenceContext&) const;     plain loops in double.
// Optional: `static constexpr int kInPlaceInput = 0;` (output 0 must share that input's bytes:
// in-place state).
//
// One line in ops/ops.def makes the op known everywhere; OpKind below is the table of functions
// that is made from the struct, and Op is a value that pairs a kind with one set of attributes.
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.h"
#include "ir/formula.h"
#include "ir/reference_tensor.h"
#include "tensor/shape.h"

namespace rlx {

class Builder;

// A value of a graph, by index into Graph::values().
struct ValueId {
  int32_t index = -1;
  bool is_valid() const { return index >= 0; }
  auto operator<=>(const ValueId&) const = default;
};

// How many inputs an op takes, inclusive; `max` < 0: any number.
struct Arity {
  int min = 1;
  int max = 1;
};

// The element types on which a scalar formula is defined.
enum class Domain : uint8_t { kFloat, kNumber /* floats and integers */, kAny /* and bool */ };

// Reads or writes the attributes of an op, one call a field. Enumerations come as an index into the
// names that `enum_names(E)`, found by argument-dependent lookup, returns.
class FieldVisitor {
 public:
  virtual ~FieldVisitor() = default;
  virtual void operator()(std::string_view name, bool& value) = 0;
  virtual void operator()(std::string_view name, int64_t& value) = 0;
  virtual void operator()(std::string_view name, double& value) = 0;
  virtual void operator()(std::string_view name, std::string& value) = 0;
  virtual void operator()(std::string_view name, DType& value) = 0;
  virtual void operator()(std::string_view name, Dim& value) = 0;
  virtual void operator()(std::string_view name, Shape& value) = 0;
  virtual void operator()(std::string_view name, std::vector<int64_t>& value) = 0;
  virtual void operator()(std::string_view name, Formula& value) = 0;

  template <typename E>
  requires std::is_enum_v<E>
  void operator()(std::string_view name, E& value) {
    int index = static_cast<int>(value);
    enumeration(name, index, enum_names(E{}));
    value = static_cast<E>(index);
  }

 protected:
  virtual void enumeration(std::string_view name, int& index,
                           std::span<const std::string_view> names) = 0;
};

// What `infer` sees. `fail` throws kInvalidArgument with "op 'name'" in the context.
struct InferContext {
  std::string_view op_name;
  std::span<const TensorType> inputs;
  const SymbolTable& symbols;

  const TensorType& input(int i) const { return inputs[i]; }
  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    Error error(ErrorCode::kInvalidArgument, fmt::format(format, std::forward<Args>(args)...));
    error.add_context(fmt::format("op '{}'", op_name));
    throw error;
  }
};

// What `layout` sees: the input's type and where it lies, and the output's type.
struct LayoutContext {
  const TensorType& input_type;
  const Layout& input_layout;
  const TensorType& output_type;
};

// What `reference` sees. Outputs come with dtype and shape set and zero-filled storage.
struct ReferenceContext {
  std::span<const ReferenceTensor* const> inputs;
  std::span<ReferenceTensor> outputs;
  const SymbolTable& symbols;
  std::span<const int64_t> symbol_values;

  const ReferenceTensor& input(int i) const { return *inputs[i]; }
  int64_t evaluate(const Dim& dim) const { return dim.evaluate(symbols, symbol_values); }
};

class Op;

// One input of a sample: its type and how the test driver fills it.
struct SampleInput {
  TensorType type;
  double low = -2, high = 2;     // values are uniform in [low, high); integers inclusive
  std::vector<double> values{};  // when given, these exactly (row-major)
};

// A small use of an op that the test driver runs on every backend. Inputs of dtype f32 are also
// tried as f64, f16 and bf16 where `vary_dtype` is set and `infer` accepts them.
struct Sample {
  std::shared_ptr<const Op> op;
  std::vector<SampleInput> inputs;
  std::vector<Symbol> symbols{};         // declared symbols, when the types use any
  std::vector<int64_t> symbol_values{};  // their values in the run
  bool vary_dtype = true;
  double tolerance = 1e-5;  // relative to the largest magnitude of the output, for f32
};

// A use that `infer` must refuse with a message that contains `message`.
struct BadSample {
  std::shared_ptr<const Op> op;
  std::vector<TensorType> inputs;
  std::string message;
};

// What an op means, as listed at the top of this file.
enum class Meaning : uint8_t { kSource, kScalar, kLayout, kDecompose, kReference };

// The functions of one op, made from its struct by make_op_kind. The first argument is the struct.
struct OpKind {
  std::string_view name;
  Arity arity;
  Meaning meaning = Meaning::kReference;
  Domain domain = Domain::kNumber;
  int in_place_input = -1;

  std::shared_ptr<void> (*make_default)() = nullptr;
  void (*visit_fields)(void* op, FieldVisitor& visitor) = nullptr;
  // Whether the attributes are equal; null when comparing the visited fields says it.
  bool (*equals)(const void* a, const void* b) = nullptr;
  std::vector<TensorType> (*infer)(const void* op, const InferContext& context) = nullptr;
  double (*scalar_double)(const void* op, const double* inputs) = nullptr;
  int64_t (*scalar_int)(const void* op, const int64_t* inputs) = nullptr;
  Formula (*formula)(const void* op, int num_inputs) = nullptr;
  std::optional<Layout> (*layout)(const void* op, const LayoutContext& context) = nullptr;
  std::vector<ValueId> (*decompose)(const void* op, Builder& builder,
                                    std::span<const ValueId> inputs) = nullptr;
  void (*reference)(const void* op, const ReferenceContext& context) = nullptr;
  std::vector<Sample> (*samples)() = nullptr;
  std::vector<BadSample> (*bad_samples)() = nullptr;
};

// The kind of an op struct; one per process, so kinds compare by address. It is defined in
// ir/op_kind.h and made once for each op, in ops/registry.cpp, so that a file which only uses ops
// does not compile them.
template <typename T>
const OpKind& op_kind();

// An op with its attributes: an immutable value, cheap to copy.
class Op {
 public:
  template <typename T>
  requires requires { T::kName; }
  Op(T attributes)  // implicit: builder.add(Softmax{.axis = 1}, {x})
      : kind_(&op_kind<T>()), attributes_(std::make_shared<T>(std::move(attributes))) {}
  Op(const OpKind& kind, std::shared_ptr<const void> attributes)
      : kind_(&kind), attributes_(std::move(attributes)) {}

  const OpKind& kind() const { return *kind_; }
  std::string_view name() const { return kind_->name; }
  template <typename T>
  bool is() const {
    return kind_ == &op_kind<T>();
  }
  // The attributes when the op is a T, else null.
  template <typename T>
  const T* as() const {
    return is<T>() ? static_cast<const T*>(attributes_.get()) : nullptr;
  }
  const void* attributes() const { return attributes_.get(); }

  std::vector<TensorType> infer(std::span<const TensorType> inputs,
                                const SymbolTable& symbols) const;
  Formula formula(int num_inputs) const { return kind_->formula(attributes(), num_inputs); }

  // The Dim and Shape attributes in the order of the fields, flattened: what a run evaluates for
  // kernels.
  std::vector<Dim> list_dims() const;

  // Same kind, same attributes.
  bool operator==(const Op& other) const;

 private:
  const OpKind* kind_;
  std::shared_ptr<const void> attributes_;
};

// The attributes that differ from the defaults, as in the text form: `axis=1 eps=1e-05`.
std::string print_attributes(const Op& op);

// Reads one attribute from its text form; throws kInvalidArgument naming op and attribute.
void parse_attribute(const OpKind& kind, void* attributes, std::string_view name,
                     std::string_view text);

template <typename T>
std::shared_ptr<const Op> make_op(T attributes) {
  return std::make_shared<const Op>(std::move(attributes));
}

// All ops that a text may name. The ops library provides the table of all of them.
class OpRegistry {
 public:
  explicit OpRegistry(std::vector<const OpKind*> kinds) : kinds_(std::move(kinds)) {}
  const OpKind* find(std::string_view name) const;  // null when there is none
  std::span<const OpKind* const> kinds() const { return kinds_; }

 private:
  std::vector<const OpKind*> kinds_;
};

}  // namespace rlx
