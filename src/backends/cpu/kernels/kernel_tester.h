// Test support: runs one kernel by hand on tensors with chosen strides, as a program would, and
// checks what every kernel owes: outputs and scratch start as poison, canaries around both stay
// intact, and the bytes do not depend on the number of threads.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "backends/cpu/kernel.h"
#include "backends/cpu/kernels/kernels.h"
#include "base/thread_pool.h"
#include "ir/op.h"
#include "ir/reference_tensor.h"
#include "ops/evaluate.h"
#include "tensor/packed.h"

namespace rlx::cpu::testing {

// How an operand lies in memory.
enum class Placement {
  kContiguous,
  kPaddedRows,    // unit inner stride, gaps between rows
  kSpacedInner,   // inner stride 2
  kReversedAxes,  // the first axis is the innermost in memory
};
inline constexpr Placement kPlacements[] = {Placement::kContiguous, Placement::kPaddedRows,
                                            Placement::kSpacedInner, Placement::kReversedAxes};

inline int64_t packed_bytes(DType dtype, int64_t elements) {
  return elements / elements_per_block(dtype) * bytes_per_block(dtype);
}

// A tensor in memory of its own.
struct Operand {
  DType dtype = DType::kF32;
  std::vector<int64_t> extents, strides;
  std::vector<std::byte> storage;

  TensorView view() {
    TensorView view;
    view.data = storage.data();
    view.dtype = dtype;
    view.rank = static_cast<int>(extents.size());
    for (int i = 0; i < view.rank; ++i) {
      view.extents[i] = extents[i];
      view.strides[i] = strides[i];
    }
    return view;
  }
};

// Calls visit(row_major_index, offset) for every element.
template <typename Visit>
void for_each_element(const std::vector<int64_t>& extents, const std::vector<int64_t>& strides,
                      Visit&& visit) {
  int64_t total = 1;
  for (int64_t extent : extents) total *= extent;
  for (int64_t index = 0; index < total; ++index) {
    int64_t rest = index, offset = 0;
    for (int axis = static_cast<int>(extents.size()) - 1; axis >= 0; --axis) {
      offset += rest % extents[axis] * strides[axis];
      rest /= extents[axis];
    }
    visit(index, offset);
  }
}

inline std::vector<int64_t> make_strides(const std::vector<int64_t>& extents, Placement placement) {
  const int rank = static_cast<int>(extents.size());
  std::vector<int64_t> strides(rank);
  int64_t step = placement == Placement::kSpacedInner ? 2 : 1;
  for (int i = 0; i < rank; ++i) {
    const int axis = placement == Placement::kReversedAxes ? i : rank - 1 - i;
    strides[axis] = step;
    step *= std::max<int64_t>(extents[axis], 1);
    if (placement == Placement::kPaddedRows && i == 0) step += 3;
  }
  return strides;
}

// A packed tensor is given by its bytes and stays contiguous.
inline Operand make_operand(DType dtype, const std::vector<int64_t>& extents,
                            const std::vector<std::byte>& bytes,
                            Placement placement = Placement::kContiguous) {
  Operand operand{dtype, extents, make_strides(extents, placement), {}};
  if (is_packed(dtype)) {
    operand.strides = make_strides(extents, Placement::kContiguous);
    operand.storage = bytes;
    return operand;
  }
  const int64_t size = bytes_per_block(dtype);
  int64_t last = 0;
  bool is_empty = false;
  for (size_t i = 0; i < extents.size(); ++i) {
    last += (extents[i] - 1) * operand.strides[i];
    is_empty |= extents[i] == 0;
  }
  // An unread gap holds 0xff: NaN as a float, so that a read shows.
  operand.storage.assign(is_empty ? 0 : (last + 1) * size, std::byte{0xff});
  for_each_element(extents, operand.strides, [&](int64_t index, int64_t offset) {
    std::memcpy(operand.storage.data() + offset * size, bytes.data() + index * size, size);
  });
  return operand;
}

// A tensor with its element bytes (row-major) and what the reference sees of them.
struct Filled {
  std::vector<std::byte> bytes;
  ReferenceTensor reference;
};

// Rounds the values to the dtype. q8_0 and q4_0 are encoded.
inline Filled fill(DType dtype, const std::vector<int64_t>& extents,
                   const std::vector<double>& values) {
  Filled filled;
  if (is_packed(dtype)) {
    std::vector<float> floats(values.begin(), values.end());
    filled.bytes.resize(packed_bytes(dtype, static_cast<int64_t>(values.size())));
    encode_row(dtype, floats.data(), static_cast<int64_t>(floats.size()), filled.bytes.data());
    decode_row(dtype, filled.bytes.data(), static_cast<int64_t>(floats.size()), floats.data());
    filled.reference = make_reference_tensor(dtype, extents);
    for (size_t i = 0; i < floats.size(); ++i) filled.reference.floats[i] = floats[i];
    return filled;
  }
  ReferenceTensor tensor = make_reference_tensor(dtype, extents);
  for (size_t i = 0; i < values.size(); ++i) tensor.set(static_cast<int64_t>(i), values[i]);
  filled.bytes = to_bytes(tensor);
  filled.reference = reference_from_bytes(dtype, extents, filled.bytes);
  return filled;
}

inline std::vector<double> random_values(std::mt19937& random, DType dtype, int64_t count,
                                         double low, double high) {
  std::vector<double> values(count);
  std::uniform_real_distribution<double> uniform(low, high);
  for (double& value : values) {
    value = uniform(random);
    if (!is_float(dtype) && !is_packed(dtype)) value = std::floor(value + 0.5);
    if (dtype == DType::kBool) value = random() % 2;
    if (value < 0 && dtype >= DType::kU64 && dtype <= DType::kU8) value = -value;
  }
  return values;
}

inline int64_t count(const std::vector<int64_t>& extents) {
  int64_t product = 1;
  for (int64_t extent : extents) product *= extent;
  return product;
}

// One use of a kernel. The declared types may be symbolic.
struct KernelUse {
  Op op;
  std::vector<TensorType> types;
  std::vector<Operand> inputs;
  SymbolTable symbols{};
  std::vector<int64_t> symbol_values{};
  bool aliases_input = false;  // output 0 shares the bytes of input 0
};

struct KernelResult {
  KernelError error = KernelError::kNone;
  std::vector<DType> dtypes;
  std::vector<std::vector<int64_t>> extents;
  std::vector<std::vector<std::byte>> outputs;  // row-major

