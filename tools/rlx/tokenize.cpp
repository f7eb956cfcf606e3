#include <charconv>
#include <cstdio>

#include "api/compiled_model.h"
#include "base/error.h"
#include "commands.h"

namespace rlx::cli {
namespace {

std::vector<int32_t> parse_ids(std::string_view text) {
  std::vector<int32_t> ids;
  const auto is_space = [](char c) {
    return c == ' ' || c == ',' || c == '\n' || c == '\t' || c == '\r';
  };
  for (size_t i = 0; i < text.size();) {
    if (is_space(text[i])) {
      ++i;
      continue;
    }
    size_t end = i;
    while (end < text.size() && !is_space(text[end])) ++end;
    int32_t id = 0;
    const auto [stop, error] = std::from_chars(text.data() + i, text.data() + end, id);
    if (error != std::errc() || stop != text.data() + end) {
      throw_error(ErrorCode::kInvalidArgument, "'{}' is not a token id.", text.substr(i, end - i));
    }
    ids.push_back(id);
    i = end;
  }
  return ids;
}

}  // namespace

int tokenize(const TokenizeOptions& options) {
  const Tokenizer tokenizer = load_tokenizer(*ModelFile::open(options.model));
  const std::string text = options.text == "-" ? read_stdin() : options.text;
  if (options.decode) {
    fmt::print("{}\n", tokenizer.decode(parse_ids(text), /*skip_special=*/options.no_special));
    return 0;
  }
  const bool special = !options.no_special;
  const std::vector<int32_t> ids =
      tokenizer.encode(text, {.add_special = special, .parse_special = special});
  fmt::print("{}\n", fmt::join(ids, " "));
  return 0;
}

}  // namespace rlx::cli
