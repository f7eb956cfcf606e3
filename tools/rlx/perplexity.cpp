#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <optional>

#include "base/error.h"
#include "commands.h"

namespace rlx::cli {
namespace {

void stop_on_interrupt() {
  struct sigaction action {};
  action.sa_handler = [](int) { interrupted.store(true); };
  action.sa_flags = SA_RESETHAND | SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
}

std::string read_text(const std::string& path) {
  if (path == "-") return read_stdin();
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw_error(ErrorCode::kNotFound, "Cannot open the file '{}'.", path);
  std::string text{std::istreambuf_iterator<char>(stream), {}};
  if (stream.bad()) throw_error(ErrorCode::kIo, "Cannot read the file '{}'.", path);
  return text;
}

// Minus the logarithm of the probability that the logits give to a token.
double surprise_of(std::span<const float> logits, int32_t token) {
  const float largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(double{logit} - largest);
  return std::log(sum) - (double{logits[static_cast<size_t>(token)]} - largest);
}

// The token that the model expects before a text, if it expects one.
std::optional<int32_t> find_beginning(const LanguageModel& model) {
  const std::vector<int32_t> with = model.tokenize("a");
  const std::vector<int32_t> without = model.tokenize("a", {.add_special = false});
  if (with.empty() || without.empty() || with.front() == without.front()) return std::nullopt;
  return with.front();
}

struct Sums {
  double surprise = 0, squared = 0;
  int64_t count = 0;

  void add(double value) {
    surprise += value;
    squared += value * value;
    ++count;
  }
  double perplexity() const { return std::exp(surprise / static_cast<double>(count)); }
  // Of the perplexity, to first order: its slope times the standard error of the mean surprise.
  double error() const {
    const auto n = static_cast<double>(count);
    const double variance = squared / n - surprise / n * (surprise / n);
    return variance > 0 && count > 1 ? std::sqrt(variance / (n - 1)) * perplexity() : 0;
  }
};

}  // namespace

// The definition is that of llama.cpp's tool, so that figures can be compared: the text, after the
// beginning token if the model has one, is cut into pieces of the context's length, and what is
// left over is dropped; the first token of each piece is replaced by the beginning token; the
// tokens of the second half of each piece, which have at least half a context before them, are
// scored.
int perplexity(const PerplexityOptions& options) {
  constexpr int64_t kDefaultContext = 512;
  stop_on_interrupt();
  LanguageModelOptions load = make_load_options(options.model, DType::kF16);
  if (load.context == 0) load.context = kDefaultContext;
  load.max_tokens = std::min(load.max_tokens, load.context);
  load.all_logits = true;
  const std::string text = read_text(options.file);
  LanguageModel model = LanguageModel::load(options.model.model, load);

  const std::optional<int32_t> beginning = find_beginning(model);
  std::vector<int32_t> tokens =
      model.tokenize(text, {.add_special = false, .parse_special = false});
  if (beginning) tokens.insert(tokens.begin(), *beginning);

  const int64_t context = model.context();
  const auto size = static_cast<size_t>(context);
  const size_t first = size / 2;
  if (context < 4) {
    throw_error(ErrorCode::kInvalidArgument,
                "The context holds {} tokens, but at least 4 are needed for a score.", context);
  }
  if (tokens.size() < 2 * size) {
    throw_error(ErrorCode::kInvalidArgument,
                "{}: The text has {} tokens, but a context of {} needs at least {}; give a longer "
                "text or a smaller context (-c).",
                options.file, tokens.size(), context, 2 * size);
  }
  auto num_chunks = static_cast<int64_t>(tokens.size() / size);
  if (options.max_chunks > 0) num_chunks = std::min(num_chunks, options.max_chunks);

  Sums sums;
  const auto vocab_size = static_cast<size_t>(model.vocab_size());
  for (int64_t chunk = 0; chunk < num_chunks; ++chunk) {
    const std::span<const int32_t> original =
        std::span(tokens).subspan(static_cast<size_t>(chunk) * size, size);
    std::vector<int32_t> piece(original.begin(), original.end());
    if (beginning) piece[0] = *beginning;
    model.reset();
    for (size_t at = 0; at < size;) {
      if (interrupted.load()) return 130;
      const size_t count = std::min(size - at, static_cast<size_t>(load.max_tokens));
      const std::span<const float> logits =
          model.evaluate(std::span<const int32_t>(piece).subspan(at, count));
      for (size_t i = at; i < at + count; ++i) {
        if (i < first || i + 1 >= size) continue;
        sums.add(surprise_of(logits.subspan((i - at) * vocab_size, vocab_size), original[i + 1]));
      }
      at += count;
    }
    fmt::print(stderr, "[{}] {:.4f}\n", chunk + 1, sums.perplexity());
  }
  fmt::print("perplexity {:.4f} +/- {:.5f}\n", sums.perplexity(), sums.error());
  fmt::print(stderr, "tokens    {} in {} pieces of {}, {} of them scored\n", num_chunks * context,
             num_chunks, context, sums.count);
  return 0;
}

}  // namespace rlx::cli
