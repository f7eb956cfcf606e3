#include "templates/filters.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "templates/arguments.h"
#include "templates/evaluator.h"
#include "templates/json.h"
#include "templates/operators.h"
#include "templates/python_text.h"
#include "templates/tests.h"

namespace rlx::templates {
namespace {

Value make_generator(std::vector<Value> items) {
  return Value::make_list(std::move(items), ListShape::kGenerator);
}

// Elements, with what walking over them costs.
std::vector<Value> elements(Evaluator& evaluator, const Value& value) {
  std::vector<Value> items = take_elements(value);
  evaluator.charge(static_cast<int64_t>(items.size()));
  return items;
}

// The attribute of an element: "function.name" or a position; keys win over methods.
Value find_path(const Value& value, const Value& path) {
  if (path.is_integral()) return find_item(value, path);
  Value found = value;
  for (const std::string& part : split(path.as_string(), ".", -1)) {
    const bool is_position = is_letters_digits(part, false, true) && part.size() < 10;
    found =
        find_item(found, is_position ? Value(static_cast<int64_t>(std::stol(part))) : Value(part));
  }
  return found;
}

void check_path(std::string_view filter, const Value& path) {
  if (path.is(Kind::kString) || path.is_integral()) return;
  throw_error(ErrorCode::kInvalidArgument, "'{}' is given a {} as attribute.", filter,
              type_name(path));
}

// Text.

Value trim(Evaluator&, const Value& input, const CallArguments& call) {
  const Arguments arguments("trim", call, {"chars"});
  return strip(to_text(input), arguments.find_string(0), true, true);
}

template <std::string (*Map)(std::string_view)>
Value map_text(Evaluator&, const Value& input, const CallArguments& call) {
  const Arguments arguments("case", call, {});
  return Map(to_text(input));
}

Value make_string(Evaluator&, const Value& input, const CallArguments& call) {
  const Arguments arguments("string", call, {});
  return to_text(input);
}

Value same(Evaluator&, const Value& input, const CallArguments& call) {
  const Arguments arguments("safe", call, {});
  return to_text(input);
}

Value replace_text(Evaluator& evaluator, const Value& input, const CallArguments& call) {
  const Arguments arguments("replace", call, {"old", "new", "count"});
  CallArguments texts;
  texts.positional = {to_text(arguments.require(0)), to_text(arguments.require(1)),
                      arguments.int_or(2, -1)};
  return evaluator.call(find_attribute(to_text(input), "replace"), texts);
}

Value indent(Evaluator&, const Value& input, const CallArguments& call) {
  const Arguments arguments("indent", call, {"width", "first", "blank"});
  std::string step(4, ' ');
  if (const Value* width = arguments.find(0)) {
    if (width->is(Kind::kString)) {
      step = width->as_string();
    } else {
      step.assign(static_cast<size_t>(std::clamp<int64_t>(arguments.int_or(0, 4), 0, 1000)), ' ');
    }
  }
  const bool blank = arguments.bool_or(2, false);
  const std::vector<std::string> lines = split_lines(to_text(input) + "\n", false);
  std::string text = arguments.bool_or(1, false) ? step : "";
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) text += '\n';
    if (i > 0 && (blank || !lines[i].empty())) text += step;
    text += lines[i];
    check_text_size(text.size());
  }
  return text;
}

Value center(Evaluator&, const Value& input, const CallArguments& call) {
  const Arguments arguments("center", call, {"width"});
  const std::string text = to_text(input);
  const int64_t width = std::min<int64_t>(arguments.int_or(0, 80), kMaxTextBytes);
  const int64_t missing = std::max<int64_t>(width - count_characters(text), 0);
  // Python puts the odd blank to the left of texts when both widths are odd.
  const int64_t left = missing / 2 + (missing & width & 1);
  return std::string(static_cast<size_t>(left), ' ') + text +
         std::string(static_cast<size_t>(missing - left), ' ');
}

Value escape(Evaluator&, const Value& input, const CallArguments& call) {
  const Arguments arguments("escape", call, {});
  std::string text;
  for (const char c : to_text(input)) {
    switch (c) {
      case '&':
        text += "&amp;";
        break;
      case '<':
        text += "&lt;";
        break;
      case '>':
        text += "&gt;";
        break;
      case '"':
        text += "&#34;";
        break;
      case '\'':
        text += "&#39;";
        break;
      default:
        text += c;
    }
  }
  check_text_size(text.size());
  return text;
}

