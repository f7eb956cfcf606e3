#include "text/tokenizer.h"
#include "text/unicode.h"

namespace rlx {
namespace {

// The window holds the ids whose text decides what a new id adds: a decoder may treat the first
// token of a text in its own way, and an incomplete character spans at most 4 tokens. When the
// window has kMaxWindow ids, all but the last kContext are forgotten.
constexpr size_t kMaxWindow = 24;
constexpr size_t kContext = 8;

}  // namespace

StreamDecoder::StreamDecoder(const Tokenizer& tokenizer, bool skip_special)
    : tokenizer_(&tokenizer), skip_special_(skip_special) {}

std::string StreamDecoder::push(int32_t id) {
  // Ids without text would push those with text out of the window.
  const bool is_special = tokenizer_->is_special(id);
  if ((is_special && skip_special_) || tokenizer_->token_text(id).empty()) return {};

  window_.push_back(id);
  const std::string bytes = tokenizer_->decode_bytes(window_, skip_special_);
  const size_t tail = incomplete_utf8_tail(bytes);
  const size_t complete = bytes.size() - tail;
  std::string text;
  if (complete > emitted_bytes_) {
    text = replace_invalid_utf8(
        std::string_view(bytes).substr(emitted_bytes_, complete - emitted_bytes_));
    emitted_bytes_ = complete;
  }
  if (window_.size() == kMaxWindow) {
    const size_t pending = bytes.size() - emitted_bytes_;
    window_.erase(window_.begin(), window_.end() - static_cast<ptrdiff_t>(kContext));
    emitted_bytes_ = tokenizer_->decode_bytes(window_, skip_special_).size() - pending;
  }
  return text;
}

std::string StreamDecoder::finish() {
  std::string text;
  if (!window_.empty()) {
    const std::string bytes = tokenizer_->decode_bytes(window_, skip_special_);
    if (bytes.size() > emitted_bytes_) {
      text = replace_invalid_utf8(std::string_view(bytes).substr(emitted_bytes_));
    }
  }
  window_.clear();
  emitted_bytes_ = 0;
  return text;
}

}  // namespace rlx
