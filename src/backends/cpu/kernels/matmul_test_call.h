// Calls a kernel as a program would, from a test: operands in vectors, scratch of exactly the size
// that the kernel asks for, filled with NaN patterns and followed by a guard.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <span>
#include <string_view>
#include <vector>

#include "backends/cpu/kernel.h"
#include "tensor/half.h"
#include "tensor/packed.h"
#include "tensor/storage.h"

namespace rlx::cpu {

// A tensor with storage of its own, which ends right after the last element.
struct TestTensor {
  TensorView view;
  std::vector<std::byte> bytes;
};

inline TensorView make_view(DType dtype, std::span<const int64_t> extents) {
  TensorView view;
  view.dtype = dtype;
  view.rank = static_cast<int>(extents.size());
  int64_t stride = 1;
  for (int i = view.rank - 1; i >= 0; --i) {
    view.extents[i] = extents[i];
    view.strides[i] = stride;
    stride *= extents[i];
  }
  return view;
}

inline TestTensor make_tensor(DType dtype, std::vector<int64_t> extents) {
  TestTensor tensor;
  tensor.view = make_view(dtype, extents);
  tensor.bytes.resize(static_cast<size_t>(storage_bytes(dtype, tensor.view.num_elements())));
  tensor.view.data = tensor.bytes.data();
  return tensor;
}

// f32, f16, bf16 and f64 from doubles.
inline TestTensor make_tensor(DType dtype, std::vector<int64_t> extents,
                              std::span<const double> values) {
  TestTensor tensor = make_tensor(dtype, std::move(extents));
  for (size_t i = 0; i < values.size(); ++i) {
    const auto value = static_cast<float>(values[i]);
    switch (dtype) {
      case DType::kF64:
        tensor.view.as<double>()[i] = values[i];
        break;
      case DType::kF32:
        tensor.view.as<float>()[i] = value;
        break;
      case DType::kF16:
        tensor.view.as<uint16_t>()[i] = f32_to_f16(value);
        break;
      default:
        tensor.view.as<uint16_t>()[i] = f32_to_bf16(value);
    }
  }
  return tensor;
}

// The elements as doubles, row-major by the view's strides.
inline std::vector<double> to_doubles(const TensorView& view) {
  std::vector<double> values;
  const int64_t count = view.num_elements();
  if (is_packed(view.dtype)) {
    std::vector<float> decoded(static_cast<size_t>(count));
    decode_row(view.dtype, view.data, count, decoded.data());
    return {decoded.begin(), decoded.end()};
  }
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i, offset = 0;
    for (int axis = view.rank - 1; axis >= 0; --axis) {
      offset += rest % view.extents[axis] * view.strides[axis];
      rest /= view.extents[axis];
    }
    switch (view.dtype) {
      case DType::kF64:
        values.push_back(view.as<double>()[offset]);
        break;
      case DType::kF32:
        values.push_back(view.as<float>()[offset]);
        break;
      case DType::kF16:
        values.push_back(f16_to_f32(view.as<uint16_t>()[offset]));
        break;
      default:
        values.push_back(bf16_to_f32(view.as<uint16_t>()[offset]));
    }
  }
  return values;
}

inline std::vector<double> random_values(std::mt19937& random, int64_t count) {
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<double> values(static_cast<size_t>(count));
  for (double& value : values) value = static_cast<float>(uniform(random));
  return values;
}

inline TestTensor random_tensor(std::mt19937& random, DType dtype, std::vector<int64_t> extents) {
  int64_t count = 1;
  for (const int64_t extent : extents) count *= extent;
  return make_tensor(dtype, std::move(extents), random_values(random, count));
}

// Uninitialised bytes (filled with NaN patterns) aligned to 64.
class AlignedBytes {
 public:
  explicit AlignedBytes(int64_t size) : storage_(static_cast<size_t>(size + 64), std::byte{0xff}) {}
  std::byte* data() {
    return storage_.data() + (-reinterpret_cast<uintptr_t>(storage_.data()) & 63);
  }

 private:
  std::vector<std::byte> storage_;
};

// The first kernel of the list that accepts the operands; null when none does.
struct TestOperands {
  std::vector<TensorType> types;
  std::vector<Layout> layouts;
};

inline TestOperands describe(std::span<const TensorView> views) {
  TestOperands operands;
  for (const TensorView& view : views) {
    TensorType type{view.dtype, {}};
    Layout layout;
    for (int i = 0; i < view.rank; ++i) {
      type.shape.push_back(view.extents[i]);
      layout.strides.push_back(view.strides[i]);
    }
    operands.types.push_back(type);
    operands.layouts.push_back(layout);
  }
  return operands;
}

// Runs the first kernel of `kernels` that accepts; `out` must have its type and storage. With
// `expected_kernel`, checks that it is the one. Returns the error that the run reports.
inline KernelError run_kernel(std::span<const Kernel> kernels, const Op& op,
                              std::vector<TensorView> inputs, TestTensor& out, int threads,
                              std::string_view expected_kernel = "", bool quantize = true) {
  const TestOperands in = describe(inputs);
  const TensorView out_views[] = {out.view};
  const TestOperands outs = describe(out_views);
  const SymbolTable symbols;
  const KernelQuery query{op, in.types, in.layouts, outs.types, symbols, threads, quantize};
  for (const Kernel& kernel : kernels) {
    if (kernel.op != op.name() || !kernel.reject(query).empty()) continue;
    if (!expected_kernel.empty()) {
      EXPECT_EQ(kernel.name, expected_kernel);
    }
    const int64_t size = kernel.scratch_bytes != nullptr ? kernel.scratch_bytes(query) : 0;
    constexpr int64_t kGuard = 256;
    AlignedBytes storage(size + kGuard);
    std::byte* scratch = storage.data();
    std::fill(out.bytes.begin(), out.bytes.end(), std::byte{0xff});
    std::vector<const TensorView*> input_pointers;
    for (const TensorView& view : inputs) input_pointers.push_back(&view);
    const TensorView* outputs[] = {&out.view};
    std::atomic<KernelError> error{KernelError::kNone};
    ThreadPool pool(threads);
    pool.run([&](int thread) {
      kernel.run({.attributes = op.attributes(),
                  .prepared = nullptr,
                  .inputs = input_pointers,
                  .outputs = outputs,
                  .dims = {},
                  .scratch = scratch,
                  .thread = thread,
                  .num_threads = threads,
                  .pool = &pool,
                  .error = &error});
    });
    for (int64_t i = size; i < size + kGuard; ++i) {
      if (scratch[i] != std::byte{0xff}) {
        ADD_FAILURE() << kernel.name << " writes beyond its scratch of " << size << " bytes";
        break;
      }
    }
    return error.load();
  }
  ADD_FAILURE() << "no kernel of '" << op.name() << "' accepts";
  return KernelError::kNone;
}

// Checks `out` against doubles, relative to the largest magnitude expected.
inline void expect_close(const TensorView& out, std::span<const double> expected,
                         double tolerance) {
  const std::vector<double> values = to_doubles(out);
  ASSERT_EQ(values.size(), expected.size());
  double largest = 1e-3;
  for (const double value : expected) largest = std::max(largest, std::abs(value));
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_NEAR(values[i], expected[i], tolerance * largest) << "at element " << i;
  }
}

}  // namespace rlx::cpu
