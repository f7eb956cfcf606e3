#include "models/experts.h"

#include "base/error.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/move.h"
#include "ops/norm.h"
#include "ops/reduce.h"
#include "ops/view.h"

namespace rlx {

ExpertSizes read_expert_sizes(const ModelFile& file, std::string_view ffn_size) {
  ExpertSizes sizes;
  // Files call the same value by two names, some by both.
  const bool is_plain = file.find_int({"", "num_experts"}).has_value();
  const ConfigKey count{".expert_count", is_plain ? "num_experts" : "num_local_experts"};
  sizes.num_experts = check_range(file, "number of experts", file.read_int(count), 1, 65536);
  sizes.num_active = check_range(file, "number of active experts",
                                 file.read_int({".expert_used_count", "num_experts_per_tok"}), 1,
                                 sizes.num_experts);
  sizes.ffn_size =
      read_size(file, "experts' feed-forward size", {".expert_feed_forward_length", ffn_size});
  return sizes;
}

Routing choose_experts(Blocks& blocks, ValueId scores, int64_t num_active, RouterSoftmax softmax,
                       bool normalize) {
  Builder& builder = blocks.builder();
  if (softmax == RouterSoftmax::kBeforeChoice) scores = builder.add(Softmax{}, {scores});
  const std::vector<ValueId> chosen = builder.add_many(TopK{.k = num_active}, {scores});
  Routing routing{chosen[1], chosen[0]};
  if (softmax == RouterSoftmax::kAfterChoice) {
    routing.weights = builder.add(Softmax{}, {routing.weights});
  } else if (normalize) {
    const ValueId sum = builder.add(ReduceSum{.axes = {1}, .keep_dims = true}, {routing.weights});
    routing.weights = builder.add(Div{}, {routing.weights, sum});
  }
  return routing;
}

ValueId flatten_tokens(Blocks& blocks, ValueId x) {
  const Shape& shape = blocks.builder().type(x).shape;
  return blocks.builder().add(Reshape{.shape = {shape[1], shape[2]}}, {x});
}

ValueId unflatten_tokens(Blocks& blocks, ValueId x) {
  const Shape& shape = blocks.builder().type(x).shape;
  return blocks.builder().add(Reshape{.shape = {1, shape[0], shape[1]}}, {x});
}

ValueId load_expert_bank(Blocks& blocks, int64_t layer, WeightName name, int64_t num_experts,
                         int64_t out, int64_t in, std::string_view suffix) {
  const size_t star = name.hf.find('*');
  if (!blocks.is_gguf() && star != std::string_view::npos) {
    const std::string before(name.hf.substr(0, star)), after(name.hf.substr(star + 1));
    const int64_t shape[] = {out, in};
    for (int64_t expert = 0; expert < num_experts; ++expert) {
      const std::string hf = fmt::format("{}{}{}", before, expert, after);
      blocks.check_weight(layer, {"", hf}, shape, suffix);
    }
    if (!blocks.has_weight(layer, name, suffix)) {
      throw_error(ErrorCode::kCorruptData,
                  "The tensors '{}' make no bank: their element types differ.",
                  blocks.weight_name(layer, name, suffix));
    }
  }
  return blocks.load(layer, name, {num_experts, out, in}, suffix);
}

ValueId multiply_experts(Blocks& blocks, ValueId x, ValueId bank, const Routing& routing) {
  return blocks.builder().add(GroupedMatmul{}, {x, bank, routing.ids});
}

ValueId add_expert_bias(Blocks& blocks, ValueId y, ValueId biases, const Routing& routing) {
  return blocks.add(y, blocks.builder().add(Gather{.axis = 0}, {biases, routing.ids}));
}

ValueId sum_experts(Blocks& blocks, ValueId y, const Routing& routing) {
  Builder& builder = blocks.builder();
  const Shape& shape = builder.type(routing.weights).shape;
  const ValueId weights = builder.add(Reshape{.shape = {shape[0], shape[1], 1}}, {routing.weights});
  return builder.add(ReduceSum{.axes = {1}}, {builder.add(Mul{}, {y, weights})});
}

}  // namespace rlx
