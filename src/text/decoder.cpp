#include "text/decoder.h"

#include "text/byte_level.h"
#include "text/normalizer.h"
#include "text/unicode.h"

namespace rlx {
namespace {

class ByteLevelDecoder final : public TokenDecoder {
 public:
  void apply(std::vector<std::string>& tokens) const override {
    std::string bytes;
    for (std::string& token : tokens) {
      bytes.clear();
      bool in_alphabet = true;
      for (size_t at = 0; at < token.size() && in_alphabet;) {
        const DecodedCharacter c = decode_utf8(token, at);
        const int32_t byte = c.valid ? byte_level_byte(c.code_point) : -1;
        in_alphabet = byte >= 0;
        bytes += static_cast<char>(byte);
        at += c.length_bytes;
      }
      if (in_alphabet) token = bytes;
    }
  }
};

int32_t hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

class ByteFallbackDecoder final : public TokenDecoder {
 public:
  void apply(std::vector<std::string>& tokens) const override {
    for (std::string& token : tokens) {
      if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') continue;
      const int32_t high = hex_digit(token[3]);
      const int32_t low = hex_digit(token[4]);
      if (high >= 0 && low >= 0) token.assign(1, static_cast<char>(high * 16 + low));
    }
  }
};

// Removes the space before punctuation and English contractions, inside one token.
void clean_up(std::string& token) {
  static constexpr std::pair<std::string_view, std::string_view> kRules[] = {
      {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
      {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
      {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : kRules) replace_all(token, from, to);
}

class CleanUpDecoder final : public TokenDecoder {
 public:
  void apply(std::vector<std::string>& tokens) const override {
    for (std::string& token : tokens) clean_up(token);
  }
};

class WordPieceDecoder final : public TokenDecoder {
 public:
  WordPieceDecoder(std::string prefix, bool cleanup)
      : prefix_(std::move(prefix)), cleanup_(cleanup) {}

  void apply(std::vector<std::string>& tokens) const override {
    for (size_t i = 0; i < tokens.size(); ++i) {
      std::string& token = tokens[i];
      if (i > 0) {
        if (!prefix_.empty() && token.starts_with(prefix_)) {
          token.erase(0, prefix_.size());
        } else {
          token.insert(0, " ");
        }
      }
      if (cleanup_) clean_up(token);
    }
  }

 private:
  std::string prefix_;
  bool cleanup_;
};

class MetaspaceDecoder final : public TokenDecoder {
 public:
  MetaspaceDecoder(std::string replacement, bool strip_first)
      : replacement_(std::move(replacement)), strip_first_(strip_first) {}

  void apply(std::vector<std::string>& tokens) const override {
    for (size_t i = 0; i < tokens.size(); ++i) {
      replace_all(tokens[i], replacement_, i == 0 && strip_first_ ? "" : " ");
    }
  }

 private:
  std::string replacement_;
  bool strip_first_;
};

class BpeDecoder final : public TokenDecoder {
 public:
  explicit BpeDecoder(std::string suffix) : suffix_(std::move(suffix)) {}

  void apply(std::vector<std::string>& tokens) const override {
    if (suffix_.empty()) return;
    for (size_t i = 0; i < tokens.size(); ++i) {
      replace_all(tokens[i], suffix_, i + 1 == tokens.size() ? "" : " ");
    }
  }

 private:
  std::string suffix_;
};

// A normaliser applied to every token.
class NormalizingDecoder final : public TokenDecoder {
 public:
  explicit NormalizingDecoder(NormalizerPtr normalizer) : normalizer_(std::move(normalizer)) {}

  void apply(std::vector<std::string>& tokens) const override {
    for (std::string& token : tokens) normalizer_->apply(token);
  }

 private:
  NormalizerPtr normalizer_;
};

class StripDecoder final : public TokenDecoder {
 public:
  StripDecoder(std::string content, size_t start, size_t stop)
      : content_(std::move(content)), start_(start), stop_(stop) {}

  void apply(std::vector<std::string>& tokens) const override {
    for (std::string& token : tokens) {
      std::string_view rest = token;
      for (size_t i = 0; i < start_ && rest.starts_with(content_); ++i) {
        rest.remove_prefix(content_.size());
      }
      for (size_t i = 0; i < stop_ && rest.ends_with(content_); ++i) {
        rest.remove_suffix(content_.size());
      }
      token = std::string(rest);
    }
  }

 private:
  std::string content_;
  size_t start_, stop_;
};

class JoinDecoder final : public TokenDecoder {
 public:
  explicit JoinDecoder(std::string separator) : separator_(std::move(separator)) {}

  void apply(std::vector<std::string>& tokens) const override {
    if (tokens.size() < 2) return;
    std::string joined = tokens[0];
    for (size_t i = 1; i < tokens.size(); ++i) {
      joined += separator_;
      joined += tokens[i];
    }
    tokens.assign(1, std::move(joined));
  }

 private:
  std::string separator_;
};

class DecoderSequence final : public TokenDecoder {
 public:
  explicit DecoderSequence(std::vector<DecoderPtr> steps) : steps_(std::move(steps)) {}
  void apply(std::vector<std::string>& tokens) const override {
    for (const DecoderPtr& step : steps_) step->apply(tokens);
  }

 private:
  std::vector<DecoderPtr> steps_;
};

}  // namespace

DecoderPtr make_byte_level_decoder() { return std::make_unique<ByteLevelDecoder>(); }
DecoderPtr make_byte_fallback_decoder() { return std::make_unique<ByteFallbackDecoder>(); }
DecoderPtr make_word_piece_decoder(std::string prefix, bool cleanup) {
  return std::make_unique<WordPieceDecoder>(std::move(prefix), cleanup);
}
DecoderPtr make_clean_up_decoder() { return std::make_unique<CleanUpDecoder>(); }
DecoderPtr make_metaspace_decoder(std::string replacement, bool strip_first) {
  return std::make_unique<MetaspaceDecoder>(std::move(replacement), strip_first);
}
DecoderPtr make_bpe_decoder(std::string suffix) {
  return std::make_unique<BpeDecoder>(std::move(suffix));
}
DecoderPtr make_replace_decoder(std::string from, std::string to) {
  return std::make_unique<NormalizingDecoder>(
      make_replace_normalizer(std::move(from), std::move(to)));
}
DecoderPtr make_regex_replace_decoder(std::string_view pattern, std::string to) {
  return std::make_unique<NormalizingDecoder>(
      make_regex_replace_normalizer(pattern, std::move(to)));
}
DecoderPtr make_strip_decoder(std::string content, size_t start, size_t stop) {
  return std::make_unique<StripDecoder>(std::move(content), start, stop);
}
DecoderPtr make_fuse_decoder() { return std::make_unique<JoinDecoder>(""); }
DecoderPtr make_join_decoder() { return std::make_unique<JoinDecoder>(" "); }
DecoderPtr make_decoder_sequence(std::vector<DecoderPtr> steps) {
  return std::make_unique<DecoderSequence>(std::move(steps));
}

}  // namespace rlx
