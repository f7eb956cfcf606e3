#include "templates/operators.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "templates/methods.h"
#include "templates/python_text.h"

namespace rlx::templates {
namespace {

[[noreturn]] void fail_types(std::string_view spelling, const Value& a, const Value& b) {
  check_defined(a);
  check_defined(b);
  throw_error(ErrorCode::kInvalidArgument, "'{}' does not go with the types {} and {}.", spelling,
              type_name(a), type_name(b));
}

[[noreturn]] void fail_overflow() {
  throw_error(ErrorCode::kOutOfRange, "A number does not fit into 64 bits.");
}

void check_divisor(bool is_zero) {
  if (is_zero) throw_error(ErrorCode::kInvalidArgument, "A number is divided by zero.");
}

int64_t raise(int64_t base, int64_t exponent) {
  int64_t result = 1;
  while (exponent > 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) fail_overflow();
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) fail_overflow();
  }
  return result;
}

Value apply_to_ints(std::string_view spelling, int64_t a, int64_t b) {
  int64_t result = 0;
  if (spelling == "+") {
    if (__builtin_add_overflow(a, b, &result)) fail_overflow();
  } else if (spelling == "-") {
    if (__builtin_sub_overflow(a, b, &result)) fail_overflow();
  } else if (spelling == "*") {
    if (__builtin_mul_overflow(a, b, &result)) fail_overflow();
  } else if (spelling == "/") {
    check_divisor(b == 0);
    return static_cast<double>(a) / static_cast<double>(b);
  } else if (spelling == "**") {
    if (b < 0) return std::pow(static_cast<double>(a), static_cast<double>(b));
    result = raise(a, b);
  } else {
    check_divisor(b == 0);
    if (b == -1) {
      if (spelling == "%") return int64_t{0};
      if (__builtin_sub_overflow(int64_t{0}, a, &result)) fail_overflow();
      return result;
    }
    // Python rounds down, and the remainder has the divisor's sign.
    const int64_t remainder = a % b;
    const bool adjusts = remainder != 0 && (remainder < 0) != (b < 0);
    result = spelling == "%" ? remainder + (adjusts ? b : 0) : a / b - (adjusts ? 1 : 0);
  }
  return result;
}

Value apply_to_floats(std::string_view spelling, double a, double b) {
  if (spelling == "+") return a + b;
  if (spelling == "-") return a - b;
  if (spelling == "*") return a * b;
  if (spelling == "**") return std::pow(a, b);
  check_divisor(b == 0);
  if (spelling == "/") return a / b;
  double remainder = std::fmod(a, b);
  if (remainder != 0 && (remainder < 0) != (b < 0)) remainder += b;
  return spelling == "%" ? remainder : std::floor((a - remainder) / b + 0.5);
}

Value repeat(const Value& value, int64_t count) {
  count = std::max<int64_t>(count, 0);
  if (value.is(Kind::kString)) {
    const std::string& text = value.as_string();
    if (text.empty() || count == 0) return std::string();
    if (count > static_cast<int64_t>(kMaxTextBytes)) check_text_size(kMaxTextBytes + 1);
    check_text_size(text.size() * static_cast<size_t>(count));
    std::string result;
    for (int64_t i = 0; i < count; ++i) result += text;
    return result;
  }
  const List& list = value.as_list();
  if (count > Value::kMaxWeight || list.weight * count > 2 * Value::kMaxWeight) {
    throw_error(ErrorCode::kOutOfRange, "A list holds more than {} values.", Value::kMaxWeight);
  }
  std::vector<Value> items;
  for (int64_t i = 0; i < count; ++i) {
    items.insert(items.end(), list.items.begin(), list.items.end());
  }
  return Value::make_list(std::move(items), list.shape);
}

bool is_repeatable(const Value& value) {
  return value.is(Kind::kString) ||
         (value.is(Kind::kList) && (value.as_list().shape == ListShape::kList ||
                                    value.as_list().shape == ListShape::kTuple));
}

Value join_lists(const Value& a, const Value& b) {
  std::vector<Value> items = a.as_list().items;
  items.insert(items.end(), b.as_list().items.begin(), b.as_list().items.end());
  return Value::make_list(std::move(items), a.as_list().shape);
}

bool contains(const Value& container, const Value& item) {
  if (container.is(Kind::kString)) {
    if (!item.is(Kind::kString)) {
      check_defined(item);
      throw_error(ErrorCode::kInvalidArgument, "'in' looks for a {} in a string.", type_name(item));
    }
    return container.as_string().find(item.as_string()) != std::string::npos;
  }
  if (container.is(Kind::kDict)) return container.as_dict().find(item) != nullptr;
  const std::vector<Value> items = take_elements(container);
  return std::any_of(items.begin(), items.end(),
                     [&](const Value& own) { return is_equal(own, item); });
}

}  // namespace