Value format_text(Evaluator&, const Value& input, const CallArguments& call) {
  if (call.named.empty()) {
    return format_percent(to_text(input), Value::make_list(call.positional, ListShape::kTuple));
  }
  throw_error(ErrorCode::kUnsupported, "'format' with named values is not supported.");
}

Value wordcount(Evaluator&, const Value& input, const CallArguments& call) {
  const Arguments arguments("wordcount", call, {});
  const std::string text = to_text(input);
  int64_t count = 0;
  bool in_word = false;
  for (const std::string_view c : split_characters(text)) {
    const bool is_word = is_letters_digits(c, true, true) || c == "_";
    count += is_word && !in_word;
    in_word = is_word;
  }
  return count;
}

Value to_json(Evaluator&, const Value& input, const CallArguments& call) {
  const Arguments arguments("tojson", call, {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.ascii_only = arguments.bool_or(0, false);
  if (const Value* width = arguments.find(1); width != nullptr && !width->is(Kind::kNone)) {
    style.item_separator = ",";
    style.indent =
        width->is(Kind::kString)
            ? width->as_string()
            : std::string(static_cast<size_t>(std::clamp<int64_t>(arguments.int_or(1, 0), 0, 100)),
                          ' ');
  }
  if (const Value* separators = arguments.find(2);
      separators != nullptr && !separators->is(Kind::kNone)) {
    const std::vector<Value> pair = take_elements(*separators);
    if (pair.size() != 2 || !pair[0].is(Kind::kString) || !pair[1].is(Kind::kString)) {
      throw_error(ErrorCode::kInvalidArgument,
                  "The separators of 'tojson' are not a pair of strings.");
    }
    style.item_separator = pair[0].as_string();
    style.key_separator = pair[1].as_string();
  }
  style.sort_keys = arguments.bool_or(3, false);
  return write_json(input, style);
}

// Numbers.

Value make_int(Evaluator&, const Value& input, const CallArguments& call) {
  const Arguments arguments("int", call, {"default", "base"});
  const Value fallback = arguments.find(0) != nullptr ? *arguments.find(0) : Value(int64_t{0});
  const int64_t base = arguments.int_or(1, 10);
  if (input.is_integral()) return input.as_int();
  double number = NAN;
  if (input.is(Kind::kFloat)) {
    number = input.as_float();
  } else if (input.is(Kind::kString) && base >= 2 && base <= 36) {
    std::string text(strip(input.as_string(), {}, true, true));
    std::erase(text, '_');
    const char* begin = text.data() + (text.starts_with('+') ? 1 : 0);
    const char* end = text.data() + text.size();
    int64_t value = 0;
    const auto whole = std::from_chars(begin, end, value, static_cast<int>(base));
    if (whole.ec == std::errc() && whole.ptr == end) return value;
    const auto real = std::from_chars(begin, end, number);
    if (real.ec != std::errc() || real.ptr != end) return fallback;
  }
  if (!(std::abs(number) < 9.2e18)) return fallback;
  return static_cast<int64_t>(number);
}

Value make_float(Evaluator&, const Value& input, const CallArguments& call) {
  const Arguments arguments("float", call, {"default"});
  if (input.is_number()) return input.as_float();
  if (input.is(Kind::kString)) {
    const std::string_view text = strip(input.as_string(), {}, true, true);
    double number = 0;
    const char* begin = text.data() + (text.starts_with('+') ? 1 : 0);
    const auto result = std::from_chars(begin, text.data() + text.size(), number);
    if (result.ec == std::errc() && result.ptr == text.data() + text.size() && !text.empty()) {
      return number;
    }
  }
  return arguments.find(0) != nullptr ? *arguments.find(0) : Value(0.0);
}

double require_number(std::string_view filter, const Value& input) {
  if (input.is_number()) return input.as_float();
  check_defined(input);
  throw_error(ErrorCode::kInvalidArgument, "'{}' is given a {}, but a number is expected.", filter,
              type_name(input));
}

Value absolute(Evaluator&, const Value& input, const CallArguments& call) {
  const Arguments arguments("abs", call, {});
  const double number = require_number("abs", input);
  if (!input.is_integral()) return std::abs(number);
  return input.as_int() < 0 ? negate(input) : Value(input.as_int());
}

Value round_number(Evaluator&, const Value& input, const CallArguments& call) {
  const Arguments arguments("round", call, {"precision", "method"});
  const double number = require_number("round", input);
  const std::string_view method = arguments.find_string(1).value_or("common");
  const double scale = std::pow(10.0, static_cast<double>(arguments.int_or(0, 0)));
  if (method == "ceil") return std::ceil(number * scale) / scale;
  if (method == "floor") return std::floor(number * scale) / scale;
  if (method != "common") {
    throw_error(ErrorCode::kInvalidArgument, "'round' has no method '{}'.", method);
  }
  return std::nearbyint(number * scale) / scale;  // halves to even, as Python
}

// Any value.

Value use_default(Evaluator&, const Value& input, const CallArguments& call) {
  const Arguments arguments("default", call, {"default_value", "boolean"});
  const bool replaces =
      input.is(Kind::kUndefined) || (arguments.bool_or(1, false) && !is_true(input));
  if (!replaces) return input;
  return arguments.find(0) != nullptr ? *arguments.find(0) : Value("");
}

Value length(Evaluator&, const Value& input, const CallArguments& call) {
  const Arguments arguments("length", call, {});
  return length_of(input);
}

Value attribute(Evaluator&, const Value& input, const CallArguments& call) {
  const Arguments arguments("attr", call, {"name"});
  const std::string& name = arguments.require_string(0);
  // This filter alone does not see the keys of a dict.
  const bool hides =
      input.is(Kind::kDict) && input.as_dict().find(std::string_view(name)) != nullptr;
  if (hides) return Value::make_undefined(name);
  return find_attribute(input, name);
}

// Lists.

Value make_list(Evaluator& evaluator, const Value& input, const CallArguments& call) {
  const Arguments arguments("list", call, {});
  return Value::make_list(elements(evaluator, input));
}

Value first(Evaluator& evaluator, const Value& input, const CallArguments& call) {
  const Arguments arguments("first", call, {});
  if (input.is(Kind::kList) && input.as_list().shape == ListShape::kGenerator) {
    const List& list = input.as_list();
    if (list.num_taken < list.items.size()) return list.items[list.num_taken++];
    return Value::make_undefined("first element");
  }
  const std::vector<Value> items = elements(evaluator, input);
  return items.empty() ? Value::make_undefined("first element") : items.front();
}

Value last(Evaluator& evaluator, const Value& input, const CallArguments& call) {
  const Arguments arguments("last", call, {});
  length_of(input);  // refuses what has no end
  const std::vector<Value> items = elements(evaluator, input);
  return items.empty() ? Value::make_undefined("last element") : items.back();
}

Value reverse(Evaluator& evaluator, const Value& input, const CallArguments& call) {
  const Arguments arguments("reverse", call, {});
  std::vector<Value> items = elements(evaluator, input);
  std::reverse(items.begin(), items.end());
  if (!input.is(Kind::kString)) return make_generator(std::move(items));
  std::string text;
  for (const Value& item : items) text += item.as_string();
  return text;
}

Value join(Evaluator& evaluator, const Value& input, const CallArguments& call) {
  const Arguments arguments("join", call, {"d", "attribute"});
  const std::string separator = arguments.find(0) != nullptr ? to_text(*arguments.find(0)) : "";
  if (arguments.find(1) != nullptr) check_path("join", *arguments.find(1));
  std::string text;
  bool is_first = true;
  for (const Value& item : elements(evaluator, input)) {
    if (!std::exchange(is_first, false)) text += separator;
    text += to_text(arguments.find(1) != nullptr ? find_path(item, *arguments.find(1)) : item);
    check_text_size(text.size());
  }
  return text;
}

Value items(Evaluator&, const Value& input, const CallArguments& call) {
  const Arguments arguments("items", call, {});
  if (input.is(Kind::kUndefined)) return make_generator({});
  if (!input.is(Kind::kDict)) {
    throw_error(ErrorCode::kInvalidArgument, "'items' is given a {}, but a dict is expected.",
                type_name(input));
  }
  std::vector<Value> pairs;
  for (const auto& [key, value] : input.as_dict().entries) {
    pairs.push_back(Value::make_list({key, value}, ListShape::kTuple));
  }
  return make_generator(std::move(pairs));
}

// What sorting looks at: the attribute, in small letters unless case counts.
Value sort_key(const Value& item, const Value* path, bool case_sensitive) {
  Value key = path != nullptr && !path->is(Kind::kNone) ? find_path(item, *path) : item;
  if (!case_sensitive && key.is(Kind::kString)) return to_lower(key.as_string());
  return key;
}

void sort_by_key(Evaluator& evaluator, std::vector<Value>& items, const Value* path,
                 bool case_sensitive, bool reverse) {
  std::vector<std::pair<Value, Value>> keyed;
  for (Value& item : items) {
    Value key = sort_key(item, path, case_sensitive);
    // Types without an order are found before the sort, which needs one that is consistent.
    if (!keyed.empty()) compare(keyed.front().first, key);
    keyed.emplace_back(std::move(key), std::move(item));
  }
  evaluator.charge(static_cast<int64_t>(keyed.size()) * 8);
  std::stable_sort(keyed.begin(), keyed.end(), [&](const auto& a, const auto& b) {
    return (reverse ? compare(b.first, a.first) : compare(a.first, b.first)) < 0;
  });
  for (size_t i = 0; i < keyed.size(); ++i) items[i] = std::move(keyed[i].second);
}

Value sort(Evaluator& evaluator, const Value& input, const CallArguments& call) {
  const Arguments arguments("sort", call, {"reverse", "case_sensitive", "attribute"});
  if (arguments.find(2) != nullptr) check_path("sort", *arguments.find(2));
  std::vector<Value> items = elements(evaluator, input);
  sort_by_key(evaluator, items, arguments.find(2), arguments.bool_or(1, false),
              arguments.bool_or(0, false));
  return Value::make_list(std::move(items));
}

Value dictsort(Evaluator& evaluator, const Value& input, const CallArguments& call) {
  const Arguments arguments("dictsort", call, {"case_sensitive", "by", "reverse"});
  const std::string_view by = arguments.find_string(1).value_or("key");
  if (by != "key" && by != "value") {
    throw_error(ErrorCode::kInvalidArgument,
                "'dictsort' sorts by '{}', but key or value is expected.", by);
  }
  std::vector<Value> pairs = take_elements(items(evaluator, input, {}));
  const Value path(int64_t{by == "key" ? 0 : 1});
  sort_by_key(evaluator, pairs, &path, arguments.bool_or(0, false), arguments.bool_or(2, false));
  return Value::make_list(std::move(pairs));
}

Value unique(Evaluator& evaluator, const Value& input, const CallArguments& call) {
  const Arguments arguments("unique", call, {"case_sensitive", "attribute"});
  if (arguments.find(1) != nullptr) check_path("unique", *arguments.find(1));
  std::vector<Value> kept, keys;
  for (const Value& item : elements(evaluator, input)) {
    Value key = sort_key(item, arguments.find(1), arguments.bool_or(0, false));
    evaluator.charge(static_cast<int64_t>(keys.size()));
    const auto is_key = [&](const Value& own) { return is_equal(own, key); };
    if (std::any_of(keys.begin(), keys.end(), is_key)) continue;
    keys.push_back(std::move(key));
    kept.push_back(item);
  }
  return make_generator(std::move(kept));
}

template <int Sign>
Value find_extreme(Evaluator& evaluator, const Value& input, const CallArguments& call) {
  const Arguments arguments(Sign > 0 ? "max" : "min", call, {"case_sensitive", "attribute"});
  if (arguments.find(1) != nullptr) check_path("max", *arguments.find(1));
  const auto key_of = [&](const Value& item) {
    return sort_key(item, arguments.find(1), arguments.bool_or(0, false));
  };
  Value best = Value::make_undefined("element of an empty list");
  bool is_first = true;
  for (const Value& item : elements(evaluator, input)) {
    if (std::exchange(is_first, false) || Sign * compare(key_of(item), key_of(best)) > 0) {
      best = item;
    }
  }
  return best;
}

Value sum(Evaluator& evaluator, const Value& input, const CallArguments& call) {
  const Arguments arguments("sum", call, {"attribute", "start"});
  const Value* path = arguments.find(0);
  if (path != nullptr && path->is(Kind::kNone)) path = nullptr;
  if (path != nullptr) check_path("sum", *path);
  Value total = arguments.find(1) != nullptr ? *arguments.find(1) : Value(int64_t{0});
  for (const Value& item : elements(evaluator, input)) {
    total = apply_binary("+", total, path != nullptr ? find_path(item, *path) : item);
    evaluator.charge(total.weight());
  }
  return total;
}

// map('name of a filter', ...) or map(attribute='x', default='y').
Value map_elements(Evaluator& evaluator, const Value& input, const CallArguments& call) {
  std::vector<Value> mapped;
  if (call.positional.empty()) {
    const Arguments arguments("map", call, {"attribute", "default"});
    check_path("map", arguments.require(0));
    for (const Value& item : elements(evaluator, input)) {
      Value found = find_path(item, arguments.require(0));
      if (found.is(Kind::kUndefined) && arguments.find(1) != nullptr) found = *arguments.find(1);
      mapped.push_back(std::move(found));
    }
    return make_generator(std::move(mapped));
  }
  const Value& name = call.positional[0];
  const Filter filter = name.is(Kind::kString) ? find_filter(name.as_string()) : nullptr;
  if (filter == nullptr) {
    throw_error(ErrorCode::kUnsupported, "The filter '{}' is not supported.", to_text(name));
  }
  CallArguments rest{{call.positional.begin() + 1, call.positional.end()}, call.named};
  for (const Value& item : elements(evaluator, input)) {
    mapped.push_back(filter(evaluator, item, rest));
    evaluator.charge(mapped.back().weight());
  }
  return make_generator(std::move(mapped));
}

// select, reject, selectattr and rejectattr: the name of a test and its arguments may follow.
template <bool HasAttribute, bool Keeps>
Value select_elements(Evaluator& evaluator, const Value& input, const CallArguments& call) {
  const size_t first = HasAttribute ? 1 : 0;
  if (HasAttribute) {
    if (call.positional.empty()) {
      throw_error(ErrorCode::kInvalidArgument, "A filter by attribute is given no attribute.");
    }
    check_path("selectattr", call.positional[0]);
  }
  Test test = nullptr;
  CallArguments rest;
  if (call.positional.size() > first) {
    const Value& name = call.positional[first];
    if (name.is(Kind::kString)) test = find_test(name.as_string());
    if (test == nullptr) {
      throw_error(ErrorCode::kUnsupported, "The test '{}' is not supported.", to_text(name));
    }
    rest = {{call.positional.begin() + static_cast<ptrdiff_t>(first) + 1, call.positional.end()},
            call.named};
  }
  std::vector<Value> kept;
  for (Value& item : elements(evaluator, input)) {
    const Value value = HasAttribute ? find_path(item, call.positional[0]) : item;
    if ((test != nullptr ? test(value, rest) : is_true(value)) == Keeps) {
      kept.push_back(std::move(item));
    }
  }
  return make_generator(std::move(kept));
}

struct Entry {
  std::string_view name;
  Filter filter;
};

constexpr Entry kFilters[] = {
    {"abs", absolute},
    {"attr", attribute},
    {"capitalize", map_text<capitalize>},
    {"center", center},
    {"count", length},
    {"d", use_default},
    {"default", use_default},
    {"dictsort", dictsort},
    {"e", escape},
    {"escape", escape},
    {"first", first},
    {"float", make_float},
    {"format", format_text},
    {"indent", indent},
    {"int", make_int},
    {"items", items},
    {"join", join},
    {"last", last},
    {"length", length},
    {"list", make_list},
    {"lower", map_text<to_lower>},
    {"map", map_elements},
    {"max", find_extreme<1>},
    {"min", find_extreme<-1>},
    {"reject", select_elements<false, false>},
    {"rejectattr", select_elements<true, false>},
    {"replace", replace_text},
    {"reverse", reverse},
    {"round", round_number},
    {"safe", same},
    {"select", select_elements<false, true>},
    {"selectattr", select_elements<true, true>},
    {"sort", sort},
    {"string", make_string},
    {"sum", sum},
    {"title", map_text<title_words>},
    {"tojson", to_json},
    {"trim", trim},
    {"unique", unique},
    {"upper", map_text<to_upper>},
    {"wordcount", wordcount},
};

}  // namespace

Filter find_filter(std::string_view name) {
  const auto found = std::find_if(std::begin(kFilters), std::end(kFilters),
                                  [&](const Entry& entry) { return entry.name == name; });
  return found == std::end(kFilters) ? nullptr : found->filter;
}

}  // namespace rlx::templates
