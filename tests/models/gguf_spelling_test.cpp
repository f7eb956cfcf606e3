// Families whose reference files are safetensors only, read from GGUF: each test writes the GGUF
// file that the usual converter makes of the same weights, with its names, keys and rearrangements,
// and the results are held to the same reference.
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "gguf_writer.h"
#include "model_runner.h"
#include "safetensors_writer.h"

namespace rlx {
namespace {

using namespace model_testing;
using nlohmann::json;

// How the bytes of a tensor change on the way.
enum class Change : uint8_t { kNone, kTranspose, kAddOne };

// '#' stands for a layer's number.
struct Rename {
  std::string from, to;
  Change change = Change::kNone;
};

std::string transpose(const StoredTensor& tensor) {
  const size_t rows = static_cast<size_t>(tensor.shape[0]);
  const size_t columns = static_cast<size_t>(tensor.shape[1]);
  std::string bytes(tensor.bytes.size(), '\0');
  for (size_t r = 0; r < rows; ++r) {
    for (size_t c = 0; c < columns; ++c) {
      std::memcpy(&bytes[(c * rows + r) * 4], &tensor.bytes[(r * columns + c) * 4], 4);
    }
  }
  return bytes;
}

std::string add_one(const StoredTensor& tensor) {
  std::string bytes = tensor.bytes;
  for (size_t at = 0; at < bytes.size(); at += 4) {
    float value;
    std::memcpy(&value, &bytes[at], 4);
    value += 1;
    std::memcpy(&bytes[at], &value, 4);
  }
  return bytes;
}

void add_renamed(GgufWriter& writer, const std::string& name, const StoredTensor& tensor,
                 Change change) {
  std::vector<int64_t> shape = tensor.shape;
  std::string bytes = tensor.bytes;
  if (change == Change::kTranspose) {
    std::swap(shape[0], shape[1]);
    bytes = transpose(tensor);
  } else if (change == Change::kAddOne) {
    bytes = add_one(tensor);
  }
  writer.add_tensor(name, tensor.dtype, shape, std::move(bytes));
}

std::string put_layer(std::string pattern, int64_t layer) {
  const size_t place = pattern.find('#');
  return place == std::string::npos ? pattern : pattern.replace(place, 1, std::to_string(layer));
}

// Writes every tensor that the table names; the others must be few and known.
void add_tensors(GgufWriter& writer, const StoredTensors& tensors,
                 const std::vector<Rename>& table) {
  for (const Rename& rename : table) {
    const bool layered = rename.from.find('#') != std::string::npos;
    for (int64_t layer = 0; layer < (layered ? 2 : 1); ++layer) {
      const std::string from = put_layer(rename.from, layer);
      ASSERT_TRUE(tensors.contains(from)) << from;
      add_renamed(writer, put_layer(rename.to, layer), tensors.at(from), rename.change);
    }
  }
}

// The same change for weight and bias.
void add_pair(std::vector<Rename>& table, const std::string& from, const std::string& to,
              Change change = Change::kNone) {
  table.push_back({from + ".weight", to + ".weight", change});
  table.push_back({from + ".bias", to + ".bias"});
}

class GgufFamily : public testing::Test {
 protected:
  void open(const std::string& family, const std::string& architecture) {
    folder_ = "tests/data/small/" + family;
    config_ = json::parse(read_file(folder_ + "/config.json"));
    tensors_ = read_safetensors(folder_ + "/model.safetensors");
    architecture_ = architecture;
    writer_.add("general.architecture", architecture);
  }

  std::string key(const std::string& name) const { return architecture_ + "." + name; }

  void copy_size(const std::string& name, const std::string& config_name) {
    writer_.add(key(name), config_.at(config_name).get<uint32_t>());
  }

  void copy_float(const std::string& name, const std::string& config_name) {
    writer_.add(key(name), config_.at(config_name).get<float>());
  }