void check_text_size(size_t bytes) {
  if (bytes <= kMaxTextBytes) return;
  throw_error(ErrorCode::kOutOfRange, "A text of the template is longer than {} bytes.",
              kMaxTextBytes);
}

Value apply_binary(std::string_view spelling, const Value& a, const Value& b) {
  if (a.is_integral() && b.is_integral()) return apply_to_ints(spelling, a.as_int(), b.as_int());
  if (a.is_number() && b.is_number()) {
    return apply_to_floats(spelling, a.as_float(), b.as_float());
  }
  if (spelling == "+" && a.is(Kind::kString) && b.is(Kind::kString)) {
    check_text_size(a.as_string().size() + b.as_string().size());
    return a.as_string() + b.as_string();
  }
  if (spelling == "+" && is_repeatable(a) && is_repeatable(b) && a.kind() == b.kind() &&
      a.as_list().shape == b.as_list().shape) {
    return join_lists(a, b);
  }
  if (spelling == "*" && is_repeatable(a) && b.is_integral()) return repeat(a, b.as_int());
  if (spelling == "*" && a.is_integral() && is_repeatable(b)) return repeat(b, a.as_int());
  if (spelling == "%" && a.is(Kind::kString)) return format_percent(a.as_string(), b);
  fail_types(spelling, a, b);
}

Value negate(const Value& value) {
  if (value.is(Kind::kFloat)) return -value.as_float();
  if (!value.is_integral()) {
    check_defined(value);
    throw_error(ErrorCode::kInvalidArgument, "'-' does not go with the type {}.", type_name(value));
  }
  return apply_to_ints("-", 0, value.as_int());
}

bool apply_comparison(std::string_view spelling, const Value& a, const Value& b) {
  if (spelling == "==") return is_equal(a, b);
  if (spelling == "!=") return !is_equal(a, b);
  if (spelling == "in") return contains(b, a);
  if (spelling == "not in") return !contains(b, a);
  const bool has_nan = (a.is(Kind::kFloat) && std::isnan(a.as_float())) ||
                       (b.is(Kind::kFloat) && std::isnan(b.as_float()));
  const int order = compare(a, b);
  if (has_nan) return false;
  if (spelling == "<") return order < 0;
  if (spelling == "<=") return order <= 0;
  if (spelling == ">") return order > 0;
  return order >= 0;
}

namespace {

// The position counted from the front, if there is such an element.
std::optional<size_t> find_position(int64_t position, int64_t length) {
  if (position < 0) position += length;
  if (position < 0 || position >= length) return std::nullopt;
  return static_cast<size_t>(position);
}

}  // namespace

Value find_item(const Value& value, const Value& position) {
  check_defined(value);
  if (value.is(Kind::kDict)) {
    if (const Value* found = value.as_dict().find(position)) return *found;
  } else if (position.is_integral() && value.is(Kind::kString)) {
    const auto characters = split_characters(value.as_string());
    const auto at = find_position(position.as_int(), static_cast<int64_t>(characters.size()));
    if (at) return characters[*at];
  } else if (position.is_integral() && is_repeatable(value)) {
    const std::vector<Value>& items = value.as_list().items;
    const auto at = find_position(position.as_int(), static_cast<int64_t>(items.size()));
    if (at) return items[*at];
  }
  if (position.is(Kind::kString)) {
    return find_attribute(value, position.as_string());
  }
  return Value::make_undefined(fmt::format("element {}", position.holds_object()
                                                             ? std::string(type_name(position))
                                                             : to_repr(position)));
}

Value slice(const Value& value, const Value& start, const Value& stop, const Value& step) {
  check_defined(value);
  if (!is_repeatable(value)) {
    throw_error(ErrorCode::kInvalidArgument, "A value of the type {} has no slices.",
                type_name(value));
  }
  const auto number_of = [](const Value& part, int64_t fallback) {
    if (part.is(Kind::kUndefined) || part.is(Kind::kNone)) return fallback;
    if (!part.is_integral()) {
      throw_error(ErrorCode::kInvalidArgument,
                  "The bound of a slice is a {}, but a whole number "
                  "is expected.",
                  type_name(part));
    }
    return part.as_int();
  };
  const int64_t stride = number_of(step, 1);
  if (stride == 0) throw_error(ErrorCode::kInvalidArgument, "The step of a slice is 0.");
  const bool is_text = value.is(Kind::kString);
  std::vector<std::string_view> characters;
  if (is_text) characters = split_characters(value.as_string());
  const auto length =
      static_cast<int64_t>(is_text ? characters.size() : value.as_list().items.size());
  const int64_t lowest = stride > 0 ? 0 : -1;
  const int64_t highest = stride > 0 ? length : length - 1;
  const auto bound = [&](const Value& part, int64_t fallback) {
    int64_t at = number_of(part, fallback);
    const bool given = !part.is(Kind::kUndefined) && !part.is(Kind::kNone);
    if (given && at < 0) at = std::max(at, -length - 1) + length;
    return std::clamp(at, lowest, highest);
  };
  const int64_t first = bound(start, stride > 0 ? 0 : length - 1);
  const int64_t last = bound(stop, stride > 0 ? length : -1);
  std::string text;
  std::vector<Value> items;
  for (int64_t i = first; stride > 0 ? i < last : i > last;) {
    if (is_text) {
      text += characters[static_cast<size_t>(i)];
    } else {
      items.push_back(value.as_list().items[static_cast<size_t>(i)]);
    }
    if (__builtin_add_overflow(i, stride, &i)) break;
  }
  if (is_text) return text;
  return Value::make_list(std::move(items), value.as_list().shape);
}

