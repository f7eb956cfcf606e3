// What every model graph is made of, decoder or encoder: weights found under either format's name
// and checked against the configuration, norms, projections, layers of experts. Decoder adds the
// key/value cache and the vocabulary.
//
// A weight is named by its two spellings without prefix and suffix: "attn_q" and
// "self_attn.q_proj" stand for "blk.3.attn_q.weight" and "model.layers.3.self_attn.q_proj.weight"
// of layer 3. A negative layer means a weight of the whole model, whose names are given in full.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "models/config.h"
#include "models/model_file.h"

namespace rlx {

struct WeightName {
  std::string_view gguf;
  std::string_view hf;
};

class Blocks {
 public:
  // `hf_layers` stands before the layer's number in safetensors names: "model.layers.".
  Blocks(const ModelFile& file, const TransformerConfig& config, std::string hf_layers);

  Builder& builder() { return builder_; }
  const ModelFile& file() const { return file_; }
  const TransformerConfig& config() const { return config_; }
  bool is_gguf() const { return file_.format() == ModelFormat::kGguf; }

  // What nodes added from now on belong to: "blk.0.ffn".
  void set_source(int64_t layer, std::string_view block);

  std::string weight_name(int64_t layer, WeightName name,
                          std::string_view suffix = ".weight") const;
  bool has_weight(int64_t layer, WeightName name, std::string_view suffix = ".weight") const;
  // Throws kNotFound naming a missing tensor, kCorruptData naming one of another shape.
  const WeightInfo& check_weight(int64_t layer, WeightName name, std::span<const int64_t> shape,
                                 std::string_view suffix = ".weight") const;
  // Checks, then adds the weight to the graph.
  ValueId load(int64_t layer, WeightName name, std::vector<int64_t> shape,
               std::string_view suffix = ".weight");
  // The same as f32, for what is added or multiplied in: biases, sinks, norm weights.
  ValueId load_f32(int64_t layer, WeightName name, std::vector<int64_t> shape,
                   std::string_view suffix = ".weight");

  // RMS norm; `weight_offset` is added to the weight first.
  ValueId rms_norm(ValueId x, int64_t layer, WeightName name, double weight_offset = 0);
  // Layer norm with weight and bias.
  ValueId layer_norm(ValueId x, int64_t layer, WeightName name);

  enum class Bias : uint8_t {
    kOptional,  // added when the file has one
    kRequired,  // a missing one is an error
  };
  struct Projection {
    int64_t out = 0;
    int64_t in = 0;
    Bias bias = Bias::kOptional;
    bool hf_input_major = false;  // safetensors hold [in, out] instead of [out, in]
  };
  // x . w^T + bias.
  ValueId project(ValueId x, int64_t layer, WeightName name, const Projection& projection);

  // x[..., begin, begin + size) of the last axis, a view.
  ValueId slice_last(ValueId x, int64_t begin, int64_t size, int64_t step = 1);
  ValueId add(ValueId a, ValueId b);
  ValueId scale(ValueId x, double factor);

 protected:
  const ModelFile& file_;
  const TransformerConfig config_;
  const std::string hf_layers_;
  Graph graph_;
  Builder builder_;
};

}  // namespace rlx
