#include <cmath>

#include "base/error.h"
#include "text/bpe.h"
#include "text/byte_level.h"
#include "text/gguf_pre.h"
#include "text/sentencepiece_bpe.h"
#include "text/tokenizer.h"
#include "text/tokenizer_parts.h"
#include "text/word_piece.h"

namespace rlx {
namespace {

constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581, which stands for a space

// The values of tokenizer.ggml.token_type.
enum TokenType : int32_t {
  kUndefined = 0,
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6,
};

class Loader {
 public:
  explicit Loader(const GgufVocab& source) : source_(source) {}

  Tokenizer run() {
    load_tokens();
    if (source_.model == "gpt2") {
      load_byte_level_bpe();
    } else if (source_.model == "llama") {
      load_sentencepiece_bpe();
    } else if (source_.model == "bert") {
      load_word_piece();
    } else {
      throw_error(
          ErrorCode::kUnsupported,
          "The key 'tokenizer.ggml.model' is '{}', which is not supported. Supported: bert, "
          "gpt2, llama.",
          source_.model);
    }
    return Tokenizer(std::move(parts_));
  }

 private:
  int32_t type_of(size_t id) const {
    return source_.token_types.empty() ? kNormal : source_.token_types[id];
  }

  void check_count(std::string_view key, size_t count) const {
    if (count != 0 && count != source_.tokens.size()) {
      throw_error(ErrorCode::kCorruptData, "The key '{}' has {} entries, but there are {} tokens.",
                  key, count, source_.tokens.size());
    }
  }

  // The id of a key, checked.
  std::optional<int32_t> checked_id(std::string_view key, std::optional<int32_t> id) const {
    if (id && (*id < 0 || static_cast<size_t>(*id) >= source_.tokens.size())) {
      throw_error(ErrorCode::kOutOfRange, "The key '{}' is {}, but there are {} tokens.", key, *id,
                  source_.tokens.size());
    }
    return id;
  }

  int32_t required_id(std::string_view key, std::optional<int32_t> id) const {
    if (!id) throw_error(ErrorCode::kCorruptData, "The key '{}' is missing.", key);
    return *checked_id(key, id);
  }

  void load_tokens() {
    const std::vector<std::string_view>& tokens = source_.tokens;
    if (tokens.empty() || tokens.size() > static_cast<size_t>(Vocab::kMaxSize)) {
      throw_error(ErrorCode::kCorruptData,
                  "The key 'tokenizer.ggml.tokens' has {} entries, but 1 to {} are expected.",
                  tokens.size(), Vocab::kMaxSize);
    }
    check_count("tokenizer.ggml.token_type", source_.token_types.size());
    check_count("tokenizer.ggml.scores", source_.scores.size());
    size_t text_bytes = 0;
    for (const std::string_view token : tokens) text_bytes += token.size();
    parts_->vocab.reserve(tokens.size(), text_bytes);
    parts_->is_special.resize(tokens.size());
    with_context("tokenizer.ggml.tokens", [&] {
      parts_->vocab.extend_to(static_cast<int32_t>(tokens.size()));
      for (size_t id = 0; id < tokens.size(); ++id) {
        if (id + 16 < tokens.size()) parts_->vocab.prefetch(tokens[id + 16]);
        if (tokens[id].empty()) continue;
        const int32_t type = type_of(id);
        parts_->vocab.add(static_cast<int32_t>(id), tokens[id],
                          type != kControl && type != kUnknown);
      }
    });
    for (size_t id = 0; id < tokens.size(); ++id) {
      const int32_t type = type_of(id);
      if (type < kUndefined || type > kByte) {
        throw_error(
            ErrorCode::kCorruptData,
            "The key 'tokenizer.ggml.token_type' has {} for token {}, but types are 0 to 6.", type,
            id);
      }
      const bool is_special = type == kControl || type == kUnknown;
      parts_->is_special[id] = is_special;
      if ((is_special || type == kUserDefined) && !tokens[id].empty()) {
        parts_->raw_added_tokens.add({.content = std::string(tokens[id]),
                                      .id = static_cast<int32_t>(id),
                                      .special = is_special});
      }
    }
    parts_->bos_id = checked_id("tokenizer.ggml.bos_token_id", source_.bos);
    parts_->eos_id = checked_id("tokenizer.ggml.eos_token_id", source_.eos);
    checked_id("tokenizer.ggml.unknown_token_id", source_.unk);
    checked_id("tokenizer.ggml.padding_token_id", source_.pad);
  }

  void add_bos_and_eos(bool bos_default) {
    if (source_.add_bos.value_or(bos_default)) {
      parts_->post_processor.prefix = {required_id("tokenizer.ggml.bos_token_id", source_.bos)};
    }
    if (source_.add_eos.value_or(false)) {
      parts_->post_processor.suffix = {required_id("tokenizer.ggml.eos_token_id", source_.eos)};
    }
  }

