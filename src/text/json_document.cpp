#include "text/json_document.h"

#include "base/error.h"

namespace rlx {
namespace {

std::string join_key(const std::string& parent, std::string_view name) {
  return parent.empty() ? std::string(name) : fmt::format("{}.{}", parent, name);
}

using Json = nlohmann::json;

constexpr size_t kMaxDepth = 64;

class Reader final : public nlohmann::json_sax<Json> {
 public:
  TokenizerDocument take() { return std::move(document_); }

  bool null() override { return value("null", nullptr); }
  bool boolean(bool b) override { return value("a boolean", b); }
  bool number_integer(number_integer_t n) override { return number(n, static_cast<double>(n)); }
  bool number_unsigned(number_unsigned_t n) override {
    // Beyond int64 only a double is left; as an id it is out of range either way.
    const bool fits = n <= static_cast<number_unsigned_t>(INT64_MAX);
    return number(fits ? static_cast<int64_t>(n) : INT64_MAX, static_cast<double>(n));
  }
  bool number_float(number_float_t n, const string_t&) override {
    if (state_ == State::kScoredToken && part_ == 1) {
      document_.scores.push_back(n);
      ++part_;
      return true;
    }
    return value("a number with a fraction", n);
  }
  bool string(string_t& text) override {
    switch (state_) {
      case State::kScoredToken:
        if (part_ != 0) fail_table("a string");
        document_.vocab.add(text);
        ++part_;
        return true;
      case State::kMerges:
        add_merge(text);
        return true;
      case State::kMerge:
        if (part_ >= 2) fail_table("a third string");
        document_.merges.add(text);
        ++part_;
        return true;
      default:
        return value("a string", std::move(text));
    }
  }
  bool binary(binary_t&) override { return value("binary data", nullptr); }

  bool start_object(size_t) override {
    if (state_ == State::kTree && in_model() && key_ == "vocab") {
      start_table(document_.vocab_kind == TokenizerDocument::VocabKind::kNone, State::kTokens);
      document_.vocab_kind = TokenizerDocument::VocabKind::kObject;
      return true;
    }
    return start_container(Json::object(), "an object");
  }
  bool start_array(size_t) override {
    if (state_ == State::kTree && in_model() && key_ == "vocab") {
      start_table(document_.vocab_kind == TokenizerDocument::VocabKind::kNone,
                  State::kScoredTokens);
      document_.vocab_kind = TokenizerDocument::VocabKind::kArray;
      return true;
    }
    if (state_ == State::kTree && in_model() && key_ == "merges") {
      start_table(!document_.has_merges, State::kMerges);
      document_.has_merges = true;
      return true;
    }
    if (state_ == State::kScoredTokens || state_ == State::kMerges) {
      state_ = state_ == State::kMerges ? State::kMerge : State::kScoredToken;
      part_ = 0;
      return true;
    }
    return start_container(Json::array(), "an array");
  }
  bool key(string_t& name) override {
    if (state_ == State::kTokens) {
      document_.vocab.add(name);
    } else {
      key_ = std::move(name);
    }
    return true;
  }
  bool end_object() override { return end_container(); }
  bool end_array() override { return end_container(); }

  bool parse_error(size_t position, const std::string&, const Json::exception& e) override {
    throw_error(ErrorCode::kCorruptData, "The text is not valid JSON at byte {}: {}.", position,
                e.what());
  }

 private:
  enum class State {
    kTree,
    kTokens,        // in model.vocab, an object of ids
    kScoredTokens,  // in model.vocab, an array of pairs
    kScoredToken,   // in one of these pairs
    kMerges,        // in model.merges
    kMerge,         // in one merge written as a pair
  };

  bool in_model() const { return containers_.size() == 2 && in_model_; }

  void start_table(bool is_first, State state) {
    if (!is_first) {
      throw_error(ErrorCode::kCorruptData, "The key 'model.{}' occurs twice.", key_);
    }
    state_ = state;
  }

  [[noreturn]] void fail_table(std::string_view found) const {
    switch (state_) {
      case State::kTokens:
        throw_error(ErrorCode::kCorruptData,
                    "In 'model.vocab' the value of '{}' is {}, but an integer id is expected.",
                    document_.vocab[document_.vocab.size() - 1], found);
      case State::kScoredTokens:
      case State::kScoredToken:
        throw_error(ErrorCode::kCorruptData,
                    "Entry {} of 'model.vocab' has {}, but a pair [token, score] is expected.",
                    document_.scores.size(), found);
      default:
        throw_error(ErrorCode::kCorruptData,
                    "Entry {} of 'model.merges' has {}, but two tokens are expected, as \"a b\" or "
                    "as [\"a\", \"b\"].",
                    (document_.merges.size() - (state_ == State::kMerge ? part_ : 0)) / 2, found);
    }
  }

  void add_merge(std::string_view text) {
    // A token is never empty but may begin with a space in odd vocabularies.
    const size_t space = text.find(' ', 1);
    if (text.empty() || space == std::string_view::npos || space + 1 == text.size()) {
      fail_table("one token");
    }
    document_.merges.add(text.substr(0, space));
    document_.merges.add(text.substr(space + 1));
  }

