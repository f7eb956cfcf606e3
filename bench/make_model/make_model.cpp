// make_model: a GGUF file of random weights in the shape of a known model, with a vocabulary, so
// that speed and memory can be measured without a download. Other programs load it too.
//
//   make_model SHAPE TYPE FILE [--layers N] [--experts N] [--seed N]
//   make_model --list
//
// TYPE is an element type such as f16, q8_0, q4_0 or mxfp4, or a mixture such as q4_k_m. --layers
// and --experts make the model smaller than its shape.
#include <fmt/format.h>

#include <charconv>
#include <exception>
#include <string>
#include <vector>

#include "base/error.h"
#include "write_random_model.h"

namespace rlx::bench {
namespace {

constexpr std::string_view kUsage =
    "usage: make_model SHAPE TYPE FILE [--layers N] [--experts N] [--seed N]\n"
    "       make_model --list\n"
    "\n"
    "TYPE: f32, f16, bf16, q8_0, q4_0, q4_1, q5_0, q5_1, q2_k, q3_k, q4_k, q5_k, q6_k, iq4_nl,\n"
    "iq4_xs, mxfp4, or a mixture: q4_k_m, q5_k_m\n"
    "\n"
    "Examples:\n"
    "  make_model llama-3.2-1b q4_k_m llama-3.2-1b-q4_k_m.gguf\n"
    "  make_model gpt-oss-20b mxfp4 gpt-oss-4.gguf --layers 4\n";

int64_t parse_count(const std::string& option, const std::string& text, int64_t least) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least) {
    throw_error(ErrorCode::kInvalidArgument,
                "{} takes a whole number of at least {}, but '{}' is given.", option, least, text);
  }
  return value;
}

void list_shapes() {
  for (const ModelShape& shape : model_shapes()) {
    fmt::print("{:<14} {:>3} layers of {:>4}, vocabulary {:>6}{}\n", shape.name, shape.layers,
               shape.hidden, shape.vocab.size,
               shape.experts > 0 ? fmt::format(", {} experts", shape.experts) : "");
  }
}

int make_model(const std::vector<std::string>& arguments) {
  std::vector<std::string> names;
  int64_t layers = 0, experts = 0, seed = 1;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (word == "--list") {
      list_shapes();
      return 0;
    }
    if (word == "-h" || word == "--help") {
      fmt::print("{}", kUsage);
      return 0;
    }
    if (!word.starts_with("--")) {
      names.push_back(word);
      continue;
    }
    if (word != "--layers" && word != "--experts" && word != "--seed") {
      throw_error(ErrorCode::kInvalidArgument,
                  "There is no option '{}'; there are --layers, --experts, --seed and --list.",
                  word);
    }
    if (i + 1 == arguments.size()) {
      throw_error(ErrorCode::kInvalidArgument, "The option {} takes a number.", word);
    }
    const std::string& text = arguments[++i];
    if (word == "--layers") layers = parse_count(word, text, 1);
    if (word == "--experts") experts = parse_count(word, text, 1);
    if (word == "--seed") seed = parse_count(word, text, 0);
  }
  if (names.size() != 3) {
    fmt::print(stderr, "{}", kUsage);
    return 2;
  }
  ModelShape shape = find_model_shape(names[0]);
  if (layers > 0) shape.layers = layers;
  if (experts > 0) {
    if (experts < shape.active_experts || shape.experts == 0) {
      throw_error(ErrorCode::kInvalidArgument,
                  "{} experts are asked for, but the shape {} has {} at work for each token.",
                  experts, shape.name, shape.active_experts);
    }
    shape.experts = experts;
  }
  write_random_model(shape, names[1], static_cast<uint64_t>(seed), names[2]);
  return 0;
}

}  // namespace
}  // namespace rlx::bench

int main(int argc, char** argv) {
  try {
    return rlx::bench::make_model({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    fmt::print(stderr, "make_model: {}\n", error.what());
    return 1;
  }
}
