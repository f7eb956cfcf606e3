#include "models/blocks.h"

#include <algorithm>

#include "base/error.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/norm.h"
#include "ops/view.h"

namespace rlx {

Blocks::Blocks(const ModelFile& file, const TransformerConfig& config, std::string hf_layers)
    : file_(file),
      config_(config),
      hf_layers_(std::move(hf_layers)),
      graph_(file.architecture()),
      builder_(graph_) {}

void Blocks::set_source(int64_t layer, std::string_view block) {
  builder_.set_source(layer < 0 ? std::string(block) : fmt::format("blk.{}.{}", layer, block));
}

std::string Blocks::weight_name(int64_t layer, WeightName name, std::string_view suffix) const {
  if (is_gguf()) {
    return layer < 0 ? fmt::format("{}{}", name.gguf, suffix)
                     : fmt::format("blk.{}.{}{}", layer, name.gguf, suffix);
  }
  return layer < 0 ? fmt::format("{}{}", name.hf, suffix)
                   : fmt::format("{}{}.{}{}", hf_layers_, layer, name.hf, suffix);
}

bool Blocks::has_weight(int64_t layer, WeightName name, std::string_view suffix) const {
  return file_.find(weight_name(layer, name, suffix)) != nullptr;
}

const WeightInfo& Blocks::check_weight(int64_t layer, WeightName name,
                                       std::span<const int64_t> shape,
                                       std::string_view suffix) const {
  const std::string full = weight_name(layer, name, suffix);
  const WeightInfo* info = file_.find(full);
  if (info == nullptr) {
    throw_error(ErrorCode::kNotFound, "The tensor '{}' is missing.", full);
  }
  if (!std::equal(shape.begin(), shape.end(), info->shape.begin(), info->shape.end())) {
    throw_error(ErrorCode::kCorruptData,
                "The tensor '{}' has the shape [{}], but the configuration asks for [{}].", full,
                fmt::join(info->shape, ", "), fmt::join(shape, ", "));
  }
  return *info;
}

ValueId Blocks::load(int64_t layer, WeightName name, std::vector<int64_t> shape,
                     std::string_view suffix) {
  TensorType type{check_weight(layer, name, shape, suffix).dtype, {}};
  for (int64_t extent : shape) type.shape.push_back(extent);
  return builder_.add_weight(weight_name(layer, name, suffix), std::move(type));
}

ValueId Blocks::load_f32(int64_t layer, WeightName name, std::vector<int64_t> shape,
                         std::string_view suffix) {
  const ValueId weight = load(layer, name, std::move(shape), suffix);
  if (builder_.type(weight).dtype == DType::kF32) return weight;
  return builder_.add(Cast{.dtype = DType::kF32}, {weight});
}

ValueId Blocks::rms_norm(ValueId x, int64_t layer, WeightName name, double weight_offset) {
  set_source(layer, name.gguf);
  const std::vector<int64_t> shape = {builder_.type(x).shape.back().constant()};
  ValueId weight;
  if (weight_offset == 0) {
    weight = load(layer, name, shape);
  } else {
    weight = builder_.add(
        Add{}, {load_f32(layer, name, shape), builder_.add_scalar(DType::kF32, weight_offset)});
  }
  return builder_.add(RmsNorm{.eps = config_.norm_eps}, {x, weight});
}

ValueId Blocks::layer_norm(ValueId x, int64_t layer, WeightName name) {
  set_source(layer, name.gguf);
  const std::vector<int64_t> shape = {builder_.type(x).shape.back().constant()};
  return builder_.add(LayerNorm{.eps = config_.norm_eps},
                      {x, load(layer, name, shape), load(layer, name, shape, ".bias")});
}

ValueId Blocks::project(ValueId x, int64_t layer, WeightName name, const Projection& projection) {
  const std::string block = builder_.source();
  set_source(layer, name.gguf);
  const bool input_major = projection.hf_input_major && !is_gguf();
  std::vector<int64_t> shape = {projection.out, projection.in};
  if (input_major) std::swap(shape[0], shape[1]);
  ValueId y = builder_.add(Matmul{.transpose_b = !input_major}, {x, load(layer, name, shape)});
  if (projection.bias == Bias::kRequired || has_weight(layer, name, ".bias")) {
    y = builder_.add(Add{}, {y, load_f32(layer, name, {projection.out}, ".bias")});
  }
  builder_.set_source(block);
  return y;
}

ValueId Blocks::slice_last(ValueId x, int64_t begin, int64_t size, int64_t step) {
  Shape sizes = builder_.type(x).shape;
  Shape starts(sizes.size(), Dim(0));
  std::vector<int64_t> steps(sizes.size(), 1);
  starts.back() = begin;
  sizes.back() = size;
  steps.back() = step;
  return builder_.add(Slice{.starts = starts, .sizes = sizes, .steps = steps}, {x});
}

ValueId Blocks::add(ValueId a, ValueId b) { return builder_.add(Add{}, {a, b}); }

ValueId Blocks::scale(ValueId x, double factor) {
  return builder_.add(Mul{}, {x, builder_.add_scalar(DType::kF32, factor)});
}

}  // namespace rlx
