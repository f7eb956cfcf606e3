#include "text/pre_tokenizer.h"

#include <algorithm>

#include "text/byte_level.h"
#include "text/regex.h"
#include "text/unicode.h"

namespace rlx {
namespace {

using Range = TextPieces::Range;

// Collects delimiters and the text between them, in order, and turns them into pieces.
class Splitter {
 public:
  Splitter(SplitBehavior behavior, bool invert) : behavior_(behavior), invert_(invert) {}

  void begin(size_t start) {
    spans_.clear();
    end_ = start;
  }
  // A match of the pattern. An empty one separates what is around it.
  void add_match(size_t match_begin, size_t match_end) {
    if (end_ < match_begin) spans_.push_back({{end_, match_begin}, invert_});
    spans_.push_back({{match_begin, match_end}, !invert_});
    end_ = match_end;
  }
  void finish(size_t stop, std::vector<Range>& out) {
    if (end_ < stop) spans_.push_back({{end_, stop}, invert_});
    switch (behavior_) {
      case SplitBehavior::kRemoved:
        for (const Span& span : spans_) {
          if (!span.is_delimiter) append(span.range, out);
        }
        break;
      case SplitBehavior::kIsolated:
        for (const Span& span : spans_) append(span.range, out);
        break;
      case SplitBehavior::kContiguous:
        merge([](const Span& a, const Span& b) { return a.is_delimiter == b.is_delimiter; }, out);
        break;
      case SplitBehavior::kMergedWithPrevious:
        merge([](const Span& a, const Span& b) { return b.is_delimiter && !a.is_delimiter; }, out);
        break;
      case SplitBehavior::kMergedWithNext:
        merge([](const Span& a, const Span& b) { return a.is_delimiter && !b.is_delimiter; }, out);
        break;
    }
  }

 private:
  struct Span {
    Range range;
    bool is_delimiter;
  };

  static void append(Range range, std::vector<Range>& out) {
    if (range.begin < range.end) out.push_back(range);
  }

  // Joins neighbours a, b for which joins(a, b).
  template <typename Joins>
  void merge(Joins&& joins, std::vector<Range>& out) {
    for (size_t i = 0; i < spans_.size();) {
      Range range = spans_[i].range;
      size_t next = i + 1;
      for (; next < spans_.size() && joins(spans_[next - 1], spans_[next]); ++next) {
        range.end = spans_[next].range.end;
      }
      append(range, out);
      i = next;
    }
  }

  SplitBehavior behavior_;
  bool invert_;
  std::vector<Span> spans_;
  size_t end_ = 0;
};

// Runs visit_matches(piece_text, visit) on each piece, with offsets from the piece's start.
template <typename VisitMatches>
void split_pieces(TextPieces& pieces, SplitBehavior behavior, bool invert,
                  VisitMatches&& visit_matches) {
  Splitter splitter(behavior, invert);
  std::vector<Range> out;
  out.reserve(pieces.ranges.size() + pieces.text.size() / 4);
  for (const Range range : pieces.ranges) {
    splitter.begin(range.begin);
    visit_matches(std::string_view(pieces.text).substr(range.begin, range.end - range.begin),
                  [&](size_t begin, size_t end) {
                    splitter.add_match(range.begin + begin, range.begin + end);
                  });
    splitter.finish(range.end, out);
  }
  pieces.ranges = std::move(out);
}

// Rewrites the text of every piece: rewrite(index, piece_text, out) appends to out.
template <typename Rewrite>
void rewrite_pieces(TextPieces& pieces, Rewrite&& rewrite) {
  std::string out;
  out.reserve(pieces.text.size() + pieces.text.size() / 2);
  for (size_t i = 0; i < pieces.ranges.size(); ++i) {
    Range& range = pieces.ranges[i];
    const size_t begin = out.size();
    rewrite(i, std::string_view(pieces.text).substr(range.begin, range.end - range.begin), out);
    range = {begin, out.size()};
  }
  pieces.text = std::move(out);
}

class RegexSplit final : public TextPreTokenizer {
 public:
  RegexSplit(std::string_view pattern, SplitBehavior behavior, bool invert)
      : regex_(pattern), behavior_(behavior), invert_(invert) {}

  void apply(TextPieces& pieces) const override {
    split_pieces(pieces, behavior_, invert_, [this](std::string_view piece, auto&& visit) {
      regex_.for_each_match(piece, visit);
    });
  }

 private:
  Regex regex_;
  SplitBehavior behavior_;
  bool invert_;
};

class StringSplit final : public TextPreTokenizer {
 public:
  StringSplit(std::string delimiter, SplitBehavior behavior, bool invert)
      : delimiter_(std::move(delimiter)), behavior_(behavior), invert_(invert) {}

  void apply(TextPieces& pieces) const override {
    split_pieces(pieces, behavior_, invert_, [this](std::string_view piece, auto&& visit) {
      for (size_t at = piece.find(delimiter_); at != std::string_view::npos;
           at = piece.find(delimiter_, at + delimiter_.size())) {
        visit(at, at + delimiter_.size());
      }
    });
  }

