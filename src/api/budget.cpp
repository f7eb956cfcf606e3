#include "rlx/budget.h"

#include <algorithm>

#include "api/compiled_model.h"
#include "base/error.h"
#include "base/group_digits.h"

namespace rlx {
namespace {

// Plans of one model file under changing options.
class PlanTrials {
 public:
  PlanTrials(const std::string& path, const LanguageModelOptions& options)
      : file_(ModelFile::open(path)), options_(options) {
    if (options_.context == 0) options_.context = plan_context(options_);
  }

  // The options with the context written out.
  const LanguageModelOptions& options() const { return options_; }

  PlanReport plan(const LanguageModelOptions& options) const {
    return compile_model(file_, make_graph_options(options), make_target_options(options)).report;
  }

 private:
  // The context that 0 stands for: that of the plan's own caches.
  int64_t plan_context(const LanguageModelOptions& options) const {
    const CompiledModel model =
        compile_model(file_, make_graph_options(options), make_target_options(options));
    const SymbolTable& symbols = model.program->symbols;
    return symbols.symbols()[symbols.index_of("past")].upper + 1;
  }

  std::shared_ptr<const ModelFile> file_;
  LanguageModelOptions options_;
};

// What a cache may be narrowed to, the widest first.
constexpr DType kNarrowCaches[] = {DType::kF16, DType::kQ8_0};

double bits_per_element(DType dtype) {
  return 8.0 * static_cast<double>(bytes_per_block(dtype)) /
         static_cast<double>(elements_per_block(dtype));
}

// Smaller token batches, each a quarter of the one before, down to one token.
std::vector<int64_t> list_batches(int64_t batch) {
  std::vector<int64_t> batches;
  while (batch > 1) batches.push_back(batch = std::max<int64_t>(1, batch / 4));
  return batches;
}

}  // namespace

int64_t total_bytes(const PlanReport& plan) {
  return plan.segment("weights").size_bytes + plan.arena_bytes;
}

BudgetFit fit_to_budget(const std::string& path, const LanguageModelOptions& options,
                        const BudgetRequest& request) {
  const PlanTrials trials(path, options);
  BudgetFit fit{trials.options(), trials.plan(trials.options()), {}};
  const auto fits = [&] { return total_bytes(fit.plan) <= request.budget_bytes; };
  const auto take = [&](const LanguageModelOptions& next, std::string what) {
    PlanReport plan = trials.plan(next);
    const int64_t saved = total_bytes(fit.plan) - total_bytes(plan);
    if (saved <= 0) return;
    fit.taken.push_back(fmt::format("{}: saves {} B", what, group_digits(saved)));
    fit.options = next;
    fit.plan = std::move(plan);
  };

  for (int64_t batch : list_batches(options.max_tokens)) {
    if (fits()) return fit;
    LanguageModelOptions next = fit.options;
    next.max_tokens = batch;
    take(next, fmt::format("token batch {} -> {}", fit.options.max_tokens, batch));
  }
  for (DType dtype : kNarrowCaches) {
    if (fits() || !request.least_cache_dtype) break;
    if (bits_per_element(dtype) < bits_per_element(*request.least_cache_dtype)) break;
    if (bits_per_element(dtype) >= bits_per_element(fit.options.cache_dtype)) continue;
    LanguageModelOptions next = fit.options;
    next.cache_dtype = dtype;
    take(next, fmt::format("cache {} -> {}", to_string(fit.options.cache_dtype), to_string(dtype)));
  }
  if (!fits() && request.least_context > 0 && request.least_context < fit.options.context) {
    // The longest context that fits; a plan only grows with it.
    int64_t low = request.least_context, high = fit.options.context;
    LanguageModelOptions next = fit.options;
    while (low < high) {
      next.context = low + (high - low + 1) / 2;
      if (total_bytes(trials.plan(next)) <= request.budget_bytes) {
        low = next.context;
      } else {
        high = next.context - 1;
      }
    }
    next.context = low;
    take(next, fmt::format("context {} -> {}", fit.options.context, low));
  }
  if (!fits()) {
    throw_error(ErrorCode::kOutOfMemory,
                "{}: The model does not fit into {} B; the smallest budget that works{} is {} B.",
                path, group_digits(request.budget_bytes),
                request.least_context > 0 ? " at that context" : "",
                group_digits(total_bytes(fit.plan)));
  }
  return fit;
}

std::vector<PlanLever> list_plan_levers(const std::string& path,
                                        const LanguageModelOptions& options) {
  const PlanTrials trials(path, options);
  const int64_t now = total_bytes(trials.plan(trials.options()));
  std::vector<PlanLever> levers;
  const auto try_lever = [&](std::string description, const LanguageModelOptions& changed,
                             bool changes_results) {
    const int64_t bytes = total_bytes(trials.plan(changed));
    if (bytes < now) {
      levers.push_back({std::move(description), changed, bytes, now - bytes, changes_results});
    }
  };
  for (int64_t batch : list_batches(options.max_tokens)) {
    LanguageModelOptions changed = trials.options();
    changed.max_tokens = batch;
    try_lever(fmt::format("token batch {} -> {}", options.max_tokens, batch), changed, false);
  }
  for (int64_t context = trials.options().context / 2; context >= 128; context /= 2) {
    LanguageModelOptions changed = trials.options();
    changed.context = context;
    try_lever(fmt::format("context {} -> {}", trials.options().context, context), changed, true);
  }
  for (DType dtype : kNarrowCaches) {
    if (dtype == options.cache_dtype) continue;
    LanguageModelOptions changed = trials.options();
    changed.cache_dtype = dtype;
    try {
      try_lever(fmt::format("cache {} -> {}", to_string(options.cache_dtype), to_string(dtype)),
                changed, true);
    } catch (const Error& error) {
      // Heads that are not whole blocks of q8_0 are no lever, and no failure either.
      if (error.code() != ErrorCode::kUnsupported) throw;
    }
  }
  std::stable_sort(levers.begin(), levers.end(), [](const PlanLever& a, const PlanLever& b) {
    return a.saved_bytes > b.saved_bytes;
  });
  return levers;
}

}  // namespace rlx
