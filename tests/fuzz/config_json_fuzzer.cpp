// Reads any bytes as the config.json of a folder whose weights are those of a tiny llama, and
// builds the model's graph from it: what is built must print to a text that reads back the same.

#include <cstdint>
#include <string>
#include <vector>

#include "ir/text.h"
#include "models/families.h"
#include "ops/registry.h"
#include "temporary_folder.h"

namespace {

// One layer, width 8, 2 heads of 4 over 1 key/value head, inner width 16, 12 tokens; all zero.
void write_weights(const rlx::fuzz::TemporaryFolder& folder) {
  struct Tensor {
    std::string name;
    std::vector<int64_t> shape;
  };
  const std::string layer = "model.layers.0.";
  const std::vector<Tensor> tensors = {
      {"model.embed_tokens.weight", {12, 8}},
      {"model.norm.weight", {8}},
      {"lm_head.weight", {12, 8}},
      {layer + "input_layernorm.weight", {8}},
      {layer + "post_attention_layernorm.weight", {8}},
      {layer + "self_attn.q_proj.weight", {8, 8}},
      {layer + "self_attn.k_proj.weight", {4, 8}},
      {layer + "self_attn.v_proj.weight", {4, 8}},
      {layer + "self_attn.o_proj.weight", {8, 8}},
      {layer + "self_attn.q_norm.weight", {4}},
      {layer + "self_attn.k_norm.weight", {4}},
      {layer + "mlp.gate_proj.weight", {16, 8}},
      {layer + "mlp.up_proj.weight", {16, 8}},
      {layer + "mlp.down_proj.weight", {8, 16}},
  };
  std::string header = "{";
  int64_t end = 0;
  for (const Tensor& tensor : tensors) {
    int64_t size = 4;
    for (int64_t extent : tensor.shape) size *= extent;
    header += fmt::format("{}\"{}\":{{\"dtype\":\"F32\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                          end == 0 ? "" : ",", tensor.name, fmt::join(tensor.shape, ","), end,
                          end + size);
    end += size;
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const uint64_t length = header.size();
  std::string file(reinterpret_cast<const char*>(&length), sizeof(length));
  file += header;
  file.resize(file.size() + static_cast<size_t>(end));
  folder.write("model.safetensors", file.data(), file.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const rlx::fuzz::TemporaryFolder folder;
  static const bool has_weights = (write_weights(folder), true);
  if (!has_weights) return 0;
  folder.write("config.json", data, size);
  try {
    const auto file = rlx::ModelFile::open(folder.path());
    file->list_metadata();
    const rlx::Graph graph = rlx::build_graph(*file, {.max_tokens = 8});
    const std::string text = to_string(graph);
    RLX_CHECK(to_string(rlx::parse_graph(text, rlx::all_ops())) == text);
    file->list_end_tokens();
  } catch (const rlx::Error&) {
  }
  return 0;
}
