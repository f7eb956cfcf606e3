// The part of `rlx run` that writes on from many prompts.
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "base/error.h"
#include "commands.h"
#include "rlx/budget.h"

namespace rlx::cli {
namespace {

// Prints results in the order of the prompts, each as soon as those before it are there.
class OrderedResults {
 public:
  explicit OrderedResults(const std::vector<std::string>& prompts) : prompts_(prompts) {}

  void add(size_t index, const GenerateResult& result) {
    waiting_.emplace(index, result);
    while (!waiting_.empty() && waiting_.begin()->first == next_) {
      print(waiting_.begin()->second);
      waiting_.erase(waiting_.begin());
      ++next_;
    }
  }

 private:
  void print(const GenerateResult& result) const {
    nlohmann::ordered_json json;
    json["prompt"] = prompts_[next_];
    json["text"] = result.text;
    json["prompt_tokens"] = result.prompt_tokens;
    json["tokens"] = result.tokens.size();
    json["stopped_by"] = to_string(result.stop_reason);
    fmt::print("{}\n", json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    std::fflush(stdout);
  }

  const std::vector<std::string>& prompts_;
  std::map<size_t, GenerateResult> waiting_;
  size_t next_ = 0;
};

}  // namespace

int run_prompts(const RunOptions& options) {
  const std::vector<std::string> prompts = read_lines(options.prompts);
  LanguageModel model =
      LanguageModel::load(options.model.model,
                          fit_budget(options.model, make_load_options(options.model, DType::kF16)));
  GenerateOptions generate = options.generate;
  if (!options.has_seed) generate.seed = std::random_device()();
  generate.cancel = &interrupted;
  OrderedResults ordered(prompts);
  int64_t tokens = 0;
  bool cancelled = false;
  const auto start = std::chrono::steady_clock::now();
  model.generate_all(prompts, generate, [&](size_t index, const GenerateResult& result) {
    tokens += static_cast<int64_t>(result.tokens.size());
    cancelled = cancelled || result.stop_reason == StopReason::kCancelled;
    ordered.add(index, result);
  });
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  fmt::print(stderr, "{} prompts, {} at once: {} tokens, {:.1f} tokens/s, seed {}\n",
             prompts.size(), options.model.parallel, tokens,
             seconds > 0 ? static_cast<double>(tokens) / seconds : 0.0, generate.seed);
  return cancelled ? 130 : 0;
}

}  // namespace rlx::cli
