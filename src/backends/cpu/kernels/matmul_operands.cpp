#include "backends/cpu/kernels/matmul_operands.h"

#include <algorithm>

#include "backends/cpu/kernels/matmul_dense.h"
#include "tensor/half.h"

namespace rlx::cpu {

void StridedIndex::append(int64_t extent, int64_t stride) {
  count_ *= extent;
  if (extent == 1) return;
  if (rank_ > 0 && strides_[rank_ - 1] == extent * stride) {
    extents_[rank_ - 1] *= extent;
    strides_[rank_ - 1] = stride;
    return;
  }
  extents_[rank_] = extent;
  strides_[rank_] = stride;
  ++rank_;
}

const std::byte* MatmulCall::x_at(int64_t batch, int64_t row) const {
  return x->data + (x_batches.offset(batch) + x_rows.offset(row)) * bytes_per_block(x->dtype);
}

const std::byte* MatmulCall::w_at(int64_t batch) const {
  return w->data +
         w_batches.offset(batch) / elements_per_block(w->dtype) * bytes_per_block(w->dtype);
}

int64_t MatmulCall::packed_column_bytes() const {
  return w_column_stride / elements_per_block(w->dtype) * bytes_per_block(w->dtype);
}

namespace {

// The stride with which a dimension of the output, counted from the last, walks an operand: 0 where
// the operand stretches.
int64_t broadcast_stride(const TensorView& view, int from_last) {
  if (from_last >= view.rank || view.last_extent(from_last) == 1) return 0;
  return view.last_stride(from_last);
}

}  // namespace

MatmulCall describe_matmul(const KernelCall& call) {
  const auto& op = call.op<Matmul>();
  MatmulCall result;
  result.x = &call.input(0);
  result.w = &call.input(1);
  result.out = &call.output(0);
  const TensorView &x = *result.x, &w = *result.w, &out = *result.out;
  const int x_row = op.transpose_a ? 0 : 1, w_column = op.transpose_b ? 1 : 0;
  result.columns = out.last_extent(0);
  result.depth = x.last_extent(1 - x_row);
  result.x_depth_stride = x.last_stride(1 - x_row);
  result.w_column_stride = w.last_stride(w_column);
  result.w_depth_stride = w.last_stride(1 - w_column);
  bool shares_w = true;
  for (int i = 2; i < out.rank; ++i) {
    if (out.last_extent(i) != 1 && broadcast_stride(w, i) != 0) shares_w = false;
  }
  for (int i = out.rank - 1; i >= 2; --i) {
    const int64_t extent = out.last_extent(i);
    if (shares_w) {
      result.x_rows.append(extent, broadcast_stride(x, i));
    } else {
      result.x_batches.append(extent, broadcast_stride(x, i));
      result.w_batches.append(extent, broadcast_stride(w, i));
    }
  }
  result.x_rows.append(out.last_extent(1), x.last_stride(x_row));
  result.rows = result.x_rows.count();
  result.batches = result.x_batches.count();
  return result;
}

MatmulCall describe_linear(const KernelCall& call) {
  const auto& op = call.op<Linear>();
  MatmulCall result;
  result.x = &call.input(0);
  result.w = &call.input(1);
  result.out = &call.output(0);
  if (op.bias) result.bias = &call.input(2);
  if (op.residual) result.residual = &call.input(op.bias ? 3 : 2);
  result.activation = op.activation;
  result.columns = result.out->last_extent(0);
  result.depth = result.x->last_extent(0);
  result.x_depth_stride = result.x->last_stride(0);
  result.w_column_stride = result.w->last_stride(1);
  result.w_depth_stride = result.w->last_stride(0);
  for (int i = result.x->rank - 1; i >= 1; --i) {
    result.x_rows.append(result.x->last_extent(i), result.x->last_stride(i));
  }
  result.rows = result.x_rows.count();
  return result;
}

MatmulCall describe_grouped_matmul(const KernelCall& call) {
  MatmulCall result;
  result.x = &call.input(0);
  result.w = &call.input(1);
  result.out = &call.output(0);
  const TensorView &x = *result.x, &w = *result.w, &ids = call.input(2);
  result.columns = w.extents[1];
  result.depth = w.extents[2];
  result.x_depth_stride = x.last_stride(0);
  result.w_column_stride = w.strides[1];
  result.w_depth_stride = w.strides[2];
  result.x_rows.append(ids.extents[0], x.strides[0]);
  result.x_rows.append(ids.extents[1], x.rank == 3 ? x.strides[1] : 0);
  result.rows = result.x_rows.count();
  return result;
}

int64_t expert_rows_bytes(int64_t rows, int64_t experts) {
  return (rows + experts + 1) * static_cast<int64_t>(sizeof(int32_t));
}

ExpertRows sort_by_expert(const KernelCall& call, int64_t experts, std::byte* scratch) {
  const TensorView& ids = call.input(2);
  const int64_t tokens = ids.extents[0], active = ids.extents[1];
  auto* starts = reinterpret_cast<int32_t*>(scratch);
  int32_t* rows = starts + experts + 1;
  const auto expert_of = [&](int64_t token, int64_t slot) -> int64_t {
    const int64_t offset = token * ids.strides[0] + slot * ids.strides[1];
    const int64_t id =
        ids.dtype == DType::kI64 ? ids.as<int64_t>()[offset] : ids.as<int32_t>()[offset];
    return id >= 0 && id < experts ? id : -1;
  };
  std::fill_n(starts, experts + 1, 0);
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t a = 0; a < active; ++a) {
      const int64_t expert = expert_of(t, a);
      if (expert < 0) {
        call.error->store(KernelError::kIndexOutOfRange, std::memory_order_relaxed);
      } else {
        ++starts[expert + 1];
      }
    }
  }
  for (int64_t e = 0; e < experts; ++e) starts[e + 1] += starts[e];
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t a = 0; a < active; ++a) {
      const int64_t expert = expert_of(t, a);
      if (expert >= 0) rows[starts[expert]++] = static_cast<int32_t>(t * active + a);
    }
  }
  // Each start has moved to its end, which is the next one's start.
  for (int64_t e = experts; e > 0; --e) starts[e] = starts[e - 1];
  starts[0] = 0;
  return {starts, rows};
}

