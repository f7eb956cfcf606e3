#include "text/normalizer.h"

#include <utf8proc.h>

#include <cstdlib>

#include "base/error.h"
#include "text/byte_level.h"
#include "text/regex.h"
#include "text/unicode.h"

namespace rlx {
namespace {

bool is_ascii(std::string_view text) {
  for (const char c : text) {
    if (static_cast<uint8_t>(c) >= 0x80) return false;
  }
  return true;
}

// Calls rewrite(code_point, out) for each character and takes what it appended.
template <typename Rewrite>
void rewrite_characters(std::string& text, Rewrite&& rewrite) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const DecodedCharacter c = decode_utf8(text, at);
    rewrite(c.code_point, out);
    at += c.length_bytes;
  }
  text = std::move(out);
}

void append_lowercase(uint32_t c, std::string& out) {
  if (c < 0x80) {
    out += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  } else if (c == 0x130) {
    // The one character whose lower case is two (SpecialCasing.txt): i with a combining dot.
    out += "i\xCC\x87";
  } else {
    append_utf8(static_cast<uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))), out);
  }
}

class UnicodeNormalizer final : public TextNormalizer {
 public:
  explicit UnicodeNormalizer(UnicodeForm form) : form_(form) {}

  void apply(std::string& text) const override {
    if (is_ascii(text)) return;  // every form leaves ASCII as it is
    int options = UTF8PROC_STABLE;
    const bool composes = form_ == UnicodeForm::kNfc || form_ == UnicodeForm::kNfkc;
    options |= composes ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE;
    if (form_ == UnicodeForm::kNfkc || form_ == UnicodeForm::kNfkd) options |= UTF8PROC_COMPAT;
    utf8proc_uint8_t* mapped = nullptr;
    const utf8proc_ssize_t size =
        utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                     static_cast<utf8proc_ssize_t>(text.size()), &mapped,
                     static_cast<utf8proc_option_t>(options));
    if (size < 0) {
      throw_error(size == UTF8PROC_ERROR_NOMEM ? ErrorCode::kOutOfMemory : ErrorCode::kInternal,
                  "A text of {} bytes cannot be normalised: {}.", text.size(),
                  utf8proc_errmsg(size));
    }
    text.assign(reinterpret_cast<const char*>(mapped), static_cast<size_t>(size));
    std::free(mapped);
  }

 private:
  UnicodeForm form_;
};

class LowercaseNormalizer final : public TextNormalizer {
 public:
  void apply(std::string& text) const override { rewrite_characters(text, append_lowercase); }
};

class StripAccentsNormalizer final : public TextNormalizer {
 public:
  void apply(std::string& text) const override {
    if (is_ascii(text)) return;
    rewrite_characters(text, [](uint32_t c, std::string& out) {
      if (!is_nonspacing_mark(c)) append_utf8(c, out);
    });
  }
};

class StripNormalizer final : public TextNormalizer {
 public:
  StripNormalizer(bool left, bool right) : left_(left), right_(right) {}

  void apply(std::string& text) const override {
    size_t begin = 0, end = text.size();
    while (left_ && begin < end) {
      const DecodedCharacter c = decode_utf8(text, begin);
      if (!is_white_space(c.code_point)) break;
      begin += c.length_bytes;
    }
    while (right_ && begin < end) {
      const size_t last = previous_utf8(text, end);
      if (!is_white_space(decode_utf8(text, last).code_point)) break;
      end = last;
    }
    text = text.substr(begin, end - begin);
  }

 private:
  bool left_, right_;
};

class PrependNormalizer final : public TextNormalizer {
 public:
  explicit PrependNormalizer(std::string prefix) : prefix_(std::move(prefix)) {}
  void apply(std::string& text) const override {
    if (!text.empty()) text.insert(0, prefix_);
  }

 private:
  std::string prefix_;
};

class ReplaceNormalizer final : public TextNormalizer {
 public:
  ReplaceNormalizer(std::string from, std::string to)
      : from_(std::move(from)), to_(std::move(to)) {}
  void apply(std::string& text) const override { replace_all(text, from_, to_); }

 private:
  std::string from_, to_;
};

class RegexReplaceNormalizer final : public TextNormalizer {
 public:
  RegexReplaceNormalizer(std::string_view pattern, std::string to)
      : regex_(pattern), to_(std::move(to)) {}

  // Decoders apply this to bytes, so what is not UTF-8 is stepped over.
  void apply(std::string& text) const override {
    std::string out;
    for (size_t at = 0; at < text.size();) {
      const size_t valid = valid_utf8_length(text, at);
      replace_matches(std::string_view(text).substr(at, valid), out);
      at += valid;
      if (at == text.size()) break;
      const size_t invalid = decode_utf8(text, at).length_bytes;
      out.append(text, at, invalid);
      at += invalid;
    }
    text = std::move(out);
  }

