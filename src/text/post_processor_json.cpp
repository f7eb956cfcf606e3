#include "base/error.h"
#include "text/json_components.h"

namespace rlx {
namespace {

int32_t read_id(const JsonNode& node, const Vocab& vocab) {
  const int64_t id = node.as_int();
  if (id < 0 || id >= vocab.size() || !vocab.is_used(static_cast<int32_t>(id))) {
    throw_error(ErrorCode::kCorruptData,
                "The key '{}' is the id {}, but the vocabulary of {} ids has no such token.",
                node.key(), id, vocab.size());
  }
  return static_cast<int32_t>(id);
}

// A template names its parts: the text ("A") and special tokens, whose ids stand in a table.
PostProcessor make_template(const JsonNode& node, const Vocab& vocab) {
  PostProcessor result;
  bool after_text = false;
  for (const JsonNode& part : node.at("single").elements()) {
    if (const std::optional<JsonNode> sequence = part.find("Sequence")) {
      const JsonNode name = sequence->at("id");
      if (name.as_string() != "A" || after_text) {
        name.refuse("a second text", "templates with the text 'A' once");
      }
      after_text = true;
      continue;
    }
    const JsonNode name = part.at("SpecialToken").at("id");
    const JsonNode ids = node.at("special_tokens").at(name.as_string()).at("ids");
    for (const JsonNode& id : ids.elements()) {
      (after_text ? result.suffix : result.prefix).push_back(read_id(id, vocab));
    }
  }
  if (!after_text) node.at("single").refuse("no text", "templates with the text 'A' once");
  return result;
}

// ["[SEP]", 102]
int32_t read_token_pair(const JsonNode& node, const Vocab& vocab) {
  const std::vector<JsonNode> pair = node.elements();
  if (pair.size() != 2) node.fail_type("a pair [token, id]");
  return read_id(pair[1], vocab);
}

}  // namespace

PostProcessor make_post_processor(const JsonNode& node, const Vocab& vocab) {
  const std::string type = node.at("type").as_string();
  if (type == "Sequence") {
    PostProcessor result;
    for (const JsonNode& step : node.at("processors").elements()) {
      result.wrap(make_post_processor(step, vocab));
    }
    return result;
  }
  if (type == "ByteLevel") return {};  // moves offsets only
  if (type == "TemplateProcessing") return make_template(node, vocab);
  if (type == "BertProcessing" || type == "RobertaProcessing") {
    return {{read_token_pair(node.at("cls"), vocab)}, {read_token_pair(node.at("sep"), vocab)}};
  }
  node.refuse(fmt::format("the post-processor '{}'", type),
              "BertProcessing, ByteLevel, RobertaProcessing, Sequence, TemplateProcessing");
}

}  // namespace rlx
