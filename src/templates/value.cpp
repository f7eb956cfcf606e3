#include "templates/value.h"

#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "templates/python_text.h"

namespace rlx::templates {

Value Value::make_undefined(std::string_view name) {
  Value value;
  value.data_ = Undefined{std::make_shared<const std::string>(name)};
  return value;
}

namespace {

// Adds up what a list or dict holds.
template <typename Container>
class Measure {
 public:
  explicit Measure(Container& container) : container_(container) {}
  void add(const Value& item) {
    container_.depth = std::max(container_.depth, item.depth() + 1);
    container_.weight += item.weight();
    container_.holds_object |= item.holds_object();
    if (container_.depth > Value::kMaxDepth) {
      throw_error(ErrorCode::kOutOfRange, "Lists are nested deeper than {} levels.",
                  Value::kMaxDepth);
    }
    if (container_.weight > Value::kMaxWeight) {
      throw_error(ErrorCode::kOutOfRange, "A list or dict holds more than {} values.",
                  Value::kMaxWeight);
    }
  }

 private:
  Container& container_;
};

}  // namespace

Value Value::make_list(std::vector<Value> items, ListShape shape) {
  auto list = std::make_shared<List>();
  Measure measure(*list);
  for (const Value& item : items) measure.add(item);
  list->items = std::move(items);
  list->shape = shape;
  Value value;
  value.data_ = std::move(list);
  return value;
}

Value Value::make_dict(std::vector<std::pair<Value, Value>> entries) {
  auto dict = std::make_shared<Dict>();
  Measure measure(*dict);
  std::unordered_map<std::string_view, size_t> places;  // of string keys; the texts are shared
  for (auto& [key, value] : entries) {
    measure.add(key);
    measure.add(value);
    const size_t end = dict->entries.size();
    size_t place = end;
    if (key.is(Kind::kString)) {
      place = places.try_emplace(key.as_string(), end).first->second;
    } else {
      for (size_t i = 0; i < end && place == end; ++i) {
        if (is_equal(dict->entries[i].first, key)) place = i;
      }
    }
    if (place < end) {
      dict->entries[place].second = std::move(value);
    } else {
      dict->entries.emplace_back(std::move(key), std::move(value));
    }
  }
  return Value(std::shared_ptr<const Dict>(std::move(dict)));
}

double Value::as_float() const {
  return is(Kind::kFloat) ? std::get<double>(data_) : static_cast<double>(as_int());
}

std::string_view Value::undefined_name() const {
  const auto& name = std::get<Undefined>(data_).name;
  return name ? std::string_view(*name) : "value";
}

int Value::depth() const {
  if (is(Kind::kList)) return as_list().depth;
  if (is(Kind::kDict)) return as_dict().depth;
  return 0;
}

int64_t Value::weight() const {
  if (is(Kind::kString)) return 1 + static_cast<int64_t>(as_string().size() / 8);
  if (is(Kind::kList)) return as_list().weight;
  if (is(Kind::kDict)) return as_dict().weight;
  return 1;
}

bool Value::holds_object() const {
  if (is(Kind::kList)) return as_list().holds_object;
  if (is(Kind::kDict)) return as_dict().holds_object;
  return is(Kind::kObject);
}

const Value* Dict::find(const Value& key) const {
  for (const auto& [own, value] : entries) {
    if (is_equal(own, key)) return &value;
  }
  return nullptr;
}

const Value* Dict::find(std::string_view key) const {
  for (const auto& [own, value] : entries) {
    if (own.is(Kind::kString) && own.as_string() == key) return &value;
  }
  return nullptr;
}

Value Object::call(Evaluator&, const CallArguments&) {
  throw_error(ErrorCode::kInvalidArgument, "A {} is called, but it is not a function.",
              type_name());
}

std::optional<Value> Namespace::attribute(std::string_view name) const {
  for (const auto& [own, value] : attributes_) {
    if (own == name) return value;
  }
  return std::nullopt;
}

void Namespace::set(std::string_view name, Value value) {
  if (value.holds_object()) {
    throw_error(ErrorCode::kUnsupported,
                "The namespace attribute '{}' is set to something with a {} in it; only plain "
                "values are supported.",
                name, value.is(Kind::kObject) ? value.as_object()->type_name() : "function");
  }
  for (auto& [own, old] : attributes_) {
    if (own == name) {
      old = std::move(value);
      return;
    }
  }
  attributes_.emplace_back(name, std::move(value));
}

std::string_view type_name(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
      return "undefined";
    case Kind::kNone:
      return "NoneType";
    case Kind::kBool:
      return "bool";
    case Kind::kInt:
      return "int";
    case Kind::kFloat:
      return "float";
    case Kind::kString:
      return "str";
    case Kind::kDict:
      return "dict";
    case Kind::kObject:
      return value.as_object()->type_name();
    case Kind::kList:
      break;
  }
  switch (value.as_list().shape) {
    case ListShape::kTuple:
      return "tuple";
    case ListShape::kView:
      return "dict view";
    case ListShape::kGenerator:
      return "generator";
    case ListShape::kList:
      break;
  }
  return "list";
}

bool is_true(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
    case Kind::kNone:
      return false;
    case Kind::kBool:
    case Kind::kInt:
      return value.as_int() != 0;
    case Kind::kFloat:
      return value.as_float() != 0;
    case Kind::kString:
      return !value.as_string().empty();
    case Kind::kList:
      return value.as_list().shape == ListShape::kGenerator || !value.as_list().items.empty();
    case Kind::kDict:
      return !value.as_dict().entries.empty();
    case Kind::kObject:
      return true;
  }
  return false;
}

