#include "rlx/language_model.h"

#include <future>

#include "api/language_model_parts.h"
#include "base/error.h"

namespace rlx {
LanguageModel::LanguageModel(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
LanguageModel::LanguageModel(LanguageModel&&) noexcept = default;
LanguageModel& LanguageModel::operator=(LanguageModel&&) noexcept = default;
LanguageModel::~LanguageModel() = default;

LanguageModel LanguageModel::load(const std::string& path, const LanguageModelOptions& options) {
  const std::shared_ptr<const ModelFile> file = ModelFile::open(path);
  check_decoder(*file);
  const cpu::TargetOptions target = make_target_options(options);
  // The vocabulary and the program do not need each other. One thread stays one.
  std::future<Tokenizer> tokenizer;
  if (options.load_tokenizer) {
    tokenizer = std::async(target.max_threads > 1 ? std::launch::async : std::launch::deferred,
                           [&file] { return load_tokenizer(*file); });
  }
  auto parts =
      std::make_unique<Parts>(compile_model(file, make_graph_options(options), target), options);
  parts->computing =
      fmt::format("{} activations and {} rotary frequencies",
                  options.quantize_activations ? "int8" : "float", to_string(options.rope_dtype));
  if (tokenizer.valid()) {
    parts->tokenizer.emplace(tokenizer.get());
    if (parts->tokenizer->vocab_size() > parts->vocab_size) {
      throw_error(ErrorCode::kCorruptData,
                  "{}: The tokenizer has {} tokens, but the model has logits for {}.", path,
                  parts->tokenizer->vocab_size(), parts->vocab_size);
    }
    parts->end_tokens = list_end_tokens(*parts->model.file, &*parts->tokenizer);
  }
  return LanguageModel(std::move(parts));
}

PlanReport LanguageModel::plan(const std::string& path, const LanguageModelOptions& options) {
  return compile_model(ModelFile::open(path), make_graph_options(options),
                       make_target_options(options))
      .report;
}

std::span<const float> LanguageModel::evaluate(std::span<const int32_t> tokens) {
  Parts& p = *parts_;
  if (tokens.empty()) {
    throw_error(ErrorCode::kInvalidArgument, "No tokens are given; at least one is expected.");
  }
  p.check_tokens(tokens);
  if (p.all_logits) {
    if (static_cast<int64_t>(tokens.size()) > p.max_tokens) {
      throw_error(ErrorCode::kOutOfRange,
                  "{} tokens are given, but a run with all logits takes at most {}.", tokens.size(),
                  p.max_tokens);
    }
    p.run_chunk(tokens);
    return p.last_logits(tokens.size());
  }
  p.run_chunks(tokens, [](size_t) {});
  return p.last_logits(1);
}

void LanguageModel::reset() { parts_->rewind(0); }

void LanguageModel::rewind(int64_t num_tokens) {
  const auto past = static_cast<int64_t>(parts_->past_tokens.size());
  if (num_tokens < 0 || num_tokens > past) {
    throw_error(ErrorCode::kOutOfRange,
                "The model cannot go back to {} tokens: it has read {} tokens.", num_tokens, past);
  }
  const std::vector<int32_t> kept(parts_->past_tokens.begin(),
                                  parts_->past_tokens.begin() + num_tokens);
  const auto done = static_cast<size_t>(parts_->rewind(num_tokens));
  parts_->run_chunks(std::span(kept).subspan(done), [](size_t) {});
}

int64_t LanguageModel::num_past_tokens() const {
  return static_cast<int64_t>(parts_->past_tokens.size());
}
std::span<const int32_t> LanguageModel::past_tokens() const { return parts_->past_tokens; }

std::vector<int32_t> LanguageModel::tokenize(std::string_view text,
                                             const TokenizeOptions& options) const {
  return parts_->require_tokenizer().encode(
      text, {.add_special = options.add_special, .parse_special = options.parse_special});
}

std::string LanguageModel::detokenize(std::span<const int32_t> tokens) const {
  return parts_->require_tokenizer().decode(tokens);
}

int64_t LanguageModel::vocab_size() const { return parts_->vocab_size; }
int64_t LanguageModel::context() const { return parts_->context; }
int LanguageModel::threads() const { return parts_->pool->num_threads(); }
const PlanReport& LanguageModel::plan_report() const { return parts_->model.report; }

}  // namespace rlx