  ReferenceTensor reference(int i) const {
    return reference_from_bytes(dtypes[i], extents[i], outputs[i]);
  }
};

// Memory with canaries before and after.
class Guarded {
 public:
  explicit Guarded(int64_t bytes) : bytes_(bytes), storage_(bytes + 3 * kGuard, std::byte{0xa5}) {}
  std::byte* data() {
    const auto address = reinterpret_cast<uintptr_t>(storage_.data()) + kGuard;
    return reinterpret_cast<std::byte*>((address + kGuard - 1) / kGuard * kGuard);
  }
  bool is_intact() {
    for (std::byte* p = storage_.data(); p < storage_.data() + storage_.size(); ++p) {
      if ((p < data() || p >= data() + bytes_) && *p != std::byte{0xa5}) return false;
    }
    return true;
  }

 private:
  static constexpr int64_t kGuard = 64;
  int64_t bytes_;
  std::vector<std::byte> storage_;
};

inline const Kernel* find_kernel(std::span<const Kernel> kernels, const KernelQuery& query,
                                 std::string* reason = nullptr) {
  for (const Kernel& kernel : kernels) {
    if (kernel.op != query.op.kind().name) continue;
    const std::string why = kernel.reject(query);
    if (why.empty()) return &kernel;
    if (reason != nullptr) *reason += std::string(kernel.name) + ": " + why + "; ";
  }
  return nullptr;
}

inline Layout layout_of(const TensorType& type, const Operand& operand) {
  if (operand.strides == make_strides(operand.extents, Placement::kContiguous)) {
    return make_contiguous_layout(type.shape);
  }
  Layout layout;
  for (int64_t stride : operand.strides) layout.strides.emplace_back(stride);
  return layout;
}

// Runs the first kernel of the list that accepts, on `num_threads` threads. Fails the test when
// none does.
inline KernelResult run_once(std::span<const Kernel> kernels, KernelUse use, int num_threads) {
  KernelResult result;
  const std::vector<TensorType> output_types = use.op.infer(use.types, use.symbols);
  std::vector<Layout> layouts;
  for (size_t i = 0; i < use.inputs.size(); ++i) {
    layouts.push_back(layout_of(use.types[i], use.inputs[i]));
  }
  const KernelQuery query{use.op,      use.types,   layouts, output_types,
                          use.symbols, num_threads, false};
  std::string reason;
  const Kernel* kernel = find_kernel(kernels, query, &reason);
  if (kernel == nullptr) throw_error(ErrorCode::kUnsupported, "no kernel: {}", reason);
  std::vector<TensorView> views;
  for (Operand& input : use.inputs) views.push_back(input.view());
  std::vector<const TensorView*> inputs, outputs;
  for (TensorView& view : views) inputs.push_back(&view);

  std::vector<std::unique_ptr<Guarded>> memory;
  std::vector<TensorView> output_views(output_types.size());
  for (size_t i = 0; i < output_types.size(); ++i) {
    TensorView& view = output_views[i];
    view.dtype = output_types[i].dtype;
    view.rank = output_types[i].rank();
    std::vector<int64_t> extents;
    for (const Dim& dim : output_types[i].shape) {
      extents.push_back(dim.evaluate(use.symbols, use.symbol_values));
    }
    const std::vector<int64_t> strides = make_strides(extents, Placement::kContiguous);
    for (int axis = 0; axis < view.rank; ++axis) {
      view.extents[axis] = extents[axis];
      view.strides[axis] = strides[axis];
    }
    memory.push_back(std::make_unique<Guarded>(count(extents) * bytes_per_block(view.dtype)));
    view.data = memory.back()->data();
    const int in_place = use.op.kind().in_place_input;
    if (i == 0 && in_place >= 0) {
      view.data = views[in_place].data;
      view.strides = views[in_place].strides;
    } else if (i == 0 && use.aliases_input) {
      EXPECT_TRUE(kernel->may_alias_inputs & 1);
      view.data = views[0].data;
    }
    result.extents.push_back(extents);
    result.dtypes.push_back(view.dtype);
  }
  for (TensorView& view : output_views) outputs.push_back(&view);

  Guarded scratch(kernel->scratch_bytes != nullptr ? kernel->scratch_bytes(query) : 0);
  const std::shared_ptr<const void> prepared =
      kernel->prepare != nullptr ? kernel->prepare(query) : nullptr;
  std::vector<int64_t> dims;
  for (const Dim& dim : use.op.list_dims()) {
    dims.push_back(dim.evaluate(use.symbols, use.symbol_values));
  }
  std::atomic<KernelError> error{KernelError::kNone};
  ThreadPool pool(num_threads);
  pool.run([&](int thread) {
    KernelCall call{};
    call.attributes = use.op.attributes();
    call.prepared = prepared.get();
    call.inputs = inputs;
    call.outputs = outputs;
    call.dims = dims;
    call.scratch = scratch.data();
    call.thread = thread;
    call.num_threads = num_threads;
    call.pool = &pool;
    call.error = &error;
    kernel->run(call);
  });
  result.error = error.load();
  EXPECT_TRUE(scratch.is_intact()) << kernel->name;
  for (size_t i = 0; i < output_views.size(); ++i) {
    EXPECT_TRUE(memory[i]->is_intact()) << kernel->name;
    const TensorView& view = output_views[i];
    const int64_t size = bytes_per_block(view.dtype);
    std::vector<std::byte> bytes(view.num_elements() * size);
    const std::vector<int64_t> strides(view.strides.begin(), view.strides.begin() + view.rank);
    for_each_element(result.extents[i], strides, [&](int64_t index, int64_t offset) {
      std::memcpy(bytes.data() + index * size, view.data + offset * size, size);
    });
    result.outputs.push_back(std::move(bytes));
  }
  return result;
}

// Runs on 1, 2 and 3 threads and expects the same bytes.
inline KernelResult run_kernel(std::span<const Kernel> kernels, const KernelUse& use) {
  KernelResult result = run_once(kernels, use, 1);
  for (int num_threads : {2, 3}) {
    const KernelResult other = run_once(kernels, use, num_threads);
    EXPECT_EQ(other.error, result.error);
    if (result.error == KernelError::kNone) {
      EXPECT_EQ(other.outputs, result.outputs) << num_threads << " threads";
    }
  }
  return result;
}

// Compares with the oracle's value: floats within `tolerance` of the largest finite magnitude (or
// of the element's own, where that is more), infinities and NaN in their places, integers exactly.
inline void expect_near(const ReferenceTensor& actual, const ReferenceTensor& expected,
                        double tolerance) {
  ASSERT_EQ(actual.shape, expected.shape);
  if (!actual.holds_floats()) {
    EXPECT_EQ(actual.integers, expected.integers);
    return;
  }
  double largest = 0;
  for (int64_t i = 0; i < expected.num_elements(); ++i) {
    if (std::isfinite(expected.at(i))) largest = std::max(largest, std::abs(expected.at(i)));
  }
  int reported = 0;
  for (int64_t i = 0; i < expected.num_elements() && reported < 5; ++i) {
    const double a = actual.at(i), e = round_float(actual.dtype, expected.at(i));
    const bool is_same = a == e || (std::isnan(a) && std::isnan(e));
    if (is_same || std::abs(a - e) <= tolerance * largest) continue;
    ADD_FAILURE() << "element " << i << " is " << a << ", expected " << e;
    ++reported;
  }
}

// What one rounding to the dtype costs, relative.
inline double rounding_of(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return 1e-13;
    case DType::kF16:
      return 1.0 / 1024;
    case DType::kBF16:
      return 1.0 / 128;
    default:
      return 1e-6;
  }
}

