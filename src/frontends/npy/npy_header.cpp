#include "frontends/npy/npy_header.h"

#include <array>
#include <limits>

#include "base/error.h"
#include "base/printable_text.h"

namespace rlx::npy {
namespace {

struct NamedDType {
  std::string_view code;  // without the byte order
  DType dtype;
};

constexpr std::array kDTypes = {
    NamedDType{"f8", DType::kF64}, NamedDType{"f4", DType::kF32},   NamedDType{"f2", DType::kF16},
    NamedDType{"i8", DType::kI64}, NamedDType{"i4", DType::kI32},   NamedDType{"i2", DType::kI16},
    NamedDType{"i1", DType::kI8},  NamedDType{"u8", DType::kU64},   NamedDType{"u4", DType::kU32},
    NamedDType{"u2", DType::kU16}, NamedDType{"u1", DType::kU8},    NamedDType{"b1", DType::kBool},
    NamedDType{"c8", DType::kC64}, NamedDType{"c16", DType::kC128},
};

// NumPy itself stops at 64 dimensions.
constexpr size_t kMaxDimensions = 64;

DType parse_descr(std::string_view descr) {
  const char order = descr.empty() ? '\0' : descr[0];
  const std::string_view code = descr.empty() ? descr : descr.substr(1);
  if (order == '>') {
    throw_error(ErrorCode::kUnsupported,
                "The element type {} is big endian; expected a little-endian one.",
                printable_text(descr));
  }
  if (order == '<' || order == '|') {
    for (const NamedDType& candidate : kDTypes) {
      if (candidate.code == code) return candidate.dtype;
    }
    if (code.starts_with('O')) {
      throw_error(ErrorCode::kUnsupported,
                  "The element type {} is Python objects, which are never read.",
                  printable_text(descr));
    }
  }
  throw_error(
      ErrorCode::kUnsupported,
      "The element type {} is not supported; expected '<' or '|' and one of f2, f4, f8, i1, "
      "i2, i4, i8, u1, u2, u4, u8, b1, c8, c16.",
      printable_text(descr));
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Header parse() {
    Header header{};
    bool has_descr = false;
    bool has_order = false;
    bool has_shape = false;
    expect('{');
    while (peek() != '}') {
      const std::string_view key = read_string();
      expect(':');
      if (key == "descr") {
        check_first(has_descr, key);
        if (peek() == '[') {
          throw_error(ErrorCode::kUnsupported,
                      "The elements are records of several fields, which are not supported.");
        }
        header.dtype = parse_descr(read_string());
      } else if (key == "fortran_order") {
        check_first(has_order, key);
        if (read_bool()) {
          throw_error(ErrorCode::kUnsupported,
                      "The array is in Fortran order; expected C order (row-major).");
        }
      } else if (key == "shape") {
        check_first(has_shape, key);
        header.shape = read_shape();
      } else {
        throw_error(ErrorCode::kCorruptData,
                    "The header has the key {}, but expected 'descr', 'fortran_order' and 'shape'.",
                    printable_text(key));
      }
      if (peek() == ',') {
        ++position_;
      } else if (peek() != '}') {
        fail("',' or '}'");
      }
    }
    ++position_;
    if (!at_end()) fail("only blanks");
    if (!has_descr || !has_order || !has_shape) {
      throw_error(ErrorCode::kCorruptData, "The header lacks the key '{}'.",
                  !has_descr ? "descr" : (!has_order ? "fortran_order" : "shape"));
    }
    return header;
  }

 private:
  static void check_first(bool& seen, std::string_view key) {
    if (seen) throw_error(ErrorCode::kCorruptData, "The header has the key '{}' twice.", key);
    seen = true;
  }

  [[noreturn]] void fail(const char* expected) const {
    throw_error(ErrorCode::kCorruptData, "The header is malformed at {}: expected {}.",
                printable_text(text_.substr(position_), 20), expected);
  }

  // True when only blanks are left; they are passed over.
  bool at_end() {
    while (position_ < text_.size() &&
           (text_[position_] == ' ' || text_[position_] == '\n' || text_[position_] == '\t')) {
      ++position_;
    }
    return position_ == text_.size();
  }

  // The next character that is not blank; 0 at the end.
  char peek() { return at_end() ? '\0' : text_[position_]; }

  void expect(char letter) {
    if (peek() != letter) {
      const char expected[] = {'\'', letter, '\'', '\0'};
      fail(expected);
    }
    ++position_;
  }

  std::string_view read_string() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') fail("a string");
    const size_t end = text_.find(quote, position_ + 1);
    if (end == std::string_view::npos) fail("the end of a string");
    const std::string_view value = text_.substr(position_ + 1, end - position_ - 1);
    position_ = end + 1;
    return value;
  }

  bool read_bool() {
    peek();
    for (const bool value : {false, true}) {
      const std::string_view word = value ? "True" : "False";
      if (text_.substr(position_).starts_with(word)) {
        position_ += word.size();
        return value;
      }
    }
    fail("True or False");
  }

  int64_t read_extent() {
    const char first = peek();
    if (first < '0' || first > '9') fail("an extent of at least 0");
    int64_t value = 0;
    for (; position_ < text_.size() && text_[position_] >= '0' && text_[position_] <= '9';
         ++position_) {
      const int digit = text_[position_] - '0';
      if (value > (std::numeric_limits<int64_t>::max() - digit) / 10) fail("an extent of 63 bits");
      value = value * 10 + digit;
    }
    return value;
  }

  // (), (3,) or (3, 4); (3) is not a tuple, and NumPy never writes it.
  std::vector<int64_t> read_shape() {
    std::vector<int64_t> shape;
    expect('(');
    while (peek() != ')') {
      if (shape.size() == kMaxDimensions) fail("at most 64 dimensions");
      shape.push_back(read_extent());
      if (peek() == ',') {
        ++position_;
      } else if (peek() != ')' || shape.size() == 1) {
        fail("','");
      }
    }
    ++position_;
    return shape;
  }

  std::string_view text_;
  size_t position_ = 0;
};

}  // namespace

Header parse_header(std::string_view text) { return Parser(text).parse(); }

std::string print_header(DType dtype, std::span<const int64_t> shape) {
  for (const NamedDType& candidate : kDTypes) {
    if (candidate.dtype != dtype) continue;
    const char order = bytes_per_block(dtype) == 1 ? '|' : '<';
    std::string extents;
    for (const int64_t extent : shape) extents += fmt::format("{}, ", extent);
    if (shape.size() == 1) extents.pop_back();  // "(3,)", but "(3, 4)"
    if (shape.size() > 1) extents.resize(extents.size() - 2);
    return fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}), }}", order,
                       candidate.code, extents);
  }
  throw_error(ErrorCode::kUnsupported, "A .npy file cannot hold elements of type {}.",
              to_string(dtype));
}

}  // namespace rlx::npy
