// Mixtures of experts: each token goes through the few experts that its router chooses. The weights
// of a layer's experts are one bank [experts, out, in], of which grouped_matmul reads the chosen
// experts' parts, for all tokens of an expert at once.
#pragma once

#include "models/blocks.h"

namespace rlx {

struct ExpertSizes {
  int64_t num_experts = 0;
  int64_t num_active = 0;  // experts that a token goes through
  int64_t ffn_size = 0;    // of one expert
};

// `ffn_size` is its key in config.json. Throws kCorruptData naming a value that is missing or out
// of range.
ExpertSizes read_expert_sizes(const ModelFile& file, std::string_view ffn_size);

// Which experts each token goes through, and with what weight.
struct Routing {
  ValueId ids;      // i64[tokens, active]
  ValueId weights;  // f32[tokens, active]
};

// The `num_active` largest of the scores f32[tokens, experts] and their softmax: over all experts
// before choosing (then `normalize` divides by the sum of the chosen), or over the chosen.
enum class RouterSoftmax : uint8_t { kBeforeChoice, kAfterChoice };
Routing choose_experts(Blocks& blocks, ValueId scores, int64_t num_active, RouterSoftmax softmax,
                       bool normalize);

// f32[1, tokens, hidden] -> f32[tokens, hidden], and back.
ValueId flatten_tokens(Blocks& blocks, ValueId x);
ValueId unflatten_tokens(Blocks& blocks, ValueId x);

// The bank of weights [experts, out, in]: one tensor, or one per expert where the safetensors name
// has '*' for the expert's number. Throws as Blocks::load, naming the expert's tensor.
ValueId load_expert_bank(Blocks& blocks, int64_t layer, WeightName name, int64_t num_experts,
                         int64_t out, int64_t in, std::string_view suffix = ".weight");

// x [tokens, in] or [tokens, active, in] by each token's experts: [tokens, active, out].
ValueId multiply_experts(Blocks& blocks, ValueId x, ValueId bank, const Routing& routing);
// Adds to y [tokens, active, out] the rows of biases [experts, out] that belong to the experts.
ValueId add_expert_bias(Blocks& blocks, ValueId y, ValueId biases, const Routing& routing);
// The sum over a token's experts of y [tokens, active, out] by their weights: [tokens, out].
ValueId sum_experts(Blocks& blocks, ValueId y, const Routing& routing);

}  // namespace rlx
