// Evaluates the symbolic extents of a program for one run: expressions are flattened once, so that
// setting new symbol values costs a few multiplications and no allocation.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tensor/dim.h"

namespace rlx {

class ExtentEvaluator {
 public:
  explicit ExtentEvaluator(const SymbolTable& symbols) : symbols_(symbols) {}

  // From now on `evaluate` stores the value of `dim` at `target`, which must stay valid. A constant
  // is stored at once.
  void add(const Dim& dim, int64_t* target);

  // `values[i]` is the value of symbol i and must lie within its bounds: the products then fit in
  // 64 bits, since the compiler evaluated them at the bounds.
  void evaluate(std::span<const int64_t> values) const;

 private:
  struct Term {
    int64_t coefficient;
    int32_t first_symbol, last_symbol;  // range of term_symbols_
  };
  struct Entry {
    int64_t* target;
    int64_t constant;
    int32_t first_term, last_term;  // range of terms_
  };

  SymbolTable symbols_;
  std::vector<int32_t> term_symbols_;
  std::vector<Term> terms_;
  std::vector<Entry> entries_;
};

}  // namespace rlx
