#include "tensor/dim.h"

#include <algorithm>
#include <cctype>

#include "base/checked.h"

namespace rlx {

namespace {

// Letters, digits and '_', the first no digit: what an expression can spell.
bool is_symbol_name(std::string_view name) {
  const auto is_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
  };
  return !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0])) &&
         std::all_of(name.begin(), name.end(), is_word);
}

}  // namespace

void SymbolTable::declare(Symbol symbol) {
  if (!is_symbol_name(symbol.name)) {
    throw_error(
        ErrorCode::kInvalidArgument,
        "'{}' cannot name a symbol: letters, digits and '_' are expected, not first a digit.",
        symbol.name);
  }
  if (symbol.lower < 0 || symbol.upper < symbol.lower) {
    throw_error(ErrorCode::kInvalidArgument,
                "Symbol '{}' has the bounds {} to {}, but 0 <= lower <= upper is expected.",
                symbol.name, symbol.lower, symbol.upper);
  }
  if (const Symbol* known = find(symbol.name)) {
    if (*known == symbol) return;
    throw_error(ErrorCode::kInvalidArgument,
                "Symbol '{}' is declared twice: with bounds {} to {} and {} to {}.", symbol.name,
                known->lower, known->upper, symbol.lower, symbol.upper);
  }
  symbols_.push_back(std::move(symbol));
}

const Symbol* SymbolTable::find(std::string_view name) const {
  for (const Symbol& symbol : symbols_) {
    if (symbol.name == name) return &symbol;
  }
  return nullptr;
}

int32_t SymbolTable::index_of(std::string_view name) const {
  const Symbol* symbol = find(name);
  if (symbol == nullptr) throw_error(ErrorCode::kNotFound, "Symbol '{}' is not declared.", name);
  return static_cast<int32_t>(symbol - symbols_.data());
}

Dim Dim::symbol(std::string name) {
  Dim dim;
  dim.terms_.push_back({1, {std::move(name)}});
  return dim;
}

int64_t Dim::constant() const {
  if (!is_constant()) {
    throw_error(ErrorCode::kUnsupported, "The extent '{}' is not known until a run.",
                to_string(*this));
  }
  return constant_;
}

void Dim::add_term(Term term) {
  if (term.coefficient == 0) return;
  if (term.symbols.empty()) {
    constant_ = checked_add(constant_, term.coefficient);
    return;
  }
  auto place = std::lower_bound(terms_.begin(), terms_.end(), term,
                                [](const Term& a, const Term& b) { return a.symbols < b.symbols; });
  if (place == terms_.end() || place->symbols != term.symbols) {
    terms_.insert(place, std::move(term));
    return;
  }
  place->coefficient = checked_add(place->coefficient, term.coefficient);
  if (place->coefficient == 0) terms_.erase(place);
}

namespace {

// The product of the symbols' values, each read through `value_of`.
template <typename ValueOf>
int64_t multiply_symbols(const Dim::Term& term, ValueOf value_of) {
  int64_t product = 1;
  for (const std::string& name : term.symbols) product = checked_mul(product, value_of(name));
  return product;
}

const Symbol& find_declared(const SymbolTable& symbols, const std::string& name) {
  return symbols.symbols()[symbols.index_of(name)];
}

int64_t find_extreme(const Dim& dim, const SymbolTable& symbols, bool want_upper) {
  int64_t total = dim.constant_part();
  for (const Dim::Term& term : dim.terms()) {
    const bool use_upper = want_upper == (term.coefficient > 0);
    const int64_t product = multiply_symbols(term, [&](const std::string& name) {
      const Symbol& symbol = find_declared(symbols, name);
      return use_upper ? symbol.upper : symbol.lower;
    });
    total = checked_add(total, checked_mul(term.coefficient, product));
  }
  return total;
}

}  // namespace

int64_t Dim::upper_bound(const SymbolTable& symbols) const {
  return find_extreme(*this, symbols, true);
}

int64_t Dim::lower_bound(const SymbolTable& symbols) const {
  return find_extreme(*this, symbols, false);
}

int64_t Dim::evaluate(const SymbolTable& symbols, std::span<const int64_t> values) const {
  int64_t total = constant_;
  for (const Term& term : terms_) {
    const int64_t product = multiply_symbols(
        term, [&](const std::string& name) { return values[symbols.index_of(name)]; });
    total = checked_add(total, checked_mul(term.coefficient, product));
  }
  return total;
}

Dim operator+(const Dim& a, const Dim& b) {
  Dim sum = a;
  sum.add_term({b.constant_, {}});
  for (const Dim::Term& term : b.terms_) sum.add_term(term);
  return sum;
}

Dim operator-(const Dim& a, const Dim& b) { return a + b * Dim(-1); }

