#include "runtime/extents.h"

namespace rlx {

void ExtentEvaluator::add(const Dim& dim, int64_t* target) {
  if (dim.is_constant()) {
    *target = dim.constant_part();
    return;
  }
  Entry entry{target, dim.constant_part(), static_cast<int32_t>(terms_.size()), 0};
  for (const Dim::Term& term : dim.terms()) {
    const int32_t first = static_cast<int32_t>(term_symbols_.size());
    for (const std::string& name : term.symbols) term_symbols_.push_back(symbols_.index_of(name));
    terms_.push_back({term.coefficient, first, static_cast<int32_t>(term_symbols_.size())});
  }
  entry.last_term = static_cast<int32_t>(terms_.size());
  entries_.push_back(entry);
}

void ExtentEvaluator::evaluate(std::span<const int64_t> values) const {
  for (const Entry& entry : entries_) {
    int64_t total = entry.constant;
    for (int32_t t = entry.first_term; t < entry.last_term; ++t) {
      int64_t product = terms_[t].coefficient;
      for (int32_t s = terms_[t].first_symbol; s < terms_[t].last_symbol; ++s) {
        product *= values[term_symbols_[s]];
      }
      total += product;
    }
    *entry.target = total;
  }
}

}  // namespace rlx