 private:
  void replace_matches(std::string_view text, std::string& out) const {
    size_t copied = 0;
    regex_.for_each_match(text, [&](size_t begin, size_t end) {
      out += text.substr(copied, begin - copied);
      out += to_;
      copied = end;
    });
    out += text.substr(copied);
  }

  Regex regex_;
  std::string to_;
};

class BertNormalizer final : public TextNormalizer {
 public:
  explicit BertNormalizer(const BertNormalizerOptions& options) : options_(options) {}

  void apply(std::string& text) const override {
    if (options_.clean_text) {
      rewrite_characters(text, [](uint32_t c, std::string& out) {
        if (c == 0 || c == 0xFFFD || is_bert_control(c)) return;
        append_utf8(is_white_space(c) ? ' ' : c, out);
      });
    }
    if (options_.handle_chinese_chars) {
      rewrite_characters(text, [](uint32_t c, std::string& out) {
        const bool is_cjk = is_cjk_ideograph(c);
        if (is_cjk) out += ' ';
        append_utf8(c, out);
        if (is_cjk) out += ' ';
      });
    }
    if (options_.strip_accents) {
      nfd_.apply(text);
      strip_accents_.apply(text);
    }
    if (options_.lowercase) rewrite_characters(text, append_lowercase);
  }

 private:
  BertNormalizerOptions options_;
  UnicodeNormalizer nfd_{UnicodeForm::kNfd};
  StripAccentsNormalizer strip_accents_;
};

class ByteLevelNormalizer final : public TextNormalizer {
 public:
  void apply(std::string& text) const override {
    std::string out;
    append_byte_level(text, out);
    text = std::move(out);
  }
};

class NmtNormalizer final : public TextNormalizer {
 public:
  void apply(std::string& text) const override {
    rewrite_characters(text, [](uint32_t c, std::string& out) {
      const bool removed = (c >= 0x01 && c <= 0x08) || c == 0x0B || (c >= 0x0E && c <= 0x1F) ||
                           c == 0x7F || c == 0x8F || c == 0x9F;
      if (removed) return;
      const bool is_space = c == 0x09 || c == 0x0A || c == 0x0C || c == 0x0D || c == 0x1680 ||
                            (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 ||
                            c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
      append_utf8(is_space ? ' ' : c, out);
    });
  }
};

class NormalizerSequence final : public TextNormalizer {
 public:
  explicit NormalizerSequence(std::vector<NormalizerPtr> steps) : steps_(std::move(steps)) {}
  void apply(std::string& text) const override {
    for (const NormalizerPtr& step : steps_) step->apply(text);
  }

 private:
  std::vector<NormalizerPtr> steps_;
};

}  // namespace

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  size_t at = text.find(from);
  if (at == std::string::npos) return;
  std::string out;
  out.reserve(text.size());
  size_t copied = 0;
  for (; at != std::string::npos; at = text.find(from, copied)) {
    out.append(text, copied, at - copied);
    out += to;
    copied = at + from.size();
  }
  out.append(text, copied);
  text = std::move(out);
}

NormalizerPtr make_unicode_normalizer(UnicodeForm form) {
  return std::make_unique<UnicodeNormalizer>(form);
}
NormalizerPtr make_lowercase_normalizer() { return std::make_unique<LowercaseNormalizer>(); }
NormalizerPtr make_strip_accents_normalizer() { return std::make_unique<StripAccentsNormalizer>(); }
NormalizerPtr make_strip_normalizer(bool left, bool right) {
  return std::make_unique<StripNormalizer>(left, right);
}
NormalizerPtr make_prepend_normalizer(std::string prefix) {
  return std::make_unique<PrependNormalizer>(std::move(prefix));
}
NormalizerPtr make_replace_normalizer(std::string from, std::string to) {
  return std::make_unique<ReplaceNormalizer>(std::move(from), std::move(to));
}
NormalizerPtr make_regex_replace_normalizer(std::string_view pattern, std::string to) {
  return std::make_unique<RegexReplaceNormalizer>(pattern, std::move(to));
}
NormalizerPtr make_bert_normalizer(const BertNormalizerOptions& options) {
  return std::make_unique<BertNormalizer>(options);
}
NormalizerPtr make_byte_level_normalizer() { return std::make_unique<ByteLevelNormalizer>(); }
NormalizerPtr make_nmt_normalizer() { return std::make_unique<NmtNormalizer>(); }
NormalizerPtr make_normalizer_sequence(std::vector<NormalizerPtr> steps) {
  return std::make_unique<NormalizerSequence>(std::move(steps));
}

}  // namespace rlx
