#include <cmath>

#include "base/error.h"
#include "text/bpe.h"
#include "text/byte_level.h"
#include "text/json_components.h"
#include "text/tokenizer.h"
#include "text/tokenizer_parts.h"
#include "text/unigram.h"
#include "text/word_piece.h"

namespace rlx {
namespace {

using VocabKind = TokenizerDocument::VocabKind;

class Loader {
 public:
  explicit Loader(std::string_view json_text)
      : document_(read_tokenizer_document(json_text)), root_(document_.root, "") {}

  Tokenizer run() {
    const JsonNode model = root_.at("model");
    load_vocab();
    load_model(model);  // before the added tokens: they have no score and are no unknown token
    load_added_tokens();
    parts_->is_special.resize(static_cast<size_t>(parts_->vocab.size()));
    is_added_.resize(parts_->is_special.size());

    if (const auto node = root_.find("pre_tokenizer"))
      parts_->pre_tokenizer = make_pre_tokenizer(*node);
    if (const auto node = root_.find("decoder")) {
      parts_->decoder = make_decoder(*node);
      if (node->at("type").as_string() == "ByteLevel") parts_->is_literal = std::move(is_added_);
    } else {
      parts_->decoder = make_join_decoder();
    }
    if (const auto node = root_.find("post_processor")) {
      parts_->post_processor = make_post_processor(*node, parts_->vocab);
      const PostProcessor& added = parts_->post_processor;
      if (!added.prefix.empty()) parts_->bos_id = added.prefix.front();
      if (!added.suffix.empty()) parts_->eos_id = added.suffix.back();
    }
    parts_->keeps_invalid_bytes = has_all_bytes() && ends_in_byte_level();
    return Tokenizer(std::move(parts_));
  }

 private:
  void load_vocab() {
    if (document_.vocab_kind == VocabKind::kNone) {
      throw_error(ErrorCode::kCorruptData,
                  "The key 'model.vocab' is missing or neither an object nor an array.");
    }
    with_context("model.vocab", [&] {
      const TextTable& texts = document_.vocab;
      if (texts.size() == 0) throw_error(ErrorCode::kCorruptData, "The vocabulary is empty.");
      parts_->vocab.reserve(texts.size(), texts.text_bytes());
      for (size_t i = 0; i < texts.size(); ++i) {
        if (i + 16 < texts.size()) parts_->vocab.prefetch(texts[i + 16]);
        const int64_t id =
            document_.vocab_kind == VocabKind::kObject ? document_.ids[i] : static_cast<int64_t>(i);
        add_token(id, texts[i], true);
      }
    });
  }

  void add_token(int64_t id, std::string_view text, bool in_model) {
    if (id < 0 || id >= Vocab::kMaxSize) {
      throw_error(ErrorCode::kOutOfRange,
                  "The token '{}' has the id {}, but ids must be in [0, {}).", text, id,
                  Vocab::kMaxSize);
    }
    parts_->vocab.add(static_cast<int32_t>(id), text, in_model);
  }

  void load_model(const JsonNode& model) {
    const std::string type = model.find("type") ? model.at("type").as_string() : infer_type(model);
    const VocabKind expected = type == "Unigram" ? VocabKind::kArray : VocabKind::kObject;
    if ((type == "BPE" || type == "WordPiece" || type == "Unigram") &&
        document_.vocab_kind != expected) {
      throw_error(ErrorCode::kCorruptData, "The key 'model.vocab' is an {}, but {} has an {}.",
                  expected == VocabKind::kArray ? "object" : "array", type,
                  expected == VocabKind::kArray ? "array of [token, score]" : "object of ids");
    }
    if (type == "BPE") {
      load_bpe(model);
    } else if (type == "WordPiece") {
      load_word_piece(model);
    } else if (type == "Unigram") {
      load_unigram(model);
    } else {
      model.refuse(fmt::format("the model '{}'", type), "BPE, Unigram, WordPiece");
    }
  }

  // Files from before the field was written.
  std::string infer_type(const JsonNode& model) const {
    if (document_.has_merges) return "BPE";
    if (document_.vocab_kind == VocabKind::kArray) return "Unigram";
    if (model.find("continuing_subword_prefix")) return "WordPiece";
    throw_error(ErrorCode::kCorruptData, "The key 'model.type' is missing.");
  }