  void copy_usual_sizes() {
    copy_size("context_length", "max_position_embeddings");
    copy_size("embedding_length", "hidden_size");
    copy_size("block_count", "num_hidden_layers");
    copy_size("attention.head_count", "num_attention_heads");
    copy_size("feed_forward_length", "intermediate_size");
  }

  std::map<std::string, FloatTensor> run(const std::vector<std::string>& input_names) {
    const Expected expected(folder_ + "/expected.safetensors");
    std::map<std::string, IntTensor> inputs;
    for (const std::string& name : input_names) inputs[name] = expected.ints(name);
    const std::string path = temporary_.path("model.gguf");
    write_file(path, writer_.finish());
    RunOptions options;
    options.quantize_activations = false;
    options.graph.cache_dtype = DType::kF32;
    options.graph.all_logits = true;
    return run_model(path, inputs, options);
  }

  void expect_reference(const std::map<std::string, FloatTensor>& outputs, const std::string& name,
                        double tolerance) {
    const Expected expected(folder_ + "/expected.safetensors");
    EXPECT_LT(relative_error(outputs.at(name).values, expected.floats(name).values), tolerance);
  }

  TemporaryFolder temporary_;
  std::string folder_, architecture_;
  json config_;
  StoredTensors tensors_;
  GgufWriter writer_;
};

TEST_F(GgufFamily, Gemma3GivesTheReferenceLogits) {
  open("gemma3", "gemma3");
  copy_usual_sizes();
  copy_size("attention.head_count_kv", "num_key_value_heads");
  copy_size("attention.key_length", "head_dim");
  copy_size("attention.sliding_window", "sliding_window");
  copy_float("attention.layer_norm_rms_epsilon", "rms_norm_eps");
  writer_.add(key("rope.freq_base"), 1e6f);
  writer_.add(key("attention.sliding_window_pattern"), std::vector<bool>{true, false});
  const std::string from = "model.layers.#.", to = "blk.#.";
  add_tensors(
      writer_, tensors_,
      {{"model.embed_tokens.weight", "token_embd.weight"},
       {"model.norm.weight", "output_norm.weight", Change::kAddOne},
       {from + "input_layernorm.weight", to + "attn_norm.weight", Change::kAddOne},
       {from + "post_attention_layernorm.weight", to + "post_attention_norm.weight",
        Change::kAddOne},
       {from + "pre_feedforward_layernorm.weight", to + "ffn_norm.weight", Change::kAddOne},
       {from + "post_feedforward_layernorm.weight", to + "post_ffw_norm.weight", Change::kAddOne},
       {from + "self_attn.q_norm.weight", to + "attn_q_norm.weight", Change::kAddOne},
       {from + "self_attn.k_norm.weight", to + "attn_k_norm.weight", Change::kAddOne},
       {from + "self_attn.q_proj.weight", to + "attn_q.weight"},
       {from + "self_attn.k_proj.weight", to + "attn_k.weight"},
       {from + "self_attn.v_proj.weight", to + "attn_v.weight"},
       {from + "self_attn.o_proj.weight", to + "attn_output.weight"},
       {from + "mlp.gate_proj.weight", to + "ffn_gate.weight"},
       {from + "mlp.up_proj.weight", to + "ffn_up.weight"},
       {from + "mlp.down_proj.weight", to + "ffn_down.weight"}});
  expect_reference(run({"input_ids"}), "logits", 1e-5);
}

TEST_F(GgufFamily, Phi3GivesTheReferenceLogits) {
  open("phi3", "phi3");
  copy_usual_sizes();
  copy_size("attention.head_count_kv", "num_key_value_heads");
  copy_size("rope.scaling.original_context_length", "original_max_position_embeddings");
  copy_float("attention.layer_norm_rms_epsilon", "rms_norm_eps");
  writer_.add(key("attention.sliding_window"), uint32_t{0});
  writer_.add(key("rope.dimension_count"), uint32_t{16});
  writer_.add(key("rope.freq_base"), 1e4f);
  const std::string from = "model.layers.#.", to = "blk.#.";
  add_tensors(writer_, tensors_,
              {{"model.embed_tokens.weight", "token_embd.weight"},
               {"model.norm.weight", "output_norm.weight"},
               {"lm_head.weight", "output.weight"},
               {from + "input_layernorm.weight", to + "attn_norm.weight"},
               {from + "post_attention_layernorm.weight", to + "ffn_norm.weight"},
               {from + "self_attn.qkv_proj.weight", to + "attn_qkv.weight"},
               {from + "self_attn.o_proj.weight", to + "attn_output.weight"},
               {from + "mlp.gate_up_proj.weight", to + "ffn_up.weight"},
               {from + "mlp.down_proj.weight", to + "ffn_down.weight"}});
  expect_reference(run({"input_ids"}), "logits", 1e-5);
}

TEST_F(GgufFamily, Gpt2GivesTheReferenceLogits) {
  open("gpt2", "gpt2");
  copy_size("context_length", "n_positions");
  copy_size("embedding_length", "n_embd");
  copy_size("block_count", "n_layer");
  copy_size("attention.head_count", "n_head");
  writer_.add(key("feed_forward_length"), uint32_t{256});
  copy_float("attention.layer_norm_epsilon", "layer_norm_epsilon");
  const std::string from = "transformer.h.#.", to = "blk.#.";
  std::vector<Rename> table = {{"transformer.wte.weight", "token_embd.weight"},
                               {"transformer.wpe.weight", "position_embd.weight"}};
  add_pair(table, "transformer.ln_f", "output_norm");
  add_pair(table, from + "ln_1", to + "attn_norm");
  add_pair(table, from + "ln_2", to + "ffn_norm");
  add_pair(table, from + "attn.c_attn", to + "attn_qkv", Change::kTranspose);
  add_pair(table, from + "attn.c_proj", to + "attn_output", Change::kTranspose);
  add_pair(table, from + "mlp.c_fc", to + "ffn_up", Change::kTranspose);
  add_pair(table, from + "mlp.c_proj", to + "ffn_down", Change::kTranspose);
  add_tensors(writer_, tensors_, table);
  expect_reference(run({"input_ids"}), "logits", 1e-5);
}

TEST_F(GgufFamily, BertGivesTheReferenceStates) {
  open("bert", "bert");
  copy_usual_sizes();
  copy_float("attention.layer_norm_epsilon", "layer_norm_eps");
  const std::string from = "encoder.layer.#.", to = "blk.#.";
  std::vector<Rename> table = {{"embeddings.word_embeddings.weight", "token_embd.weight"},
                               {"embeddings.position_embeddings.weight", "position_embd.weight"},
                               {"embeddings.token_type_embeddings.weight", "token_types.weight"}};
  add_pair(table, "embeddings.LayerNorm", "token_embd_norm");
  add_pair(table, from + "attention.self.query", to + "attn_q");
  add_pair(table, from + "attention.self.key", to + "attn_k");
  add_pair(table, from + "attention.self.value", to + "attn_v");
  add_pair(table, from + "attention.output.dense", to + "attn_output");
  add_pair(table, from + "attention.output.LayerNorm", to + "attn_output_norm");
  add_pair(table, from + "intermediate.dense", to + "ffn_up");
  add_pair(table, from + "output.dense", to + "ffn_down");
  add_pair(table, from + "output.LayerNorm", to + "layer_output_norm");
  add_tensors(writer_, tensors_, table);
  const auto outputs = run({"input_ids", "attention_mask"});
  expect_reference(outputs, "last_hidden_state", 1e-5);
  expect_reference(outputs, "mean_pooled", 1e-5);
  EXPECT_FALSE(outputs.contains("pooler_output"));
}

// Every `step`th row of a bank from `first` on. A row is everything behind the second axis.
std::string take_rows(const StoredTensor& bank, size_t first, size_t step) {
  const size_t rows = static_cast<size_t>(bank.shape[0] * bank.shape[1]);
  const size_t size = bank.bytes.size() / rows;
  std::string taken;
  for (size_t row = first; row < rows; row += step) taken += bank.bytes.substr(row * size, size);
  return taken;
}

// Blocks of 32 elements in GGUF's order: the scale, then bytes that hold elements i and i + 16.
std::string pack_mxfp4(const std::string& blocks, const std::string& scales) {
  std::string packed;
  for (size_t block = 0; block < scales.size(); ++block) {
    uint8_t elements[32];
    for (size_t i = 0; i < 16; ++i) {
      const uint8_t pair = static_cast<uint8_t>(blocks[block * 16 + i]);
      elements[2 * i] = pair & 15;
      elements[2 * i + 1] = pair >> 4;
    }
    packed += scales[block];
    for (size_t i = 0; i < 16; ++i) {
      packed += static_cast<char>(elements[i] | elements[i + 16] << 4);
    }
  }
  return packed;
}

// Writes rows first, first + step, ... of each expert of a packed bank and its biases.
void add_bank(GgufWriter& writer, const StoredTensors& tensors, const std::string& from,
              const std::string& to, size_t first, size_t step) {
  const StoredTensor& blocks = tensors.at(from + "_blocks");
  const int64_t experts = blocks.shape[0], rows = blocks.shape[1] / static_cast<int64_t>(step);
  const std::string scales = take_rows(tensors.at(from + "_scales"), first, step);
  writer.add_tensor(to + ".weight", DType::kMXFP4, {experts, rows, blocks.shape[2] * 32},
                    pack_mxfp4(take_rows(blocks, first, step), scales));
  writer.add_tensor(to + ".bias", DType::kF32, {experts, rows},
                    take_rows(tensors.at(from + "_bias"), first, step));
}

TEST_F(GgufFamily, GptOssGivesTheReferenceLogits) {
  open("gpt_oss", "gpt-oss");
  copy_usual_sizes();
  copy_size("attention.head_count_kv", "num_key_value_heads");
  copy_size("attention.key_length", "head_dim");
  copy_size("attention.sliding_window", "sliding_window");
  copy_size("expert_count", "num_local_experts");
  copy_size("expert_used_count", "num_experts_per_tok");
  copy_size("expert_feed_forward_length", "intermediate_size");
  copy_float("attention.layer_norm_rms_epsilon", "rms_norm_eps");
  writer_.add(key("rope.freq_base"), 150000.0f);
  writer_.add(key("rope.scaling.type"), "yarn");
  writer_.add(key("rope.scaling.factor"), 32.0f);
  writer_.add(key("rope.scaling.original_context_length"), uint32_t{4096});
  const std::string from = "model.layers.#.", to = "blk.#.";
  std::vector<Rename> table = {
      {"model.embed_tokens.weight", "token_embd.weight"},
      {"model.norm.weight", "output_norm.weight"},
      {"lm_head.weight", "output.weight"},
      {from + "input_layernorm.weight", to + "attn_norm.weight"},
      {from + "post_attention_layernorm.weight", to + "post_attention_norm.weight"},
      {from + "self_attn.sinks", to + "attn_sinks.weight"}};
  add_pair(table, from + "self_attn.q_proj", to + "attn_q");
  add_pair(table, from + "self_attn.k_proj", to + "attn_k");
  add_pair(table, from + "self_attn.v_proj", to + "attn_v");
  add_pair(table, from + "self_attn.o_proj", to + "attn_output");
  add_pair(table, from + "mlp.router", to + "ffn_gate_inp");
  add_tensors(writer_, tensors_, table);
  for (int64_t layer = 0; layer < 2; ++layer) {
    const std::string experts = put_layer(from + "mlp.experts.", layer);
    const std::string block = put_layer(to, layer);
    add_bank(writer_, tensors_, experts + "gate_up_proj", block + "ffn_gate_exps", 0, 2);
    add_bank(writer_, tensors_, experts + "gate_up_proj", block + "ffn_up_exps", 1, 2);
    add_bank(writer_, tensors_, experts + "down_proj", block + "ffn_down_exps", 0, 1);
  }
  expect_reference(run({"input_ids"}), "logits", 1e-4);
}

}  // namespace
}  // namespace rlx
