#include "ops/count_work.h"

#include <algorithm>

#include "ops/attention.h"
#include "ops/cache.h"
#include "ops/matmul.h"
#include "ops/move.h"
#include "tensor/storage.h"

namespace rlx {
namespace {

// Bytes of the distinct elements of a view.
int64_t count_bytes(const TensorView& view) {
  int64_t elements = 1;
  for (int axis = 0; axis < view.rank; ++axis) {
    if (view.strides[axis] != 0) elements *= view.extents[axis];
  }
  const int64_t block = elements_per_block(view.dtype);
  return (elements + block - 1) / block * bytes_per_block(view.dtype);
}

void count_gather(std::span<const TensorView* const> inputs,
                  std::span<const TensorView* const> outputs, OpWork& work) {
  const int64_t rows_bytes = storage_bytes(inputs[0]->dtype, outputs[0]->num_elements());
  work.read_bytes[0] = std::min(work.read_bytes[0], rows_bytes);
}

// The cache is only written, where the new rows go; its view is the output.
void count_cache_append(std::span<const TensorView* const> inputs,
                        std::span<const TensorView* const> outputs, OpWork& work) {
  work.read_bytes[0] = 0;
  work.written_bytes[0] = storage_bytes(outputs[0]->dtype, inputs[1]->num_elements());
}

void count_grouped_matmul(std::span<const TensorView* const> inputs,
                          std::span<const TensorView* const> outputs, OpWork& work) {
  const int64_t experts = inputs[1]->extents[0], chosen = inputs[2]->num_elements();
  work.read_bytes[1] = work.read_bytes[1] / experts * std::min(experts, chosen);
  work.flops = 2 * outputs[0]->num_elements() * inputs[1]->last_extent(0);
}

void count_attention(const Attention& attention, std::span<const TensorView* const> inputs,
                     OpWork& work) {
  const TensorView &q = *inputs[0], &k = *inputs[1], &v = *inputs[2];
  const int64_t tokens = q.extents[1], rows = k.extents[1];
  const bool slides = attention.window > 0 && attention.causal;
  int64_t pairs = 0;  // of a query and a key that count, for one head
  for (int64_t i = 0; i < tokens; ++i) {
    int64_t seen = attention.causal ? std::min(rows, rows - tokens + i + 1) : rows;
    if (slides) seen = std::min(seen, attention.window);
    pairs += std::max<int64_t>(seen, 0);
  }
  work.flops = 2 * q.extents[0] * q.extents[2] * pairs * (k.last_extent(0) + v.last_extent(0));
  if (slides && rows > 0) {
    const int64_t read_rows = std::min(rows, tokens + attention.window - 1);
    work.read_bytes[1] = work.read_bytes[1] / rows * read_rows;
    work.read_bytes[2] = work.read_bytes[2] / rows * read_rows;
  }
}

// As many keys as the window lets a token see, or all rows without one: where a text has got to is
// not known here.
void count_cached_attention(const CachedAttention& attention,
                            std::span<const TensorView* const> inputs, OpWork& work) {
  const TensorView &q = *inputs[0], &k = *inputs[1], &v = *inputs[2];
  const int64_t rows = k.extents[1];
  const int64_t seen = attention.window > 0 ? std::min(rows, attention.window) : rows;
  work.flops = 2 * q.extents[1] * q.extents[2] * seen * (k.last_extent(0) + v.last_extent(0));
}

}  // namespace

OpWork count_work(const Op& op, std::span<const TensorView* const> inputs,
                  std::span<const TensorView* const> outputs) {
  OpWork work;
  for (const TensorView* input : inputs) work.read_bytes.push_back(count_bytes(*input));
  for (const TensorView* output : outputs) work.written_bytes.push_back(count_bytes(*output));
  if (op.is<Gather>()) {
    count_gather(inputs, outputs, work);
  } else if (op.is<CacheAppend>() || op.is<CacheWrite>()) {
    count_cache_append(inputs, outputs, work);
  } else if (op.is<GroupedMatmul>()) {
    count_grouped_matmul(inputs, outputs, work);
  } else if (const auto* attention = op.as<Attention>()) {
    count_attention(*attention, inputs, work);
  } else if (const auto* cached = op.as<CachedAttention>()) {
    count_cached_attention(*cached, inputs, work);
  } else if (const auto* matmul = op.as<Matmul>()) {
    work.flops = 2 * outputs[0]->num_elements() * inputs[0]->last_extent(matmul->transpose_a);
  } else if (op.is<Linear>()) {
    work.flops = 2 * outputs[0]->num_elements() * inputs[0]->last_extent(0);
  } else if (op.kind().meaning == Meaning::kScalar) {
    const Formula formula = op.formula(static_cast<int>(inputs.size()));
    const auto computes = [](const FormulaStep& step) {
      return step.op != FormulaOp::input && step.op != FormulaOp::constant;
    };
    work.flops = outputs[0]->num_elements() *
                 std::count_if(formula.steps().begin(), formula.steps().end(), computes);
  }
  return work;
}

}  // namespace rlx
