#include "base/error.h"
#include "text/json_components.h"
#include "text/unicode.h"

namespace rlx {
namespace {

SplitBehavior read_behavior(const JsonNode& node) {
  const std::string& name = node.as_string();
  if (name == "Removed") return SplitBehavior::kRemoved;
  if (name == "Isolated") return SplitBehavior::kIsolated;
  if (name == "MergedWithPrevious") return SplitBehavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return SplitBehavior::kMergedWithNext;
  if (name == "Contiguous") return SplitBehavior::kContiguous;
  node.refuse(fmt::format("the behavior '{}'", name),
              "Contiguous, Isolated, MergedWithNext, MergedWithPrevious, Removed");
}

PreTokenizerPtr make_split(const JsonNode& node) {
  const JsonPattern pattern = read_pattern(node.at("pattern"));
  const SplitBehavior behavior = read_behavior(node.at("behavior"));
  const bool invert = node.bool_or("invert", false);
  return with_context(node.key(), [&] {
    return pattern.is_regex ? make_regex_split(pattern.text, behavior, invert)
                            : make_string_split(pattern.text, behavior, invert);
  });
}

PreTokenizerPtr make_metaspace(const JsonNode& node) {
  PrependScheme scheme = PrependScheme::kAlways;
  if (const std::optional<JsonNode> name = node.find("prepend_scheme")) {
    const std::string& text = name->as_string();
    if (text == "always") {
      scheme = PrependScheme::kAlways;
    } else if (text == "first") {
      scheme = PrependScheme::kFirst;
    } else if (text == "never") {
      scheme = PrependScheme::kNever;
    } else {
      name->refuse(fmt::format("the scheme '{}'", text), "always, first, never");
    }
  } else if (!node.bool_or("add_prefix_space", true)) {
    scheme = PrependScheme::kNever;  // how older files say it
  }
  std::string replacement = node.at("replacement").as_string();
  if (replacement.empty()) {
    throw_error(ErrorCode::kCorruptData, "The key '{}.replacement' is empty.", node.key());
  }
  return make_metaspace(std::move(replacement), scheme, node.bool_or("split", true));
}

}  // namespace

PreTokenizerPtr make_pre_tokenizer(const JsonNode& node) {
  const std::string type = node.at("type").as_string();
  if (type == "Sequence") {
    std::vector<PreTokenizerPtr> steps;
    for (const JsonNode& step : node.at("pretokenizers").elements()) {
      steps.push_back(make_pre_tokenizer(step));
    }
    return make_pre_tokenizer_sequence(std::move(steps));
  }
  if (type == "ByteLevel") {
    return make_byte_level(node.bool_or("add_prefix_space", true), node.bool_or("use_regex", true));
  }
  if (type == "Split") return make_split(node);
  if (type == "Metaspace") return make_metaspace(node);
  if (type == "BertPreTokenizer") return make_bert_pre_tokenizer();
  if (type == "Whitespace") {
    // \w+|[^\w\s]+ with the \w of Unicode TS 18, which has Join_Control.
    return make_regex_split(R"([\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{200c}\x{200d}]+)"
                            R"(|[^\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{200c}\x{200d}\s]+)",
                            SplitBehavior::kRemoved, true);
  }
  if (type == "WhitespaceSplit") {
    return make_character_split(is_white_space, SplitBehavior::kRemoved);
  }
  if (type == "Digits") {
    return make_character_split(is_numeric, node.bool_or("individual_digits", false)
                                                ? SplitBehavior::kIsolated
                                                : SplitBehavior::kContiguous);
  }
  if (type == "Punctuation") {
    const std::optional<JsonNode> behavior = node.find("behavior");
    return make_character_split(is_punctuation,
                                behavior ? read_behavior(*behavior) : SplitBehavior::kIsolated);
  }
  if (type == "CharDelimiterSplit") {
    const JsonNode delimiter = node.at("delimiter");
    if (delimiter.as_string().empty()) {
      throw_error(ErrorCode::kCorruptData, "The key '{}' is empty.", delimiter.key());
    }
    return make_string_split(delimiter.as_string(), SplitBehavior::kRemoved, false);
  }
  node.refuse(fmt::format("the pre-tokenizer '{}'", type),
              "BertPreTokenizer, ByteLevel, CharDelimiterSplit, Digits, Metaspace, Punctuation, "
              "Sequence, Split, Whitespace, WhitespaceSplit");
}

}  // namespace rlx