Value find_attribute(const Value& value, std::string_view name) {
  check_defined(value);
  if (value.is(Kind::kObject)) {
    if (auto found = value.as_object()->attribute(name)) return std::move(*found);
  } else if (has_method(value, name)) {
    return make_method(value, name);
  } else if (value.is(Kind::kDict)) {
    if (const Value* found = value.as_dict().find(name)) return *found;
  }
  return Value::make_undefined(name);
}

namespace {

// The number that a conversion asks for.
double number_for(char conversion, const Value& value) {
  if (value.is_number()) return value.as_float();
  throw_error(ErrorCode::kInvalidArgument, "'%{}' is given a {}, but a number is expected.",
              conversion, type_name(value));
}

std::string convert(char conversion, std::optional<int> precision, const Value& value) {
  switch (conversion) {
    case 's':
    case 'r': {
      const std::string text = conversion == 's' ? to_text(value) : to_repr(value);
      if (!precision) return text;
      return to_text(slice(text, Value(), int64_t{*precision}, Value()));
    }
    case 'd':
    case 'i': {
      if (value.is_integral()) return std::to_string(value.as_int());
      const double number = number_for(conversion, value);
      if (!(std::abs(number) < 9e18)) fail_overflow();
      return std::to_string(static_cast<int64_t>(number));
    }
    case 'f':
      return fmt::format("{:.{}f}", number_for(conversion, value), precision.value_or(6));
    case 'x':
    case 'X': {
      if (!value.is_integral()) {
        throw_error(ErrorCode::kInvalidArgument,
                    "'%{}' is given a {}, but a whole number is expected.", conversion,
                    type_name(value));
      }
      const int64_t number = value.as_int();
      const uint64_t size =
          number < 0 ? 0 - static_cast<uint64_t>(number) : static_cast<uint64_t>(number);
      const std::string digits =
          conversion == 'x' ? fmt::format("{:x}", size) : fmt::format("{:X}", size);
      return number < 0 ? "-" + digits : digits;
    }
    default:
      throw_error(ErrorCode::kUnsupported, "The conversion '%{}' is not supported.", conversion);
  }
}

}  // namespace

std::string format_percent(std::string_view format, const Value& values) {
  const bool is_tuple = values.is(Kind::kList) && values.as_list().shape == ListShape::kTuple;
  size_t next = 0;
  const size_t count = is_tuple ? values.as_list().items.size() : 1;
  std::string result;
  for (size_t at = 0; at < format.size();) {
    if (format[at] != '%') {
      result += format[at++];
      continue;
    }
    ++at;
    bool left = false, zeros = false;
    for (; at < format.size() && (format[at] == '-' || format[at] == '0'); ++at) {
      (format[at] == '-' ? left : zeros) = true;
    }
    const auto read_number = [&] {
      int number = 0;
      for (; at < format.size() && format[at] >= '0' && format[at] <= '9'; ++at) {
        number = std::min(number * 10 + (format[at] - '0'), 1000);
      }
      return number;
    };
    const int width = read_number();
    std::optional<int> precision;
    if (at < format.size() && format[at] == '.') {
      ++at;
      precision = read_number();
    }
    if (at >= format.size()) {
      throw_error(ErrorCode::kInvalidArgument, "A format ends with an open '%'.");
    }
    const char conversion = format[at++];
    if (conversion == '%') {
      result += '%';
      continue;
    }
    if (next >= count) {
      throw_error(ErrorCode::kInvalidArgument, "A format needs more than {} values.", count);
    }
    const Value& value = is_tuple ? values.as_list().items[next] : values;
    ++next;
    const std::string text = convert(conversion, precision, value);
    const int64_t missing = width - count_characters(text);
    const std::string padding(static_cast<size_t>(std::max<int64_t>(missing, 0)),
                              zeros && !left && value.is_number() ? '0' : ' ');
    if (left) {
      result += text + padding;
    } else if (!padding.empty() && padding[0] == '0' && text.starts_with('-')) {
      result += "-" + padding + text.substr(1);
    } else {
      result += padding + text;
    }
    check_text_size(result.size());
  }
  if (next < count && (is_tuple || !values.is(Kind::kDict))) {
    throw_error(ErrorCode::kInvalidArgument, "A format uses {} of {} values.", next, count);
  }
  return result;
}

}  // namespace rlx::templates
