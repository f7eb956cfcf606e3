#include "templates/methods.h"

#include <algorithm>

#include "base/error.h"
#include "templates/arguments.h"
#include "templates/evaluator.h"
#include "templates/operators.h"
#include "templates/python_text.h"

namespace rlx::templates {
namespace {

using Method = Value (*)(std::string_view name, const Value& self, const CallArguments& call);
struct Entry {
  std::string_view name;
  Method method;  // null: refused when called
};

Value make_strings(std::vector<std::string> texts) {
  std::vector<Value> items;
  for (std::string& text : texts) items.emplace_back(std::move(text));
  return Value::make_list(std::move(items));
}

Value call_strip(std::string_view name, const Value& self, const CallArguments& call) {
  const Arguments arguments(name, call, {"chars"});
  return strip(self.as_string(), arguments.find_string(0), name != "rstrip", name != "lstrip");
}

Value call_split(std::string_view name, const Value& self, const CallArguments& call) {
  const Arguments arguments(name, call, {"sep", "maxsplit"});
  const auto separator = arguments.find_string(0);
  if (separator && separator->empty()) {
    throw_error(ErrorCode::kInvalidArgument, "'{}' is given an empty separator.", name);
  }
  const int64_t limit = arguments.int_or(1, -1);
  return make_strings(name == "split" ? split(self.as_string(), separator, limit)
                                      : split_from_right(self.as_string(), separator, limit));
}

Value call_splitlines(std::string_view name, const Value& self, const CallArguments& call) {
  const Arguments arguments(name, call, {"keepends"});
  return make_strings(split_lines(self.as_string(), arguments.bool_or(0, false)));
}

Value call_partition(std::string_view name, const Value& self, const CallArguments& call) {
  const Arguments arguments(name, call, {"sep"});
  const std::string& separator = arguments.require_string(0);
  if (separator.empty()) {
    throw_error(ErrorCode::kInvalidArgument, "'{}' is given an empty separator.", name);
  }
  const std::string& text = self.as_string();
  const bool first = name == "partition";
  const size_t at = first ? text.find(separator) : text.rfind(separator);
  if (at == std::string::npos) {
    return Value::make_list(
        first ? std::vector<Value>{text, "", ""} : std::vector<Value>{"", "", text},
        ListShape::kTuple);
  }
  return Value::make_list({text.substr(0, at), separator, text.substr(at + separator.size())},
                          ListShape::kTuple);
}

Value call_starts_ends(std::string_view name, const Value& self, const CallArguments& call) {
  const Arguments arguments(name, call, {"prefix"});
  const auto fits = [&](const Value& part) {
    if (!part.is(Kind::kString)) {
      check_defined(part);
      throw_error(ErrorCode::kInvalidArgument, "'{}' is given a {}, but a string is expected.",
                  name, type_name(part));
    }
    const std::string_view text = self.as_string();
    return name == "startswith" ? text.starts_with(part.as_string())
                                : text.ends_with(part.as_string());
  };
  const Value& part = arguments.require(0);
  if (!part.is(Kind::kList)) return fits(part);
  const auto& parts = part.as_list().items;
  return std::any_of(parts.begin(), parts.end(), fits);
}

Value call_case(std::string_view name, const Value& self, const CallArguments& call) {
  const Arguments arguments(name, call, {});
  const std::string& text = self.as_string();
  if (name == "upper") return to_upper(text);
  if (name == "lower" || name == "casefold") return to_lower(text);
  if (name == "capitalize") return capitalize(text);
  return title_runs(text);
}

Value call_replace(std::string_view name, const Value& self, const CallArguments& call) {
  const Arguments arguments(name, call, {"old", "new", "count"});
  const std::string& from = arguments.require_string(0);
  const std::string& to = arguments.require_string(1);
  const std::string& text = self.as_string();
  const size_t most = from.empty() ? text.size() + 1 : text.size() / from.size();
  if (to.size() > kMaxTextBytes) check_text_size(to.size());
  check_text_size(text.size() + (to.size() > from.size() ? most * (to.size() - from.size()) : 0));
  return replace(text, from, to, arguments.int_or(2, -1));
}

Value call_find(std::string_view name, const Value& self, const CallArguments& call) {
  const Arguments arguments(name, call, {"sub"});
  const std::string& text = self.as_string();
  const std::string& part = arguments.require_string(0);
  const size_t at = name.starts_with('r') ? text.rfind(part) : text.find(part);
  if (at != std::string::npos) return count_characters(std::string_view(text).substr(0, at));
  if (name.ends_with("index")) {
    throw_error(ErrorCode::kInvalidArgument, "'{}' does not find the text.", name);
  }
  return int64_t{-1};
}

Value call_count(std::string_view name, const Value& self, const CallArguments& call) {
  const Arguments arguments(name, call, {"sub"});
  const std::string& text = self.as_string();
  const std::string& part = arguments.require_string(0);
  if (part.empty()) return count_characters(text) + 1;
  int64_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos;
       at = text.find(part, at + part.size())) {
    ++count;
  }
  return count;
}

Value call_remove(std::string_view name, const Value& self, const CallArguments& call) {
  const Arguments arguments(name, call, {"part"});
  const std::string& text = self.as_string();
  const std::string& part = arguments.require_string(0);
  if (name == "removeprefix") return text.starts_with(part) ? text.substr(part.size()) : text;
  return text.ends_with(part) ? text.substr(0, text.size() - part.size()) : text;
}

Value call_is(std::string_view name, const Value& self, const CallArguments& call) {
  const Arguments arguments(name, call, {});
  const std::string& text = self.as_string();
  if (name == "isdigit" || name == "isdecimal" || name == "isnumeric") {
    return is_letters_digits(text, false, true);
  }
  if (name == "isalpha") return is_letters_digits(text, true, false);
  if (name == "isalnum") return is_letters_digits(text, true, true);
  if (name == "isspace") return !text.empty() && strip(text, {}, true, false).empty();
  return has_case(text, name == "isupper");
}

Value call_join(std::string_view name, const Value& self, const CallArguments& call) {
  const Arguments arguments(name, call, {"iterable"});
  std::string result;
  bool is_first = true;
  for (const Value& item : take_elements(arguments.require(0))) {
    if (!item.is(Kind::kString)) {
      throw_error(ErrorCode::kInvalidArgument, "'join' is given a {}, but strings are expected.",
                  type_name(item));
    }
    if (!std::exchange(is_first, false)) result += self.as_string();
    result += item.as_string();
    check_text_size(result.size());
  }
  return result;
}

// str.format, with plain places only: {}, {0} and {name}.
Value call_format(std::string_view, const Value& self, const CallArguments& call) {
  const std::string& text = self.as_string();
  std::string result;
  size_t next = 0;
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    if ((c == '{' || c == '}') && at + 1 < text.size() && text[at + 1] == c) {
      result += c;
      at += 2;
      continue;
    }
    if (c != '{') {
      result += c;
      ++at;
      continue;
    }
    const size_t end = text.find('}', at);
    const std::string place = text.substr(at + 1, end == std::string::npos ? end : end - at - 1);
    const bool is_number = is_letters_digits(place, false, true) && place.size() < 4;
    const Value* value = nullptr;
    if (place.empty() || is_number) {
      const size_t index = place.empty() ? next++ : std::stoul(place);
      if (index < call.positional.size()) value = &call.positional[index];
    } else {
      for (const auto& [name, named] : call.named) {
        if (name == place) value = &named;
      }
    }
    if (end == std::string::npos || value == nullptr) {
      throw_error(ErrorCode::kUnsupported,
                  "'format' has no value for '{{{}}}'; places are {{}}, {{0}} or {{name}}.", place);
    }
    result += to_text(*value);
    check_text_size(result.size());
    at = end + 1;
  }
  return result;
}

