#include "ops/matmul.h"

#include "ir/graph.h"
#include "ops/elementwise.h"
#include "ops/infer.h"
#include "ops/reference_loops.h"

namespace rlx {
namespace {

Shape leading_axes(const Shape& shape) { return {shape.begin(), shape.end() - 2}; }

// c[m, n] = sum over k of a[m, k] * b[k, n] for one pair of matrices; the strides say how each is
// read.
struct MatrixStrides {
  int64_t row = 0, column = 0;
};

template <typename T>
void multiply(const T* a, MatrixStrides as, const T* b, MatrixStrides bs, T* c, int64_t m,
              int64_t n, int64_t k) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      T total = 0;
      for (int64_t l = 0; l < k; ++l) {
        total =
            fn::add(total, fn::mul(a[i * as.row + l * as.column], b[l * bs.row + j * bs.column]));
      }
      c[i * n + j] = total;
    }
  }
}

int64_t dot_offset(std::span<const int64_t> index, std::span<const int64_t> strides) {
  int64_t offset = 0;
  for (size_t d = 0; d < index.size(); ++d) offset += index[d] * strides[d];
  return offset;
}

}  // namespace

std::vector<TensorType> Matmul::infer(const InferContext& context) const {
  const TensorType& a = context.input(0);
  const TensorType& b = context.input(1);
  check_rank_at_least(context, 0, 2);
  check_rank_at_least(context, 1, 2);
  check_number(context, 0);
  if (is_packed(b.dtype)) {
    if (!transpose_b) {
      context.fail("Input 1 is {}, and a packed matrix needs transpose_b=true.", to_string(b));
    }
    check_float(context, 0);
  } else if (is_float(a.dtype)) {
    check_float(context, 1);
  } else {
    check_same_dtype(context, 0, 1);
  }
  const size_t ra = a.shape.size(), rb = b.shape.size();
  const Dim& m = a.shape[transpose_a ? ra - 1 : ra - 2];
  const Dim& ka = a.shape[transpose_a ? ra - 2 : ra - 1];
  const Dim& kb = b.shape[transpose_b ? rb - 1 : rb - 2];
  const Dim& n = b.shape[transpose_b ? rb - 2 : rb - 1];
  if (ka != kb) {
    context.fail("{} x {} (transpose_a={}, transpose_b={}) contracts an extent {} with {}.",
                 to_string(a), to_string(b), transpose_a, transpose_b, to_string(ka),
                 to_string(kb));
  }
  TensorType output{a.dtype,
                    broadcast_shapes(context, leading_axes(a.shape), leading_axes(b.shape))};
  output.shape.push_back(m);
  output.shape.push_back(n);
  return {output};
}

void Matmul::reference(const ReferenceContext& context) const {
  const ReferenceTensor& a = context.input(0);
  const ReferenceTensor& b = context.input(1);
  ReferenceTensor& c = context.outputs[0];
  const size_t ra = a.shape.size(), rb = b.shape.size(), rc = c.shape.size();
  const int64_t m = c.shape[rc - 2], n = c.shape[rc - 1];
  const int64_t k = a.shape[transpose_a ? ra - 2 : ra - 1];
  const MatrixStrides as = transpose_a ? MatrixStrides{1, m} : MatrixStrides{k, 1};
  const MatrixStrides bs = transpose_b ? MatrixStrides{1, k} : MatrixStrides{n, 1};
  const std::span<const int64_t> batch(c.shape.data(), rc - 2);
  std::vector<int64_t> a_strides = broadcast_strides(std::span(a.shape.data(), ra - 2), batch);
  std::vector<int64_t> b_strides = broadcast_strides(std::span(b.shape.data(), rb - 2), batch);
  for_each_index(batch, [&](int64_t matrix, std::span<const int64_t> index) {
    const int64_t a_offset = dot_offset(index, a_strides) * m * k;
    const int64_t b_offset = dot_offset(index, b_strides) * k * n;
    const int64_t c_offset = matrix * m * n;
    if (c.holds_floats()) {
      multiply(a.floats.data() + a_offset, as, b.floats.data() + b_offset, bs,
               c.floats.data() + c_offset, m, n, k);
    } else {
      multiply(a.integers.data() + a_offset, as, b.integers.data() + b_offset, bs,
               c.integers.data() + c_offset, m, n, k);
    }
  });
  for (int64_t& value : c.integers) value = wrap_integer(c.dtype, value);
}

