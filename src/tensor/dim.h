// An extent that may not be known until a run: a constant, or a polynomial over named symbols such
// as "past + tokens" or "32 * tokens". Symbols have declared bounds, so a buffer is planned at the
// upper bound while a run passes the actual values: one program serves every length up to the
// bound.
//
// A Dim is kept in one canonical form (like terms merged, terms sorted by their symbols), so equal
// expressions compare equal and print the same.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rlx {

// A named extent with inclusive bounds, 0 <= lower <= upper.
struct Symbol {
  std::string name;
  int64_t lower = 0;
  int64_t upper = 0;

  bool operator==(const Symbol&) const = default;
};

// The symbols of one graph, in order of declaration.
class SymbolTable {
 public:
  // Throws kInvalidArgument for bad bounds or a name declared twice with other bounds.
  void declare(Symbol symbol);

  const Symbol* find(std::string_view name) const;  // null when absent
  int32_t index_of(std::string_view name) const;    // throws kNotFound naming the symbol
  std::span<const Symbol> symbols() const { return symbols_; }

  bool operator==(const SymbolTable&) const = default;

 private:
  std::vector<Symbol> symbols_;
};

class Dim {
 public:
  // coefficient * product of symbols; symbols sorted by name, repeated for powers.
  struct Term {
    int64_t coefficient = 0;
    std::vector<std::string> symbols;

    bool operator==(const Term&) const = default;
  };

  Dim() = default;
  Dim(int64_t value) : constant_(value) {}  // implicit: an extent is usually a number
  static Dim symbol(std::string name);

  bool is_constant() const { return terms_.empty(); }
  bool is(int64_t value) const { return is_constant() && constant_ == value; }
  // The value; throws kUnsupported naming the expression when it depends on a symbol.
  int64_t constant() const;
  // The part without symbols, and the terms with them.
  int64_t constant_part() const { return constant_; }
  std::span<const Term> terms() const { return terms_; }

  // Inclusive bounds over the symbols' ranges; throws kOutOfRange on overflow.
  int64_t upper_bound(const SymbolTable& symbols) const;
  int64_t lower_bound(const SymbolTable& symbols) const;
  // The value where symbol i of the table is values[i].
  int64_t evaluate(const SymbolTable& symbols, std::span<const int64_t> values) const;

  // All arithmetic is checked; throws kOutOfRange on overflow.
  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);
  bool operator==(const Dim&) const = default;

 private:
  void add_term(Term term);

  int64_t constant_ = 0;
  std::vector<Term> terms_;
};

// a / b when b divides every term of a exactly (b a constant or a single term); false otherwise.
bool divide_exactly(const Dim& a, const Dim& b, Dim& quotient);

// "7", "past + tokens", "2 * tokens - 1".
std::string to_string(const Dim& dim);
// Reads what to_string writes; throws kInvalidArgument naming the text.
Dim parse_dim(std::string_view text);

}  // namespace rlx
