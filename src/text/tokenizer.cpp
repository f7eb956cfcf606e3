#include "text/tokenizer.h"

#include "base/error.h"
#include "text/byte_level.h"
#include "text/tokenizer_parts.h"
#include "text/unicode.h"

namespace rlx {
namespace {

// One call of `encode`: what its steps share.
class Encoding {
 public:
  Encoding(const TokenizerParts& parts, const EncodeOptions& options)
      : parts_(parts), options_(options) {}

  std::vector<int32_t> run(std::string_view text) {
    if (options_.add_special) ids_ = parts_.post_processor.prefix;
    std::string replaced;
    if (!parts_.keeps_invalid_bytes && valid_utf8_length(text) != text.size()) {
      replaced = replace_invalid_utf8(text);
      text = replaced;
    }
    std::vector<TextSegment> segments;
    parts_.raw_added_tokens.split(text, options_.parse_special, segments);
    for (const TextSegment& segment : segments) {
      if (segment.id != TextSegment::kText) {
        ids_.push_back(segment.id);
      } else {
        encode_bytes(text.substr(segment.begin, segment.end - segment.begin), segment.begin == 0);
      }
    }
    if (options_.add_special) {
      const std::vector<int32_t>& suffix = parts_.post_processor.suffix;
      ids_.insert(ids_.end(), suffix.begin(), suffix.end());
    }
    return std::move(ids_);
  }

 private:
  // A segment that may hold invalid UTF-8: only what is valid goes through the steps that read
  // characters.
  void encode_bytes(std::string_view text, bool begins_input) {
    bool begins_segment = true;
    for (size_t at = 0; at < text.size();) {
      const size_t valid = valid_utf8_length(text, at);
      if (valid > 0) encode_text(text.substr(at, valid), begins_input, begins_segment);
      at += valid;
      const size_t invalid_begin = at;
      while (at < text.size()) {
        const DecodedCharacter c = decode_utf8(text, at);
        if (c.valid) break;
        at += c.length_bytes;
      }
      if (at > invalid_begin) {
        scratch_.clear();
        append_byte_level(text.substr(invalid_begin, at - invalid_begin), scratch_);
        parts_.model->encode(scratch_, ids_);
      }
      begins_segment = begins_input = false;
    }
  }

  void encode_text(std::string_view text, bool begins_input, bool begins_segment) {
    std::string normalized(text);
    if (parts_.normalizer) parts_.normalizer->apply(normalized);
    if (parts_.normalized_added_tokens.empty()) {
      encode_normalized(std::move(normalized), begins_input, begins_segment);
      return;
    }
    std::vector<TextSegment> segments;
    parts_.normalized_added_tokens.split(normalized, options_.parse_special, segments);
    for (const TextSegment& segment : segments) {
      if (segment.id != TextSegment::kText) {
        ids_.push_back(segment.id);
      } else {
        encode_normalized(normalized.substr(segment.begin, segment.end - segment.begin),
                          begins_input && segment.begin == 0, begins_segment || segment.begin > 0);
      }
    }
  }

  void encode_normalized(std::string text, bool begins_input, bool begins_segment) {
    if (text.empty()) return;
    TextPieces pieces;
    pieces.ranges.push_back({0, text.size()});
    pieces.text = std::move(text);
    pieces.begins_input = begins_input;
    pieces.begins_segment = begins_segment;
    if (parts_.pre_tokenizer) parts_.pre_tokenizer->apply(pieces);
    const std::string_view all = pieces.text;
    for (const TextPieces::Range range : pieces.ranges) {
      parts_.model->encode(all.substr(range.begin, range.end - range.begin), ids_);
    }
  }

  const TokenizerParts& parts_;
  const EncodeOptions& options_;
  std::vector<int32_t> ids_;
  std::string scratch_;
};

void check_id(const Vocab& vocab, int32_t id) {
  if (id < 0 || id >= vocab.size()) {
    throw_error(ErrorCode::kOutOfRange,
                "The token id {} is out of range: the vocabulary has {} ids, from 0 on.", id,
                vocab.size());
  }
}

}  // namespace

Tokenizer::Tokenizer(std::unique_ptr<const TokenizerParts> parts) : parts_(std::move(parts)) {
  RLX_CHECK(parts_ != nullptr && parts_->model != nullptr && parts_->decoder != nullptr);
  const auto size = static_cast<size_t>(parts_->vocab.size());
  RLX_CHECK(parts_->is_special.size() == size);
  RLX_CHECK(parts_->is_literal.empty() || parts_->is_literal.size() == size);
}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

std::vector<int32_t> Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  return Encoding(*parts_, options).run(text);
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_special) const {
  std::string bytes = decode_bytes(ids, skip_special);
  return valid_utf8_length(bytes) == bytes.size() ? bytes : replace_invalid_utf8(bytes);
}

std::string Tokenizer::decode_bytes(std::span<const int32_t> ids, bool skip_special) const {
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  for (const int32_t id : ids) {
    check_id(parts_->vocab, id);
    if (skip_special && parts_->is_special[static_cast<size_t>(id)]) continue;
    if (!parts_->vocab.is_used(id)) continue;
    const std::string_view text = parts_->vocab.text(id);
    if (!parts_->is_literal.empty() && parts_->is_literal[static_cast<size_t>(id)]) {
      append_byte_level(text, tokens.emplace_back());
    } else {
      tokens.emplace_back(text);
    }
  }
  parts_->decoder->apply(tokens);
  std::string bytes;
  for (const std::string& token : tokens) bytes += token;
  return bytes;
}

int32_t Tokenizer::vocab_size() const { return parts_->vocab.size(); }

std::string_view Tokenizer::token_text(int32_t id) const {
  check_id(parts_->vocab, id);
  return parts_->vocab.text(id);
}

std::optional<int32_t> Tokenizer::find_token(std::string_view text) const {
  const int32_t id = parts_->vocab.find(text);
  return id == Vocab::kNone ? std::nullopt : std::optional<int32_t>(id);
}

bool Tokenizer::is_special(int32_t id) const {
  check_id(parts_->vocab, id);
  return parts_->is_special[static_cast<size_t>(id)];
}

std::optional<int32_t> Tokenizer::bos_id() const { return parts_->bos_id; }
std::optional<int32_t> Tokenizer::eos_id() const { return parts_->eos_id; }

}  // namespace rlx