  void load_byte_level_bpe() {
    if (source_.pre.empty()) {
      throw_error(ErrorCode::kUnsupported,
                  "The key 'tokenizer.ggml.pre' is missing, so it is not known how text is split "
                  "into words. Known values: {}.",
                  known_gguf_pre_names());
    }
    const GgufPre& pre = find_gguf_pre(source_.pre);
    std::vector<Bpe::Merge> merges;
    merges.reserve(source_.merges.size());
    for (size_t rank = 0; rank < source_.merges.size(); ++rank) {
      const std::string_view merge = source_.merges[rank];
      const size_t space = merge.find(' ', 1);
      if (merge.empty() || space == std::string_view::npos || space + 1 == merge.size()) {
        throw_error(
            ErrorCode::kCorruptData,
            "Entry {} of 'tokenizer.ggml.merges' is '{}', but two tokens with a space between "
            "are expected.",
            rank, merge);
      }
      merges.push_back({merge.substr(0, space), merge.substr(space + 1)});
    }
    BpeOptions options;
    options.ignore_merges = pre.ignore_merges;
    parts_->model = with_context("tokenizer.ggml.merges", [&] {
      return std::make_unique<const Bpe>(parts_->vocab, merges, std::move(options));
    });
    if (pre.nfc) parts_->normalizer = make_unicode_normalizer(UnicodeForm::kNfc);
    std::vector<PreTokenizerPtr> steps;
    for (const std::string_view pattern : pre.patterns) {
      steps.push_back(make_regex_split(pattern, SplitBehavior::kIsolated, false));
    }
    steps.push_back(make_byte_level(source_.add_space_prefix.value_or(false), false));
    parts_->pre_tokenizer = make_pre_tokenizer_sequence(std::move(steps));
    parts_->decoder = make_byte_level_decoder();
    parts_->is_literal.resize(source_.tokens.size());
    for (size_t id = 0; id < source_.tokens.size(); ++id) {
      const int32_t type = type_of(id);
      parts_->is_literal[id] = type == kControl || type == kUnknown || type == kUserDefined;
    }
    parts_->keeps_invalid_bytes = true;
    for (uint32_t byte = 0; byte < 256; ++byte) {
      parts_->keeps_invalid_bytes &=
          parts_->vocab.find(byte_level_character(static_cast<uint8_t>(byte))) != Vocab::kNone;
    }
    add_bos_and_eos(pre.add_bos);
  }

  void load_sentencepiece_bpe() {
    if (source_.scores.empty()) {
      throw_error(ErrorCode::kCorruptData, "The key 'tokenizer.ggml.scores' is missing.");
    }
    std::vector<bool> can_merge(source_.tokens.size());
    for (size_t id = 0; id < can_merge.size(); ++id) {
      if (!std::isfinite(source_.scores[id])) {
        throw_error(ErrorCode::kCorruptData,
                    "The key 'tokenizer.ggml.scores' has a value for token {} that is not finite.",
                    id);
      }
      can_merge[id] = type_of(id) != kByte;
    }
    parts_->model = std::make_unique<const SentencePieceBpe>(parts_->vocab, source_.scores,
                                                             std::move(can_merge), source_.unk);
    const bool add_space = source_.add_space_prefix.value_or(true);
    std::vector<NormalizerPtr> normalizers;
    std::vector<DecoderPtr> decoders;
    if (add_space) normalizers.push_back(make_prepend_normalizer(std::string(kSpaceMark)));
    normalizers.push_back(make_replace_normalizer(" ", std::string(kSpaceMark)));
    decoders.push_back(make_replace_decoder(std::string(kSpaceMark), " "));
    decoders.push_back(make_byte_fallback_decoder());
    decoders.push_back(make_fuse_decoder());
    if (add_space) decoders.push_back(make_strip_decoder(" ", 1, 0));
    parts_->normalizer = make_normalizer_sequence(std::move(normalizers));
    parts_->decoder = make_decoder_sequence(std::move(decoders));
    add_bos_and_eos(true);
  }

  // The file spells the first token of a word with the space mark and the others bare, not with
  // "##".
  void load_word_piece() {
    const int32_t unk = required_id("tokenizer.ggml.unknown_token_id", source_.unk);
    WordPieceOptions options;
    options.unk_token = std::string(parts_->vocab.text(unk));
    options.word_prefix = std::string(kSpaceMark);
    options.continuing_subword_prefix.clear();
    parts_->model = std::make_unique<const WordPiece>(parts_->vocab, std::move(options));

    BertNormalizerOptions normalizer;
    normalizer.lowercase = normalizer.strip_accents = source_.lowercase.value_or(true);
    parts_->normalizer = make_bert_normalizer(normalizer);
    parts_->pre_tokenizer = make_bert_pre_tokenizer();

    std::vector<DecoderPtr> decoders;
    decoders.push_back(make_replace_decoder(std::string(kSpaceMark), " "));
    decoders.push_back(make_clean_up_decoder());
    decoders.push_back(make_fuse_decoder());
    decoders.push_back(make_strip_decoder(" ", 1, 0));
    parts_->decoder = make_decoder_sequence(std::move(decoders));

    // Older files call them beginning and end of text.
    const std::optional<int32_t> cls =
        checked_id("tokenizer.ggml.cls_token_id", source_.cls ? source_.cls : source_.bos);
    const std::optional<int32_t> sep =
        checked_id("tokenizer.ggml.seperator_token_id", source_.sep ? source_.sep : source_.eos);
    if (source_.add_bos.value_or(true)) {
      parts_->post_processor.prefix = {required_id("tokenizer.ggml.cls_token_id", cls)};
    }
    if (source_.add_eos.value_or(true)) {
      parts_->post_processor.suffix = {required_id("tokenizer.ggml.seperator_token_id", sep)};
    }
    parts_->bos_id = cls;
    parts_->eos_id = sep;
  }

  const GgufVocab& source_;
  std::unique_ptr<TokenizerParts> parts_ = std::make_unique<TokenizerParts>();
};

}  // namespace

Tokenizer make_tokenizer_from_gguf(const GgufVocab& vocab,
                                   const std::string& file_name_for_errors) {
  return with_context(file_name_for_errors, [&] { return Loader(vocab).run(); });
}

}  // namespace rlx