Dim operator*(const Dim& a, const Dim& b) {
  Dim product;
  auto multiply_into = [&](const Dim::Term& x, const Dim::Term& y) {
    Dim::Term term{checked_mul(x.coefficient, y.coefficient), x.symbols};
    term.symbols.insert(term.symbols.end(), y.symbols.begin(), y.symbols.end());
    std::sort(term.symbols.begin(), term.symbols.end());
    product.add_term(std::move(term));
  };
  const Dim::Term a_constant{a.constant_, {}};
  const Dim::Term b_constant{b.constant_, {}};
  multiply_into(a_constant, b_constant);
  for (const Dim::Term& x : a.terms_) multiply_into(x, b_constant);
  for (const Dim::Term& y : b.terms_) multiply_into(a_constant, y);
  for (const Dim::Term& x : a.terms_) {
    for (const Dim::Term& y : b.terms_) multiply_into(x, y);
  }
  return product;
}

bool divide_exactly(const Dim& a, const Dim& b, Dim& quotient) {
  if (b.is(0)) return false;
  if (a == b) {
    quotient = 1;
    return true;
  }
  Dim::Term divisor;
  if (b.is_constant()) {
    divisor.coefficient = b.constant();
  } else if (b.constant_part() == 0 && b.terms().size() == 1) {
    divisor = b.terms()[0];
  } else {
    return false;
  }
  Dim result;
  auto divide_term = [&](const Dim::Term& term) {
    // The least integer has no remainder by -1 on the machine; its negation overflows, and says so.
    const bool negates = divisor.coefficient == -1;
    if (!negates && term.coefficient % divisor.coefficient != 0) return false;
    std::vector<std::string> rest = term.symbols;
    for (const std::string& name : divisor.symbols) {
      auto place = std::find(rest.begin(), rest.end(), name);
      if (place == rest.end()) return false;
      rest.erase(place);
    }
    Dim factor =
        negates ? checked_mul(term.coefficient, -1) : term.coefficient / divisor.coefficient;
    for (std::string& name : rest) factor = factor * Dim::symbol(std::move(name));
    result = result + factor;
    return true;
  };
  if (a.constant_part() != 0 && !divide_term({a.constant_part(), {}})) return false;
  for (const Dim::Term& term : a.terms()) {
    if (!divide_term(term)) return false;
  }
  quotient = result;
  return true;
}

std::string to_string(const Dim& dim) {
  if (dim.is_constant()) return fmt::format("{}", dim.constant_part());
  std::string text;
  auto append = [&](int64_t coefficient, const std::vector<std::string>& symbols) {
    // The magnitude as unsigned, so that the least int64 prints too.
    const uint64_t magnitude = coefficient < 0 ? 0 - static_cast<uint64_t>(coefficient)
                                               : static_cast<uint64_t>(coefficient);
    if (text.empty()) {
      if (coefficient < 0) text += "-";
    } else {
      text += coefficient < 0 ? " - " : " + ";
    }
    const bool show_number = magnitude != 1 || symbols.empty();
    if (show_number) text += fmt::format("{}", magnitude);
    for (size_t i = 0; i < symbols.size(); ++i) {
      if (show_number || i > 0) text += " * ";
      text += symbols[i];
    }
  };
  for (const Dim::Term& term : dim.terms()) append(term.coefficient, term.symbols);
  if (dim.constant_part() != 0) append(dim.constant_part(), {});
  return text;
}

namespace {

class DimParser {
 public:
  explicit DimParser(std::string_view text) : text_(text) {}

  Dim parse() {
    Dim sum;
    bool negative = accept('-');
    while (true) {
      Dim term = parse_factor();
      while (accept('*')) term = term * parse_factor();
      sum = negative ? sum - term : sum + term;
      if (accept('+')) {
        negative = false;
      } else if (accept('-')) {
        negative = true;
      } else {
        break;
      }
    }
    if (position_ != text_.size()) fail();
    return sum;
  }

 private:
  [[noreturn]] void fail() {
    throw_error(
        ErrorCode::kInvalidArgument,
        "'{}' is not an extent: a number or an expression like '2 * tokens + 1' is expected.",
        text_);
  }

  void skip_spaces() {
    while (position_ < text_.size() && text_[position_] == ' ') ++position_;
  }

  bool accept(char expected) {
    skip_spaces();
    if (position_ >= text_.size() || text_[position_] != expected) return false;
    ++position_;
    skip_spaces();
    return true;
  }

  Dim parse_factor() {
    skip_spaces();
    const size_t start = position_;
    auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
    while (position_ < text_.size() && is_word(text_[position_])) ++position_;
    const std::string word(text_.substr(start, position_ - start));
    skip_spaces();
    if (word.empty()) fail();
    if (!std::isdigit(static_cast<unsigned char>(word[0]))) return Dim::symbol(word);
    int64_t value = 0;
    for (char c : word) {
      if (!std::isdigit(static_cast<unsigned char>(c))) fail();
      value = checked_add(checked_mul(value, 10), c - '0');
    }
    return value;
  }

  std::string_view text_;
  size_t position_ = 0;
};

}  // namespace

Dim parse_dim(std::string_view text) { return DimParser(text).parse(); }

}  // namespace rlx