namespace {

bool is_equal_list(const List& a, const List& b) {
  if (a.shape != b.shape || a.items.size() != b.items.size()) return false;
  if (a.shape == ListShape::kGenerator) return &a == &b;
  return std::equal(a.items.begin(), a.items.end(), b.items.begin(), is_equal);
}

bool is_equal_dict(const Dict& a, const Dict& b) {
  if (a.entries.size() != b.entries.size()) return false;
  return std::all_of(a.entries.begin(), a.entries.end(), [&](const auto& entry) {
    const Value* other = b.find(entry.first);
    return other != nullptr && is_equal(entry.second, *other);
  });
}

}  // namespace

bool is_equal(const Value& a, const Value& b) {
  if (a.is_integral() && b.is_integral()) return a.as_int() == b.as_int();
  if (a.is_number() && b.is_number()) return a.as_float() == b.as_float();
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::kString:
      return a.as_string() == b.as_string();
    case Kind::kList:
      return is_equal_list(a.as_list(), b.as_list());
    case Kind::kDict:
      return is_equal_dict(a.as_dict(), b.as_dict());
    case Kind::kObject:
      return a.as_object() == b.as_object();
    default:
      return true;  // undefined and none
  }
}

int compare(const Value& a, const Value& b) {
  const auto order = [](const auto& x, const auto& y) { return x < y ? -1 : (y < x ? 1 : 0); };
  if (a.is_integral() && b.is_integral()) return order(a.as_int(), b.as_int());
  if (a.is_number() && b.is_number()) return order(a.as_float(), b.as_float());
  if (a.is(Kind::kString) && b.is(Kind::kString)) return order(a.as_string(), b.as_string());
  if (a.is(Kind::kList) && b.is(Kind::kList) && a.as_list().shape == b.as_list().shape &&
      a.as_list().shape != ListShape::kGenerator) {
    const auto& x = a.as_list().items;
    const auto& y = b.as_list().items;
    for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
      if (!is_equal(x[i], y[i])) return compare(x[i], y[i]);
    }
    return order(x.size(), y.size());
  }
  check_defined(a);
  check_defined(b);
  throw_error(ErrorCode::kInvalidArgument, "Values of the types {} and {} have no order.",
              type_name(a), type_name(b));
}

std::string to_text(const Value& value) {
  if (value.is(Kind::kUndefined)) return {};
  if (value.is(Kind::kString)) return value.as_string();
  return to_repr(value);
}

namespace {

std::string join_repr(const std::vector<Value>& items) {
  std::string text;
  for (size_t i = 0; i < items.size(); ++i) text += (i > 0 ? ", " : "") + to_repr(items[i]);
  return text;
}

std::string repr_of_list(const List& list) {
  switch (list.shape) {
    case ListShape::kList:
      return "[" + join_repr(list.items) + "]";
    case ListShape::kTuple:
      return "(" + join_repr(list.items) + (list.items.size() == 1 ? ",)" : ")");
    case ListShape::kView:
    case ListShape::kGenerator:
      break;
  }
  throw_error(ErrorCode::kUnsupported, "A {} is printed; make it a list first.",
              type_name(Value::make_list({}, list.shape)));
}

}  // namespace

std::string to_repr(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
      return "Undefined";
    case Kind::kNone:
      return "None";
    case Kind::kBool:
      return value.as_bool() ? "True" : "False";
    case Kind::kInt:
      return std::to_string(value.as_int());
    case Kind::kFloat:
      return repr_of_float(value.as_float());
    case Kind::kString:
      return repr_of_string(value.as_string());
    case Kind::kList:
      return repr_of_list(value.as_list());
    case Kind::kDict: {
      std::string text = "{";
      for (const auto& [key, item] : value.as_dict().entries) {
        text += (text.size() > 1 ? ", " : "") + to_repr(key) + ": " + to_repr(item);
      }
      return text + "}";
    }
    case Kind::kObject:
      break;
  }
  throw_error(ErrorCode::kUnsupported, "A {} is printed, which has no text.", type_name(value));
}

std::vector<Value> take_elements(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
      return {};
    case Kind::kString: {
      std::vector<Value> characters;
      for (const std::string_view character : split_characters(value.as_string())) {
        characters.emplace_back(character);
      }
      return characters;
    }
    case Kind::kDict: {
      std::vector<Value> keys;
      for (const auto& [key, item] : value.as_dict().entries) keys.push_back(key);
      return keys;
    }
    case Kind::kList: {
      const List& list = value.as_list();
      if (list.shape != ListShape::kGenerator) return list.items;
      const auto begin = list.items.begin() + static_cast<ptrdiff_t>(list.num_taken);
      list.num_taken = list.items.size();
      return {begin, list.items.end()};
    }
    default:
      throw_error(ErrorCode::kInvalidArgument, "A value of the type {} has no elements.",
                  type_name(value));
  }
}

int64_t length_of(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
      return 0;
    case Kind::kString:
      return count_characters(value.as_string());
    case Kind::kDict:
      return static_cast<int64_t>(value.as_dict().entries.size());
    case Kind::kList:
      if (value.as_list().shape != ListShape::kGenerator) {
        return static_cast<int64_t>(value.as_list().items.size());
      }
      break;
    default:
      break;
  }
  throw_error(ErrorCode::kInvalidArgument, "A value of the type {} has no length.",
              type_name(value));
}

void check_defined(const Value& value) {
  if (!value.is(Kind::kUndefined)) return;
  throw_error(ErrorCode::kInvalidArgument, "'{}' is undefined.", value.undefined_name());
}

}  // namespace rlx::templates