 private:
  std::string delimiter_;
  SplitBehavior behavior_;
  bool invert_;
};

class CharacterSplit final : public TextPreTokenizer {
 public:
  CharacterSplit(bool (*is_delimiter)(uint32_t), SplitBehavior behavior)
      : is_delimiter_(is_delimiter), behavior_(behavior) {}

  void apply(TextPieces& pieces) const override {
    split_pieces(pieces, behavior_, false, [this](std::string_view piece, auto&& visit) {
      for (size_t at = 0; at < piece.size();) {
        const DecodedCharacter c = decode_utf8(piece, at);
        if (is_delimiter_(c.code_point)) visit(at, at + c.length_bytes);
        at += c.length_bytes;
      }
    });
  }

 private:
  bool (*is_delimiter_)(uint32_t);
  SplitBehavior behavior_;
};

class ByteLevel final : public TextPreTokenizer {
 public:
  ByteLevel(bool add_prefix_space, bool use_regex) : add_prefix_space_(add_prefix_space) {
    if (use_regex) split_ = make_regex_split(kGpt2Pattern, SplitBehavior::kIsolated, false);
  }

  void apply(TextPieces& pieces) const override {
    if (add_prefix_space_) {
      rewrite_pieces(pieces, [&](size_t i, std::string_view piece, std::string& out) {
        if (!piece.starts_with(' ') && (i > 0 || pieces.begins_segment)) out += ' ';
        out += piece;
      });
    }
    if (split_) split_->apply(pieces);
    rewrite_pieces(pieces, [](size_t, std::string_view piece, std::string& out) {
      append_byte_level(piece, out);
    });
  }

 private:
  bool add_prefix_space_;
  PreTokenizerPtr split_;
};

class Metaspace final : public TextPreTokenizer {
 public:
  Metaspace(std::string replacement, PrependScheme scheme, bool split)
      : replacement_(std::move(replacement)), scheme_(scheme) {
    if (split) split_ = make_string_split(replacement_, SplitBehavior::kMergedWithNext, false);
  }

  void apply(TextPieces& pieces) const override {
    const bool first_is_begin =
        pieces.begins_input && !pieces.ranges.empty() && pieces.ranges[0].begin == 0;
    rewrite_pieces(pieces, [&](size_t i, std::string_view piece, std::string& out) {
      const bool prepends = scheme_ == PrependScheme::kAlways ||
                            (scheme_ == PrependScheme::kFirst && i == 0 && first_is_begin);
      if (prepends && !piece.starts_with(' ') && !piece.starts_with(replacement_)) {
        out += replacement_;
      }
      for (const char c : piece) {
        if (c == ' ') {
          out += replacement_;
        } else {
          out += c;
        }
      }
    });
    if (split_) split_->apply(pieces);
  }

 private:
  std::string replacement_;
  PrependScheme scheme_;
  PreTokenizerPtr split_;
};

class PreTokenizerSequence final : public TextPreTokenizer {
 public:
  explicit PreTokenizerSequence(std::vector<PreTokenizerPtr> steps) : steps_(std::move(steps)) {}
  void apply(TextPieces& pieces) const override {
    for (const PreTokenizerPtr& step : steps_) step->apply(pieces);
  }

 private:
  std::vector<PreTokenizerPtr> steps_;
};

}  // namespace

PreTokenizerPtr make_regex_split(std::string_view pattern, SplitBehavior behavior, bool invert) {
  return std::make_unique<RegexSplit>(pattern, behavior, invert);
}
PreTokenizerPtr make_string_split(std::string delimiter, SplitBehavior behavior, bool invert) {
  return std::make_unique<StringSplit>(std::move(delimiter), behavior, invert);
}
PreTokenizerPtr make_character_split(bool (*is_delimiter)(uint32_t), SplitBehavior behavior) {
  return std::make_unique<CharacterSplit>(is_delimiter, behavior);
}
PreTokenizerPtr make_byte_level(bool add_prefix_space, bool use_regex) {
  return std::make_unique<ByteLevel>(add_prefix_space, use_regex);
}
PreTokenizerPtr make_metaspace(std::string replacement, PrependScheme scheme, bool split) {
  return std::make_unique<Metaspace>(std::move(replacement), scheme, split);
}
PreTokenizerPtr make_bert_pre_tokenizer() {
  std::vector<PreTokenizerPtr> steps;
  steps.push_back(make_character_split(is_white_space, SplitBehavior::kRemoved));
  steps.push_back(make_character_split(is_punctuation, SplitBehavior::kIsolated));
  return make_pre_tokenizer_sequence(std::move(steps));
}
PreTokenizerPtr make_pre_tokenizer_sequence(std::vector<PreTokenizerPtr> steps) {
  return std::make_unique<PreTokenizerSequence>(std::move(steps));
}

}  // namespace rlx
