#include "base/error.h"
#include "text/json_components.h"

namespace rlx {
namespace {

// Standard base64 with padding; white space is not expected.
std::string decode_base64(const JsonNode& node) {
  const std::string& text = node.as_string();
  const auto value_of = [](char c) -> int32_t {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
  };
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  uint32_t bits = 0, num_bits = 0;
  size_t end = text.size();
  while (end > 0 && text[end - 1] == '=') --end;
  for (size_t i = 0; i < end; ++i) {
    const int32_t value = value_of(text[i]);
    if (value < 0) {
      throw_error(ErrorCode::kCorruptData, "The key '{}' is not base64 at byte {}.", node.key(), i);
    }
    bits = (bits << 6) | static_cast<uint32_t>(value);
    num_bits += 6;
    if (num_bits >= 8) {
      num_bits -= 8;
      bytes += static_cast<char>((bits >> num_bits) & 0xFF);
    }
  }
  return bytes;
}

NormalizerPtr make_replace(const JsonNode& node) {
  const JsonPattern pattern = read_pattern(node.at("pattern"));
  std::string content = node.at("content").as_string();
  return with_context(node.key(), [&] {
    return pattern.is_regex ? make_regex_replace_normalizer(pattern.text, std::move(content))
                            : make_replace_normalizer(pattern.text, std::move(content));
  });
}

NormalizerPtr make_bert(const JsonNode& node) {
  BertNormalizerOptions options;
  options.clean_text = node.bool_or("clean_text", true);
  options.handle_chinese_chars = node.bool_or("handle_chinese_chars", true);
  options.lowercase = node.bool_or("lowercase", true);
  options.strip_accents = node.bool_or("strip_accents", options.lowercase);
  return make_bert_normalizer(options);
}

}  // namespace

JsonPattern read_pattern(const JsonNode& node) {
  const std::optional<JsonNode> string = node.find("String");
  const JsonNode text = string ? *string : node.at("Regex");
  if (text.as_string().empty()) {
    throw_error(ErrorCode::kCorruptData, "The key '{}' is empty, but a pattern is expected.",
                text.key());
  }
  return {text.as_string(), !string};
}

NormalizerPtr make_normalizer(const JsonNode& node) {
  const std::string type = node.at("type").as_string();
  if (type == "Sequence") {
    std::vector<NormalizerPtr> steps;
    for (const JsonNode& step : node.at("normalizers").elements()) {
      steps.push_back(make_normalizer(step));
    }
    return make_normalizer_sequence(std::move(steps));
  }
  if (type == "NFC") return make_unicode_normalizer(UnicodeForm::kNfc);
  if (type == "NFD") return make_unicode_normalizer(UnicodeForm::kNfd);
  if (type == "NFKC") return make_unicode_normalizer(UnicodeForm::kNfkc);
  if (type == "NFKD") return make_unicode_normalizer(UnicodeForm::kNfkd);
  if (type == "Lowercase") return make_lowercase_normalizer();
  if (type == "StripAccents") return make_strip_accents_normalizer();
  if (type == "Strip") {
    return make_strip_normalizer(node.bool_or("strip_left", true),
                                 node.bool_or("strip_right", true));
  }
  if (type == "Prepend") return make_prepend_normalizer(node.at("prepend").as_string());
  if (type == "Replace") return make_replace(node);
  if (type == "BertNormalizer") return make_bert(node);
  if (type == "ByteLevel") return make_byte_level_normalizer();
  if (type == "Nmt") return make_nmt_normalizer();
  if (type == "Precompiled") {
    const JsonNode charsmap = node.at("precompiled_charsmap");
    return with_context(charsmap.key(),
                        [&] { return make_precompiled_normalizer(decode_base64(charsmap)); });
  }
  node.refuse(
      fmt::format("the normalizer '{}'", type),
      "BertNormalizer, ByteLevel, Lowercase, NFC, NFD, NFKC, NFKD, Nmt, Precompiled, Prepend, "
      "Replace, Sequence, Strip, StripAccents");
}

}  // namespace rlx