Value call_pairs(std::string_view name, const Value& self, const CallArguments& call) {
  const Arguments arguments(name, call, {});
  std::vector<Value> items;
  for (const auto& [key, value] : self.as_dict().entries) {
    if (name == "items") {
      items.push_back(Value::make_list({key, value}, ListShape::kTuple));
    } else {
      items.push_back(name == "keys" ? key : value);
    }
  }
  return Value::make_list(std::move(items), ListShape::kView);
}

Value call_get(std::string_view name, const Value& self, const CallArguments& call) {
  const Arguments arguments(name, call, {"key", "default"});
  if (const Value* found = self.as_dict().find(arguments.require(0))) return *found;
  return arguments.find(1) != nullptr ? *arguments.find(1) : Value(None{});
}

Value call_copy(std::string_view name, const Value& self, const CallArguments& call) {
  const Arguments arguments(name, call, {});
  return self;
}

Value call_list_index(std::string_view name, const Value& self, const CallArguments& call) {
  const Arguments arguments(name, call, {"value"});
  const std::vector<Value>& items = self.as_list().items;
  int64_t count = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    if (!is_equal(items[i], arguments.require(0))) continue;
    if (name == "index") return static_cast<int64_t>(i);
    ++count;
  }
  if (name == "index") {
    throw_error(ErrorCode::kInvalidArgument, "'index' does not find the value in the list.");
  }
  return count;
}