  void load_bpe(const JsonNode& model) {
    if (!document_.has_merges) {
      throw_error(ErrorCode::kCorruptData, "The key 'model.merges' is missing or not an array.");
    }
    if (const auto dropout = model.find("dropout"); dropout && dropout->as_number() != 0) {
      dropout->refuse("random dropout", "none");
    }
    BpeOptions options;
    options.unk_token = model.string_or("unk_token", "");
    options.continuing_subword_prefix = model.string_or("continuing_subword_prefix", "");
    options.end_of_word_suffix = model.string_or("end_of_word_suffix", "");
    options.fuse_unk = model.bool_or("fuse_unk", false);
    options.byte_fallback = model.bool_or("byte_fallback", false);
    options.ignore_merges = model.bool_or("ignore_merges", false);
    std::vector<Bpe::Merge> merges(document_.merges.size() / 2);
    for (size_t i = 0; i < merges.size(); ++i) {
      merges[i] = {document_.merges[2 * i], document_.merges[2 * i + 1]};
    }
    parts_->model = with_context("model.merges", [&] {
      return std::make_unique<const Bpe>(parts_->vocab, merges, std::move(options));
    });
    is_bpe_ = true;
  }

  void load_word_piece(const JsonNode& model) {
    WordPieceOptions options;
    options.unk_token = model.string_or("unk_token", "[UNK]");
    options.continuing_subword_prefix = model.string_or("continuing_subword_prefix", "##");
    const int64_t limit = model.int_or("max_input_chars_per_word", 100);
    if (limit < 0) {
      throw_error(ErrorCode::kCorruptData,
                  "The key 'model.max_input_chars_per_word' is {}, but at least 0 is expected.",
                  limit);
    }
    options.max_characters_per_word = static_cast<size_t>(limit);
    parts_->model = with_context("model.unk_token", [&] {
      return std::make_unique<const WordPiece>(parts_->vocab, std::move(options));
    });
  }

  void load_unigram(const JsonNode& model) {
    for (size_t i = 0; i < document_.scores.size(); ++i) {
      if (!std::isfinite(document_.scores[i])) {
        throw_error(ErrorCode::kCorruptData,
                    "The score of entry {} of 'model.vocab' is not finite.", i);
      }
    }
    std::optional<int32_t> unk_id;
    if (const auto node = model.find("unk_id")) {
      const int64_t id = node->as_int();
      if (id < 0 || id >= parts_->vocab.size()) {
        throw_error(ErrorCode::kOutOfRange,
                    "The key 'model.unk_id' is {}, but the vocabulary has {} tokens.", id,
                    parts_->vocab.size());
      }
      unk_id = static_cast<int32_t>(id);
    }
    parts_->model = std::make_unique<const Unigram>(parts_->vocab, std::move(document_.scores),
                                                    unk_id, model.bool_or("byte_fallback", false));
  }

  void load_added_tokens() {
    if (const auto node = root_.find("normalizer")) parts_->normalizer = make_normalizer(*node);
    const auto list = root_.find("added_tokens");
    if (!list) return;
    for (const JsonNode& node : list->elements()) {
      AddedToken token;
      token.content = node.at("content").as_string();
      token.special = node.bool_or("special", false);
      token.lstrip = node.bool_or("lstrip", false);
      token.rstrip = node.bool_or("rstrip", false);
      token.single_word = node.bool_or("single_word", false);
      const bool normalized = node.bool_or("normalized", !token.special);
      if (token.content.empty()) {
        throw_error(ErrorCode::kCorruptData, "The key '{}.content' is empty.", node.key());
      }
      const int64_t id = node.at("id").as_int();
      with_context(node.key(), [&] { add_token(id, token.content, false); });
      token.id = static_cast<int32_t>(id);
      const auto size = static_cast<size_t>(parts_->vocab.size());
      parts_->is_special.resize(size);
      is_added_.resize(size);
      parts_->is_special[static_cast<size_t>(id)] = token.special;
      is_added_[static_cast<size_t>(id)] = true;
      if (normalized) {
        if (parts_->normalizer) parts_->normalizer->apply(token.content);
        parts_->normalized_added_tokens.add(std::move(token));
      } else {
        parts_->raw_added_tokens.add(std::move(token));
      }
    }
  }

  bool has_all_bytes() const {
    for (uint32_t byte = 0; byte < 256; ++byte) {
      if (parts_->vocab.find(byte_level_character(static_cast<uint8_t>(byte))) == Vocab::kNone) {
        return false;
      }
    }
    return true;
  }

  bool ends_in_byte_level() const {
    std::optional<JsonNode> node = root_.find("pre_tokenizer");
    while (is_bpe_ && node && node->at("type").as_string() == "Sequence") {
      const std::vector<JsonNode> steps = node->at("pretokenizers").elements();
      if (steps.empty()) return false;
      node = steps.back();
    }
    return is_bpe_ && node && node->at("type").as_string() == "ByteLevel";
  }

  TokenizerDocument document_;
  JsonNode root_;
  std::unique_ptr<TokenizerParts> parts_ = std::make_unique<TokenizerParts>();
  bool is_bpe_ = false;
  std::vector<bool> is_added_;  // per id
};

}  // namespace

Tokenizer make_tokenizer_from_json(std::string_view json_text,
                                   const std::string& file_name_for_errors) {
  return with_context(file_name_for_errors, [&] { return Loader(json_text).run(); });
}

}  // namespace rlx