  bool number(int64_t integer, double real) {
    if (state_ == State::kTokens) {
      document_.ids.push_back(integer);
      return true;
    }
    if (state_ == State::kScoredToken && part_ == 1) {
      document_.scores.push_back(real);
      ++part_;
      return true;
    }
    return value("a number", integer);
  }

  bool value(std::string_view found, Json v) {
    if (state_ != State::kTree) fail_table(found);
    insert(std::move(v));
    return true;
  }

  Json* insert(Json v) {
    if (containers_.empty()) {
      document_.root = std::move(v);
      return &document_.root;
    }
    Json& parent = *containers_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(v));
      return &parent.back();
    }
    return &(parent[key_] = std::move(v));
  }

  bool start_container(Json empty, std::string_view found) {
    if (state_ != State::kTree) fail_table(found);
    if (containers_.size() == kMaxDepth) {
      throw_error(ErrorCode::kCorruptData, "The JSON is nested deeper than {} levels.", kMaxDepth);
    }
    if (containers_.size() == 1) in_model_ = key_ == "model" && empty.is_object();
    // A pointer stays valid while its container is open: only the innermost one grows.
    containers_.push_back(insert(std::move(empty)));
    return true;
  }

  bool end_container() {
    switch (state_) {
      case State::kTree:
        containers_.pop_back();
        break;
      case State::kScoredToken:
        if (part_ != 2) fail_table("fewer than two values");
        state_ = State::kScoredTokens;
        break;
      case State::kMerge:
        if (part_ != 2) fail_table("fewer than two strings");
        state_ = State::kMerges;
        break;
      default:
        state_ = State::kTree;
    }
    return true;
  }

  TokenizerDocument document_;
  State state_ = State::kTree;
  std::vector<Json*> containers_;
  std::string key_;
  bool in_model_ = false;
  size_t part_ = 0;  // values read of the pair
};

}  // namespace

TokenizerDocument read_tokenizer_document(std::string_view json_text) {
  Reader reader;
  Json::sax_parse(json_text, &reader);
  TokenizerDocument document = reader.take();
  if (!document.root.is_object()) JsonNode(document.root, "(root)").fail_type("an object");
  return document;
}

JsonNode JsonNode::at(std::string_view name) const {
  std::optional<JsonNode> node = find(name);
  if (!node) {
    throw_error(ErrorCode::kCorruptData, "The key '{}' is missing.", join_key(key_, name));
  }
  return *node;
}

std::optional<JsonNode> JsonNode::find(std::string_view name) const {
  if (!value_->is_object()) fail_type("an object");
  const auto found = value_->find(name);
  if (found == value_->end() || found->is_null()) return std::nullopt;
  return JsonNode(*found, join_key(key_, name));
}

std::vector<JsonNode> JsonNode::elements() const {
  if (!value_->is_array()) fail_type("an array");
  std::vector<JsonNode> nodes;
  nodes.reserve(value_->size());
  for (size_t i = 0; i < value_->size(); ++i) {
    nodes.emplace_back((*value_)[i], fmt::format("{}[{}]", key_, i));
  }
  return nodes;
}

std::vector<std::pair<std::string, JsonNode>> JsonNode::members() const {
  if (!value_->is_object()) fail_type("an object");
  std::vector<std::pair<std::string, JsonNode>> nodes;
  for (const auto& [name, value] : value_->items()) {
    nodes.emplace_back(name, JsonNode(value, join_key(key_, name)));
  }
  return nodes;
}

const std::string& JsonNode::as_string() const {
  if (!value_->is_string()) fail_type("a string");
  return value_->get_ref<const std::string&>();
}

bool JsonNode::as_bool() const {
  if (!value_->is_boolean()) fail_type("a boolean");
  return value_->get<bool>();
}

int64_t JsonNode::as_int() const {
  if (!value_->is_number_integer()) fail_type("an integer");
  return value_->get<int64_t>();
}

double JsonNode::as_number() const {
  if (!value_->is_number()) fail_type("a number");
  return value_->get<double>();
}

std::string JsonNode::string_or(std::string_view name, std::string_view fallback) const {
  const std::optional<JsonNode> node = find(name);
  return node ? node->as_string() : std::string(fallback);
}

bool JsonNode::bool_or(std::string_view name, bool fallback) const {
  const std::optional<JsonNode> node = find(name);
  return node ? node->as_bool() : fallback;
}

int64_t JsonNode::int_or(std::string_view name, int64_t fallback) const {
  const std::optional<JsonNode> node = find(name);
  return node ? node->as_int() : fallback;
}

void JsonNode::refuse(std::string_view what, std::string_view supported) const {
  throw_error(ErrorCode::kUnsupported,
              "The key '{}' has {}, which is not supported. Supported: {}.", key_, what, supported);
}

void JsonNode::fail_type(std::string_view expected) const {
  throw_error(ErrorCode::kCorruptData, "The key '{}' is {} {}, but {} is expected.", key_,
              value_->is_array() || value_->is_object() ? "an" : "a", value_->type_name(),
              expected);
}

}  // namespace rlx