std::vector<TensorType> Linear::infer(const InferContext& context) const {
  const int expected = 2 + (bias ? 1 : 0) + (residual ? 1 : 0);
  if (static_cast<int>(context.inputs.size()) != expected) {
    context.fail("{} inputs are given, but {} are expected with bias={} and residual={}.",
                 context.inputs.size(), expected, bias, residual);
  }
  const TensorType& x = context.input(0);
  const TensorType& w = context.input(1);
  check_float(context, 0);
  if (!is_packed(w.dtype)) check_float(context, 1);
  check_rank_at_least(context, 0, 2);
  check_rank(context, 1, 2);
  check_extent(context, 1, 1, x.shape.back(), "the last extent of x");
  TensorType output = x;
  output.shape.back() = w.shape[0];
  if (bias) {
    check_float(context, 2);
    check_vector(context, 2, w.shape[0], "one bias per row of w");
  }
  if (residual && context.inputs.back() != output) {
    context.fail("The residual is {}, but the output's type {} is expected.",
                 to_string(context.inputs.back()), to_string(output));
  }
  return {output};
}

std::vector<ValueId> Linear::decompose(Builder& builder, std::span<const ValueId> inputs) const {
  const DType dtype = builder.type(inputs[0]).dtype;
  ValueId y = builder.add(Matmul{.transpose_b = true}, {inputs[0], inputs[1]});
  if (bias) {
    ValueId b = inputs[2];
    if (builder.type(b).dtype != dtype) b = builder.add(Cast{.dtype = dtype}, {b});
    y = builder.add(Add{}, {y, b});
  }
  switch (activation) {
    case Activation::kNone:
      break;
    case Activation::kRelu:
      y = builder.add(Relu{}, {y});
      break;
    case Activation::kGelu:
      y = builder.add(Gelu{}, {y});
      break;
    case Activation::kGeluTanh:
      y = builder.add(Gelu{.approximate = GeluKind::kTanh}, {y});
      break;
    case Activation::kSilu:
      y = builder.add(Silu{}, {y});
      break;
    case Activation::kSigmoid:
      y = builder.add(Sigmoid{}, {y});
      break;
    case Activation::kTanh:
      y = builder.add(Tanh{}, {y});
      break;
  }
  if (residual) y = builder.add(Add{}, {y, inputs.back()});
  return {y};
}

std::vector<TensorType> GroupedMatmul::infer(const InferContext& context) const {
  const TensorType& x = context.input(0);
  const TensorType& w = context.input(1);
  const TensorType& ids = context.input(2);
  check_float(context, 0);
  if (!is_packed(w.dtype)) check_float(context, 1);
  check_rank(context, 1, 3);
  check_rank(context, 2, 2);
  if (ids.dtype != DType::kI64 && ids.dtype != DType::kI32) {
    context.fail("Input 2 is {}, but i64 or i32 is expected.", to_string(ids));
  }
  if (x.rank() != 3) check_rank(context, 0, 2);
  check_extent(context, 0, 0, ids.shape[0], "the tokens of expert_ids");
  if (x.rank() == 3) check_extent(context, 0, 1, ids.shape[1], "the active experts of expert_ids");
  check_extent(context, 1, 2, x.shape.back(), "the last extent of x");
  return {{x.dtype, {ids.shape[0], ids.shape[1], w.shape[1]}}};
}

void GroupedMatmul::reference(const ReferenceContext& context) const {
  const ReferenceTensor& x = context.input(0);
  const ReferenceTensor& w = context.input(1);
  const ReferenceTensor& ids = context.input(2);
  const int64_t experts = w.shape[0], n = w.shape[1], k = w.shape[2];
  const int64_t tokens = ids.shape[0], active = ids.shape[1];
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t a = 0; a < active; ++a) {
      const int64_t place = t * active + a;
      const int64_t expert = ids.integers[place];
      if (expert < 0 || expert >= experts) {
        throw_error(ErrorCode::kOutOfRange, "grouped_matmul meets the expert {}, but there are {}.",
                    expert, experts);
      }
      const int64_t row = x.shape.size() == 3 ? place : t;
      multiply(x.floats.data() + row * k, {k, 1}, w.floats.data() + expert * n * k, {1, k},
               context.outputs[0].floats.data() + place * n, 1, n, k);
    }
  }
}

}  // namespace rlx
