#include "backends/cpu/kernels/matmul_plain.h"

#include <cmath>
#include <type_traits>

#include "backends/cpu/kernels/matmul_operands.h"
#include "tensor/half.h"
#include "tensor/packed.h"

namespace rlx::cpu {
namespace {

// Scratch of a thread for f64: one column of w as f64, and, when w is packed, as f32 before that.
int64_t column_bytes(int64_t depth) { return (depth * 12 + 63) & ~int64_t{63}; }

// The element at `index` of any float dtype.
double load(const std::byte* from, DType dtype, int64_t index) {
  switch (dtype) {
    case DType::kF64:
      return reinterpret_cast<const double*>(from)[index];
    case DType::kF32:
      return reinterpret_cast<const float*>(from)[index];
    case DType::kF16:
      return f16_to_f32(reinterpret_cast<const uint16_t*>(from)[index]);
    default:
      return bf16_to_f32(reinterpret_cast<const uint16_t*>(from)[index]);
  }
}

double load(const TensorView& view, int64_t index) { return load(view.data, view.dtype, index); }

// Column c of w, whose first element is at `w`.
const double* decode_column(const MatmulCall& matmul, const std::byte* w, int64_t c,
                            std::byte* scratch) {
  auto* column = reinterpret_cast<double*>(scratch);
  const DType dtype = matmul.w->dtype;
  const int64_t depth = matmul.depth;
  if (is_packed(dtype)) {
    auto* decoded = reinterpret_cast<float*>(scratch + depth * 8);
    decode_row(dtype, w + c * matmul.packed_column_bytes(), depth, decoded);
    for (int64_t i = 0; i < depth; ++i) column[i] = decoded[i];
    return column;
  }
  const std::byte* from = w + c * matmul.w_column_stride * bytes_per_block(dtype);
  for (int64_t i = 0; i < depth; ++i) column[i] = load(from, dtype, i * matmul.w_depth_stride);
  return column;
}

double activate(Activation activation, double x) {
  switch (activation) {
    case Activation::kNone:
      return x;
    case Activation::kRelu:
      return x < 0 ? 0 : x;
    case Activation::kGelu:
      return 0.5 * x * (1 + std::erf(x * M_SQRT1_2));
    case Activation::kGeluTanh:
      return 0.5 * x * (1 + std::tanh(std::sqrt(M_2_PI) * (x + 0.044715 * x * x * x)));
    case Activation::kSilu:
      return x / (1 + std::exp(-x));
    case Activation::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case Activation::kTanh:
      return std::tanh(x);
  }
  return x;
}

// Rows [0, rows), or those listed, times column c.
void multiply_column(const MatmulCall& matmul, int64_t batch, const std::byte* w,
                     const int32_t* row_of, int64_t rows, int64_t c, std::byte* scratch) {
  const double* column = decode_column(matmul, w, c, scratch);
  StridedIndex residual_rows;
  if (matmul.residual != nullptr) {
    for (int i = matmul.residual->rank - 1; i >= 1; --i) {
      residual_rows.append(matmul.residual->last_extent(i), matmul.residual->last_stride(i));
    }
  }
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t row = row_of != nullptr ? row_of[r] : r;
    const auto* x = reinterpret_cast<const double*>(matmul.x_at(batch, row));
    double sum = 0;
    for (int64_t i = 0; i < matmul.depth; ++i) sum += x[i * matmul.x_depth_stride] * column[i];
    if (matmul.bias != nullptr) {
      sum += load(*matmul.bias, c * matmul.bias->last_stride(0));
    }
    sum = activate(matmul.activation, sum);
    if (matmul.residual != nullptr) {
      sum +=
          load(*matmul.residual, residual_rows.offset(row) + c * matmul.residual->last_stride(0));
    }
    matmul.out->as<double>()[(batch * matmul.rows + row) * matmul.columns + c] = sum;
  }
}

void multiply_f64(const KernelCall& call, const MatmulCall& matmul) {
  std::byte* scratch = call.scratch + call.thread * column_bytes(matmul.depth);
  const Range range = split_range(matmul.batches * matmul.columns, call.thread, call.num_threads);
  for (int64_t unit = range.begin; unit < range.end; ++unit) {
    const int64_t batch = unit / matmul.columns;
    multiply_column(matmul, batch, matmul.w_at(batch), nullptr, matmul.rows, unit % matmul.columns,
                    scratch);
  }
}

template <typename T>
void multiply_integers(const KernelCall& call, const MatmulCall& matmul) {
  using Unsigned = std::make_unsigned_t<T>;
  const Range range = split_range(matmul.batches * matmul.rows, call.thread, call.num_threads);
  for (int64_t unit = range.begin; unit < range.end; ++unit) {
    const int64_t batch = unit / matmul.rows;
    const auto* x = reinterpret_cast<const T*>(matmul.x_at(batch, unit % matmul.rows));
    const auto* w = reinterpret_cast<const T*>(matmul.w_at(batch));
    T* out = matmul.out->as<T>() + unit * matmul.columns;
    for (int64_t c = 0; c < matmul.columns; ++c) {
      uint64_t sum = 0;
      for (int64_t i = 0; i < matmul.depth; ++i) {
        sum += static_cast<uint64_t>(x[i * matmul.x_depth_stride]) *
               static_cast<uint64_t>(w[c * matmul.w_column_stride + i * matmul.w_depth_stride]);
      }
      out[c] = static_cast<T>(static_cast<Unsigned>(sum));
    }
  }
}

void run_matmul(const KernelCall& call) {
  const MatmulCall matmul = describe_matmul(call);
  switch (matmul.x->dtype) {
    case DType::kF64:
      return multiply_f64(call, matmul);
    case DType::kI64:
      return multiply_integers<int64_t>(call, matmul);
    case DType::kI32:
      return multiply_integers<int32_t>(call, matmul);
    case DType::kI16:
      return multiply_integers<int16_t>(call, matmul);
    case DType::kI8:
      return multiply_integers<int8_t>(call, matmul);
    case DType::kU64:
      return multiply_integers<uint64_t>(call, matmul);
    case DType::kU32:
      return multiply_integers<uint32_t>(call, matmul);
    case DType::kU16:
      return multiply_integers<uint16_t>(call, matmul);
    default:
      return multiply_integers<uint8_t>(call, matmul);
  }
}

void run_linear(const KernelCall& call) { multiply_f64(call, describe_linear(call)); }

void run_grouped_matmul(const KernelCall& call) {
  const MatmulCall matmul = describe_grouped_matmul(call);
  const TensorView& w = *matmul.w;
  const int64_t experts = w.extents[0];
  std::byte* scratch =
      call.scratch + call.thread * (column_bytes(matmul.depth) +
                                    expert_rows_bytes(matmul.rows, experts) / 64 * 64 + 64);
  const ExpertRows sorted = sort_by_expert(call, experts, scratch + column_bytes(matmul.depth));
  const int64_t expert_bytes =
      w.strides[0] / elements_per_block(w.dtype) * bytes_per_block(w.dtype);
  const Range columns = split_range(matmul.columns, call.thread, call.num_threads);
  for (int64_t e = 0; e < experts; ++e) {
    const int32_t begin = sorted.starts[e];
    const int64_t rows = sorted.starts[e + 1] - begin;
    if (rows == 0) continue;
    for (int64_t c = columns.begin; c < columns.end; ++c) {
      multiply_column(matmul, 0, w.data + e * expert_bytes, sorted.rows + begin, rows, c, scratch);
    }
  }
}

bool is_f64_product(const KernelQuery& query) {
  const DType w = query.inputs[1].dtype;
  return query.inputs[0].dtype == DType::kF64 && (is_float(w) || is_packed(w));
}

std::string reject_matmul(const KernelQuery& query) {
  const DType x = query.inputs[0].dtype, w = query.inputs[1].dtype;
  if (is_f64_product(query) || (is_integer(x) && x == w)) return "";
  return "the inputs are neither f64 and a float nor two integers of one dtype";
}

std::string reject_f64(const KernelQuery& query) {
  return is_f64_product(query) ? "" : "the inputs are not f64 and a float";
}

}  // namespace

std::span<const Kernel> plain_matmul_kernels() {
  static const Kernel kKernels[] = {
      {.name = "matmul.plain",
       .op = "matmul",
       .reject = reject_matmul,
       .scratch_bytes =
           [](const KernelQuery& query) {
             return query.max_threads * column_bytes(bound_matmul(query).depth);
           },
       .run = run_matmul},
      {.name = "linear.plain",
       .op = "linear",
       .reject = reject_f64,
       .scratch_bytes =
           [](const KernelQuery& query) {
             return query.max_threads * column_bytes(bound_linear(query).depth);
           },
       .run = run_linear},
      {.name = "grouped_matmul.plain",
       .op = "grouped_matmul",
       .reject = reject_f64,
       .scratch_bytes =
           [](const KernelQuery& query) {
             const MatmulBounds bounds = bound_grouped_matmul(query);
             return query.max_threads *
                    (column_bytes(bounds.depth) +
                     expert_rows_bytes(bounds.rows, bounds.experts) / 64 * 64 + 64);
           },
       .run = run_grouped_matmul},
  };
  return kKernels;
}

}  // namespace rlx::cpu
