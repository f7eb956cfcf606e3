// What the operators of expressions do to values, as in Python.
#pragma once

#include <string_view>

#include "templates/value.h"

namespace rlx::templates {

// One of + - * / // % **. Throws kInvalidArgument for types that do not go together or a division
// by zero, and kOutOfRange when the result does not fit.
Value apply_binary(std::string_view spelling, const Value& a, const Value& b);
Value negate(const Value& value);
// One of == != < <= > >= in, and "not in".
bool apply_comparison(std::string_view spelling, const Value& a, const Value& b);
// value[position]; undefined when it is not there.
Value find_item(const Value& value, const Value& position);
// value[start:stop:step]; an undefined or none part is left out.
Value slice(const Value& value, const Value& start, const Value& stop, const Value& step);
// value.name; undefined when it is not there. Methods win over the keys of a dict. Throws
// kInvalidArgument for an undefined value.
Value find_attribute(const Value& value, std::string_view name);
// "%s of %d" % values, where several values are a tuple. Throws kUnsupported for a conversion other
// than s, r, d, i, f, x, X and %%.
std::string format_percent(std::string_view format, const Value& values);

// The most bytes that one string may have.
inline constexpr size_t kMaxTextBytes = size_t{16} << 20;
// Throws kOutOfRange.
void check_text_size(size_t bytes);

}  // namespace rlx::templates
