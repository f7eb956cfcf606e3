#include "ops/view.h"

#include <algorithm>
#include <numeric>

#include "ops/infer.h"

namespace rlx {
namespace {

// The packed blocks of a row stay whole only while the last axis does.
void check_keeps_blocks(const InferContext& context, bool keeps_last_axis) {
  if (is_complex(context.input(0).dtype)) check_plain(context, 0);
  if (is_packed(context.input(0).dtype) && !keeps_last_axis) {
    context.fail("Input 0 is {}, and a view of a packed dtype must keep the last axis.",
                 to_string(context.input(0)));
  }
}

void check_extents_not_negative(const InferContext& context, const Shape& shape,
                                std::string_view attribute) {
  for (const Dim& extent : shape) {
    if (extent.lower_bound(context.symbols) < 0) {
      context.fail("The attribute `{}` is {}, whose extent {} may be negative.", attribute,
                   to_string(shape), to_string(extent));
    }
  }
}

// numerator / denominator over products of extents, after dropping the extents that are on both
// sides; false when it is not exact for every value of the symbols.
bool divide_products(Shape numerator, Shape denominator, Dim& quotient) {
  std::erase_if(denominator, [&](const Dim& extent) {
    const auto same = std::find(numerator.begin(), numerator.end(), extent);
    if (same == numerator.end() || extent.is(0)) return false;
    numerator.erase(same);
    return true;
  });
  return divide_exactly(count_elements(numerator), count_elements(denominator), quotient);
}

}  // namespace

std::vector<TensorType> Reshape::infer(const InferContext& context) const {
  const TensorType& input = context.input(0);
  TensorType output{input.dtype, shape};
  const auto is_open = [](const Dim& extent) { return extent.is(-1); };
  const auto open = std::find_if(output.shape.begin(), output.shape.end(), is_open);
  if (open != output.shape.end()) {
    if (std::count_if(output.shape.begin(), output.shape.end(), is_open) > 1) {
      context.fail("The attribute `shape` is {}, but at most one extent may be -1.",
                   to_string(shape));
    }
    Shape others = output.shape;
    others.erase(others.begin() + (open - output.shape.begin()));
    Dim extent;
    if (!divide_products(input.shape, others, extent)) {
      context.fail("{} does not reshape to {}: its {} elements do not divide by the other extents.",
                   to_string(input), to_string(shape), to_string(count_elements(input.shape)));
    }
    *open = extent;
  }
  check_extents_not_negative(context, output.shape, "shape");
  const Dim given = count_elements(input.shape), wanted = count_elements(output.shape);
  if (given != wanted) {
    context.fail("{} has {} elements, but the shape {} has {}.", to_string(input), to_string(given),
                 to_string(output.shape), to_string(wanted));
  }
  check_keeps_blocks(context, !input.shape.empty() && !output.shape.empty() &&
                                  input.shape.back() == output.shape.back());
  return {output};
}

std::optional<Layout> Reshape::layout(const LayoutContext& context) const {
  const Shape& from = context.input_type.shape;
  const Shape& to = context.output_type.shape;
  const Layout& input = context.input_layout;
  Layout output = make_contiguous_layout(to);
  output.offset = input.offset;
  if (is_contiguous(from, input) || count_elements(from).is(0)) return output;

  // Walk both shapes from the last axis. Input axes that follow each other without gaps form one
  // run; the output axes that make up the same number of elements get strides within that run.
  size_t out = to.size();
  size_t in = from.size();
  while (in > 0) {
    size_t first = in - 1;
    const Dim run_stride = input.strides[first];
    Dim run_elements = from[first];
    while (first > 0 &&
           (from[first - 1].is(1) || input.strides[first - 1] == run_elements * run_stride)) {
      run_elements = run_elements * from[--first];
    }
    Dim placed = 1;
    while (out > 0 && (placed != run_elements || to[out - 1].is(1))) {
      --out;
      output.strides[out] = placed * run_stride;
      placed = placed * to[out];
    }
    if (placed != run_elements) return std::nullopt;
    in = first;
  }
  return output;
}

std::vector<TensorType> Transpose::infer(const InferContext& context) const {
  const TensorType& input = context.input(0);
  const int64_t rank = input.rank();
  TensorType output{input.dtype, {}};
  if (permutation.empty()) {
    output.shape.assign(input.shape.rbegin(), input.shape.rend());
    check_keeps_blocks(context, rank < 2);
    return {output};
  }
  std::vector<int64_t> sorted = permutation;
  std::sort(sorted.begin(), sorted.end());
  std::vector<int64_t> expected(rank);
  std::iota(expected.begin(), expected.end(), 0);
  if (sorted != expected) {
    context.fail("The permutation [{}] is given for {}, but each axis 0 to {} once is expected.",
                 fmt::join(permutation, ", "), to_string(input), rank - 1);
  }
  for (int64_t axis : permutation) output.shape.push_back(input.shape[axis]);
  check_keeps_blocks(context, permutation.back() == rank - 1);
  return {output};
}

std::optional<Layout> Transpose::layout(const LayoutContext& context) const {
  const Layout& input = context.input_layout;
  Layout output{input.offset, {}};
  if (permutation.empty()) {
    output.strides.assign(input.strides.rbegin(), input.strides.rend());
  }
  for (int64_t axis : permutation) output.strides.push_back(input.strides[axis]);
  return output;
}

std::vector<TensorType> Broadcast::infer(const InferContext& context) const {
  const TensorType& input = context.input(0);
  check_extents_not_negative(context, shape, "shape");
  check_broadcasts_to(context, "Input 0", input.shape, shape);
  check_keeps_blocks(context, !input.shape.empty() && input.shape.back() == shape.back());
  return {{input.dtype, shape}};
}

std::optional<Layout> Broadcast::layout(const LayoutContext& context) const {
  const Shape& from = context.input_type.shape;
  Layout output{context.input_layout.offset, std::vector<Dim>(shape.size(), Dim(0))};
  const size_t shift = shape.size() - from.size();
  for (size_t d = 0; d < from.size(); ++d) {
    const bool stretches = from[d].is(1) && !shape[shift + d].is(1);
    if (!stretches) output.strides[shift + d] = context.input_layout.strides[d];
  }
  return output;
}

std::vector<TensorType> Slice::infer(const InferContext& context) const {
  const TensorType& input = context.input(0);
  const size_t rank = input.shape.size();
  if (starts.size() != rank || sizes.size() != rank || (!steps.empty() && steps.size() != rank)) {
    context.fail(
        "{} has {} dimensions, but the attributes have {} starts, {} sizes and {} steps: one per "
        "axis is expected, or no steps.",
        to_string(input), rank, starts.size(), sizes.size(), steps.size());
  }
  for (size_t d = 0; d < rank; ++d) {
    const int64_t step = steps.empty() ? 1 : steps[d];
    if (step < 1)
      context.fail("The step {} is given at axis {}, but 1 or more is expected.", step, d);
    const Dim past_last = starts[d] + (sizes[d] - 1) * step + 1;
    if (!is_at_least(context, starts[d], 0) || !is_at_least(context, sizes[d], 0) ||
        !is_at_least(context, input.shape[d], past_last)) {
      context.fail(
          "The slice from {} of {} elements by step {} may lie outside axis {} of {}, within the "
          "bounds of the symbols.",
          to_string(starts[d]), to_string(sizes[d]), step, d, to_string(input));
    }
  }
  bool keeps_blocks = true;
  if (is_packed(input.dtype) && rank > 0) {
    const int64_t block = elements_per_block(input.dtype);
    Dim blocks;
    keeps_blocks = (steps.empty() || steps.back() == 1) &&
                   divide_exactly(starts.back(), block, blocks) &&
                   divide_exactly(sizes.back(), block, blocks);
    if (!keeps_blocks) {
      context.fail("Input 0 is {}, and a slice must take whole blocks of {} elements of a row.",
                   to_string(input), block);
    }
  }
  check_keeps_blocks(context, keeps_blocks);
  return {{input.dtype, sizes}};
}

std::optional<Layout> Slice::layout(const LayoutContext& context) const {
  Layout output = context.input_layout;
  for (size_t d = 0; d < starts.size(); ++d) {
    output.offset = output.offset + starts[d] * output.strides[d];
    if (!steps.empty()) output.strides[d] = output.strides[d] * steps[d];
  }
  return output;
}

}  // namespace rlx