constexpr Entry kStringMethods[] = {
    {"capitalize", call_case},
    {"casefold", call_case},
    {"count", call_count},
    {"endswith", call_starts_ends},
    {"find", call_find},
    {"format", call_format},
    {"index", call_find},
    {"isalnum", call_is},
    {"isalpha", call_is},
    {"isdecimal", call_is},
    {"isdigit", call_is},
    {"islower", call_is},
    {"isnumeric", call_is},
    {"isspace", call_is},
    {"isupper", call_is},
    {"join", call_join},
    {"lower", call_case},
    {"lstrip", call_strip},
    {"partition", call_partition},
    {"removeprefix", call_remove},
    {"removesuffix", call_remove},
    {"replace", call_replace},
    {"rfind", call_find},
    {"rindex", call_find},
    {"rpartition", call_partition},
    {"rsplit", call_split},
    {"rstrip", call_strip},
    {"split", call_split},
    {"splitlines", call_splitlines},
    {"startswith", call_starts_ends},
    {"strip", call_strip},
    {"title", call_case},
    {"upper", call_case},
};
constexpr Entry kDictMethods[] = {
    {"clear", nullptr},   {"copy", call_copy},    {"get", call_get},    {"items", call_pairs},
    {"keys", call_pairs}, {"pop", nullptr},       {"popitem", nullptr}, {"setdefault", nullptr},
    {"update", nullptr},  {"values", call_pairs},
};
constexpr Entry kListMethods[] = {
    {"append", nullptr},        {"clear", nullptr},  {"copy", call_copy},
    {"count", call_list_index}, {"extend", nullptr}, {"index", call_list_index},
    {"insert", nullptr},        {"pop", nullptr},    {"remove", nullptr},
    {"reverse", nullptr},       {"sort", nullptr},
};

const Entry* find_method(const Value& value, std::string_view name) {
  const auto find_in = [&](const auto& entries) -> const Entry* {
    const auto found = std::find_if(std::begin(entries), std::end(entries),
                                    [&](const Entry& entry) { return entry.name == name; });
    return found == std::end(entries) ? nullptr : &*found;
  };
  if (value.is(Kind::kString)) return find_in(kStringMethods);
  if (value.is(Kind::kDict)) return find_in(kDictMethods);
  if (value.is(Kind::kList) && value.as_list().shape == ListShape::kList) {
    return find_in(kListMethods);
  }
  return nullptr;
}

class BoundMethod final : public Object {
 public:
  BoundMethod(Value self, const Entry& entry) : self_(std::move(self)), entry_(entry) {}
  std::string_view type_name() const override { return "method"; }
  bool is_callable() const override { return true; }
  Value call(Evaluator& evaluator, const CallArguments& arguments) override {
    evaluator.charge(self_.weight());
    if (entry_.method == nullptr) {
      throw_error(ErrorCode::kUnsupported,
                  "The method '{}' changes its value, which a template must not.", entry_.name);
    }
    return entry_.method(entry_.name, self_, arguments);
  }

 private:
  const Value self_;
  const Entry& entry_;
};

}  // namespace

bool has_method(const Value& value, std::string_view name) {
  return find_method(value, name) != nullptr;
}

Value make_method(const Value& value, std::string_view name) {
  const Entry* entry = find_method(value, name);
  RLX_CHECK(entry != nullptr, "no method '{}'", name);
  return Value(std::shared_ptr<Object>(std::make_shared<BoundMethod>(value, *entry)));
}

}  // namespace rlx::templates
