// Reads a tokenizer.json: the large tables (vocabulary and merges) straight into flat arrays, the
// rest into a small tree whose nodes know their own key, so that errors name it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rlx {

// Texts of a table, one behind the other.
class TextTable {
 public:
  void add(std::string_view text) {
    texts_ += text;
    ends_.push_back(texts_.size());
  }
  size_t size() const { return ends_.size(); }
  size_t text_bytes() const { return texts_.size(); }
  std::string_view operator[](size_t i) const {
    const size_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(texts_).substr(begin, ends_[i] - begin);
  }

 private:
  std::string texts_;
  std::vector<size_t> ends_;
};

struct TokenizerDocument {
  enum class VocabKind { kNone, kObject, kArray };

  nlohmann::json root;  // without model.vocab and model.merges
  VocabKind vocab_kind = VocabKind::kNone;
  TextTable vocab;             // token texts in file order
  std::vector<int64_t> ids;    // of kObject: "token": id
  std::vector<double> scores;  // of kArray: ["token", score]
  bool has_merges = false;
  TextTable merges;  // two entries per merge: left, right
};

// Throws kCorruptData naming the byte or key: not JSON, not an object, nested deeper than 64, or a
// table of the wrong form.
TokenizerDocument read_tokenizer_document(std::string_view json_text);

// A value of the tree with its key path. Getters throw kCorruptData naming the key, the type found
// and the type expected.
class JsonNode {
 public:
  JsonNode(const nlohmann::json& value, std::string key) : value_(&value), key_(std::move(key)) {}

  const std::string& key() const { return key_; }
  JsonNode at(std::string_view name) const;                       // must be there and not null
  std::optional<JsonNode> find(std::string_view name) const;      // empty if not there or null
  std::vector<JsonNode> elements() const;                         // of an array
  std::vector<std::pair<std::string, JsonNode>> members() const;  // of an object

  bool is_string() const { return value_->is_string(); }
  const std::string& as_string() const;
  bool as_bool() const;
  int64_t as_int() const;
  double as_number() const;

  std::string string_or(std::string_view name, std::string_view fallback) const;
  bool bool_or(std::string_view name, bool fallback) const;
  int64_t int_or(std::string_view name, int64_t fallback) const;

  // Refuses this node: it is well-formed but names something that is not supported.
  [[noreturn]] void refuse(std::string_view what, std::string_view supported) const;
  [[noreturn]] void fail_type(std::string_view expected) const;

 private:
  const nlohmann::json* value_;
  std::string key_;
};

}  // namespace rlx
