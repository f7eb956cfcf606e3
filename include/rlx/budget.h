// A memory budget that is kept: the options with which a model fits, found by planning, before
// anything is loaded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rlx/language_model.h"

namespace rlx {

// A change of options that makes a plan smaller.
struct PlanLever {
  std::string description;  // "token batch 512 -> 128"
  LanguageModelOptions options;
  int64_t total_bytes = 0;  // weights, state, io and work with this change alone
  int64_t saved_bytes = 0;
  bool changes_results = false;
};

struct BudgetRequest {
  int64_t budget_bytes = 0;   // for weights, state, io and work together
  int64_t least_context = 0;  // shorten the context down to this; 0: keep it
  // Caches may become as narrow as this, f16 or q8_0; none: they keep their dtype.
  std::optional<DType> least_cache_dtype;
};

struct BudgetFit {
  LanguageModelOptions options;    // to load with
  PlanReport plan;                 // of these options
  std::vector<std::string> taken;  // what was given up, in order; empty when all fits as asked
};

// Bytes of a plan that count against a budget: weights and arena.
int64_t total_bytes(const PlanReport& plan);

// Takes the levers that do not change results first (the token batch), then those that the request
// allows. Throws kOutOfMemory naming the smallest budget that works under the request.
BudgetFit fit_to_budget(const std::string& path, const LanguageModelOptions& options,
                        const BudgetRequest& request);

// Changes that would make the plan smaller, each proven by planning again, the largest saving
// first.
std::vector<PlanLever> list_plan_levers(const std::string& path,
                                        const LanguageModelOptions& options);

}  // namespace rlx
