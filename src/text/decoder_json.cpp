#include "base/error.h"
#include "text/json_components.h"

namespace rlx {
namespace {

DecoderPtr make_replace(const JsonNode& node) {
  const JsonPattern pattern = read_pattern(node.at("pattern"));
  std::string content = node.at("content").as_string();
  return with_context(node.key(), [&] {
    return pattern.is_regex ? make_regex_replace_decoder(pattern.text, std::move(content))
                            : make_replace_decoder(pattern.text, std::move(content));
  });
}

DecoderPtr make_strip(const JsonNode& node) {
  const JsonNode content = node.at("content");
  const int64_t start = node.at("start").as_int();
  const int64_t stop = node.at("stop").as_int();
  if (content.as_string().empty() || start < 0 || stop < 0) {
    throw_error(ErrorCode::kCorruptData,
                "The key '{}' strips '{}' {} times at the start and {} at the end, but a character "
                "and counts of at least 0 are expected.",
                node.key(), content.as_string(), start, stop);
  }
  return make_strip_decoder(content.as_string(), static_cast<size_t>(start),
                            static_cast<size_t>(stop));
}

DecoderPtr make_metaspace(const JsonNode& node) {
  const std::optional<JsonNode> scheme = node.find("prepend_scheme");
  const bool strips_first =
      scheme ? scheme->as_string() != "never" : node.bool_or("add_prefix_space", true);
  const JsonNode replacement = node.at("replacement");
  if (replacement.as_string().empty()) {
    throw_error(ErrorCode::kCorruptData, "The key '{}' is empty.", replacement.key());
  }
  return make_metaspace_decoder(replacement.as_string(), strips_first);
}

}  // namespace

DecoderPtr make_decoder(const JsonNode& node) {
  const std::string type = node.at("type").as_string();
  if (type == "Sequence") {
    std::vector<DecoderPtr> steps;
    for (const JsonNode& step : node.at("decoders").elements()) steps.push_back(make_decoder(step));
    return make_decoder_sequence(std::move(steps));
  }
  if (type == "ByteLevel") return make_byte_level_decoder();
  if (type == "ByteFallback") return make_byte_fallback_decoder();
  if (type == "WordPiece") {
    return make_word_piece_decoder(node.string_or("prefix", "##"), node.bool_or("cleanup", true));
  }
  if (type == "Metaspace") return make_metaspace(node);
  if (type == "BPEDecoder") return make_bpe_decoder(node.string_or("suffix", "</w>"));
  if (type == "Replace") return make_replace(node);
  if (type == "Strip") return make_strip(node);
  if (type == "Fuse") return make_fuse_decoder();
  node.refuse(fmt::format("the decoder '{}'", type),
              "BPEDecoder, ByteFallback, ByteLevel, Fuse, Metaspace, Replace, Sequence, Strip, "
              "WordPiece");
}

}  // namespace rlx