namespace {

int64_t bound_rows(const Shape& out, const SymbolTable& symbols) {
  Shape rows = out;
  rows.pop_back();
  return count_elements(rows).upper_bound(symbols);
}

}  // namespace

MatmulBounds bound_matmul(const KernelQuery& query) {
  const Shape& x = query.inputs[0].shape;
  const Shape& out = query.outputs[0].shape;
  const bool transpose_a = query.op.as<Matmul>()->transpose_a;
  const int64_t rows = bound_rows(out, query.symbols);
  return {rows, rows, out.back().upper_bound(query.symbols),
          x[x.size() - (transpose_a ? 2 : 1)].upper_bound(query.symbols)};
}

MatmulBounds bound_linear(const KernelQuery& query) {
  const Shape& out = query.outputs[0].shape;
  const int64_t rows = bound_rows(out, query.symbols);
  return {rows, rows, out.back().upper_bound(query.symbols),
          query.inputs[0].shape.back().upper_bound(query.symbols)};
}

MatmulBounds bound_grouped_matmul(const KernelQuery& query) {
  MatmulBounds bounds = bound_linear(query);
  const Shape& x = query.inputs[0].shape;
  if (x.size() == 2) bounds.x_rows = x[0].upper_bound(query.symbols);
  bounds.experts = query.inputs[1].shape[0].upper_bound(query.symbols);
  return bounds;
}

void convert_to_f32(const std::byte* from, DType dtype, int64_t stride, int64_t count, float* to) {
  if (dtype == DType::kF64) {
    const auto* values = reinterpret_cast<const double*>(from);
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(values[i * stride]);
    return;
  }
  if (stride == 1) {
    dense_kernels().widen(from, dtype, count, to);
    return;
  }
  if (dtype == DType::kF32) {
    const auto* values = reinterpret_cast<const float*>(from);
    for (int64_t i = 0; i < count; ++i) to[i] = values[i * stride];
  } else {
    const auto* values = reinterpret_cast<const uint16_t*>(from);
    const auto widen = dtype == DType::kF16 ? f16_to_f32 : bf16_to_f32;
    for (int64_t i = 0; i < count; ++i) to[i] = widen(values[i * stride]);
  }
}

void store_tile(const MatmulCall& call, int64_t batch, const int32_t* row_of, int64_t row_begin,
                int64_t rows, int64_t column_begin, int64_t columns, float* sums,
                int64_t sum_stride) {
  const DenseKernels& kernels = dense_kernels();
  float bias[kMaxTileColumns], residual[kMaxTileColumns];
  const float* bias_row = nullptr;
  if (call.bias != nullptr) {
    const TensorView& view = *call.bias;
    const int64_t stride = view.last_stride(0);
    convert_to_f32(view.data + column_begin * stride * bytes_per_block(view.dtype), view.dtype,
                   stride, columns, bias);
    bias_row = bias;
  }
  StridedIndex residual_rows;
  if (call.residual != nullptr) {
    for (int i = call.residual->rank - 1; i >= 1; --i) {
      residual_rows.append(call.residual->last_extent(i), call.residual->last_stride(i));
    }
  }
  const int64_t out_bytes = bytes_per_block(call.out->dtype);
  const bool finishes =
      bias_row != nullptr || call.residual != nullptr || call.activation != Activation::kNone;
  const auto find_place = [&](int64_t r) {
    const int64_t row = row_of != nullptr ? row_of[r] : row_begin + r;
    return call.out->data + ((batch * call.rows + row) * call.columns + column_begin) * out_bytes;
  };
  // Rows of a tile lie pages apart, which no hardware prefetching follows: waiting for each line
  // took 6 % of a product of 512 rows.
  constexpr int64_t kAhead = 16;
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t row = row_of != nullptr ? row_of[r] : row_begin + r;
    float* sum = sums + r * sum_stride;
    if (r + kAhead < rows) __builtin_prefetch(find_place(r + kAhead), 1);
    if (finishes) {
      const float* residual_row = nullptr;
      if (call.residual != nullptr) {
        const TensorView& view = *call.residual;
        const int64_t stride = view.last_stride(0);
        convert_to_f32(view.data + (residual_rows.offset(row) + column_begin * stride) *
                                       bytes_per_block(view.dtype),
                       view.dtype, stride, columns, residual);
        residual_row = residual;
      }
      kernels.finish(sum, bias_row, residual_row, static_cast<int>(call.activation), columns);
    }
    kernels.narrow(sum, columns, call.out->dtype, find_place(r));
  }
}

}  // namespace rlx::cpu