// Runs the op on random values of constant types and compares with the oracle.
struct RandomUse {
  Op op;
  std::vector<TensorType> types;
  std::vector<Placement> placements{};  // contiguous where absent
  double low = -2, high = 2;
  double tolerance = 1e-6;
  bool aliases_input = false;
};

inline void expect_reference(std::span<const Kernel> kernels, const RandomUse& random_use,
                             std::mt19937& random) {
  KernelUse use{.op = random_use.op, .types = random_use.types};
  use.aliases_input = random_use.aliases_input;
  std::vector<ReferenceTensor> references;
  std::vector<const ReferenceTensor*> pointers;
  std::string trace(use.op.kind().name);
  for (size_t i = 0; i < use.types.size(); ++i) {
    trace += " " + to_string(use.types[i]);
    std::vector<int64_t> extents;
    for (const Dim& dim : use.types[i].shape) extents.push_back(dim.constant());
    const DType dtype = use.types[i].dtype;
    const Filled filled =
        fill(dtype, extents,
             random_values(random, dtype, count(extents), random_use.low, random_use.high));
    references.push_back(filled.reference);
    use.inputs.push_back(make_operand(
        dtype, extents, filled.bytes,
        i < random_use.placements.size() ? random_use.placements[i] : Placement::kContiguous));
  }
  SCOPED_TRACE(trace + " " + print_attributes(use.op));
  for (const ReferenceTensor& reference : references) pointers.push_back(&reference);
  const std::vector<ReferenceTensor> expected = evaluate(use.op, pointers, use.types, {}, {});
  const KernelResult result = run_kernel(kernels, use);
  ASSERT_EQ(result.error, KernelError::kNone);
  ASSERT_EQ(result.outputs.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const ReferenceTensor actual = result.reference(static_cast<int>(i));
    const double rounding = actual.holds_floats() ? rounding_of(actual.dtype) : 0;
    expect_near(actual, expected[i], std::max(random_use.tolerance, rounding));
  }
}

inline Placement random_placement(std::mt19937& random) { return kPlacements[random() % 4]; }

}  // namespace rlx::cpu::testing
