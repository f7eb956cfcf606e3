// What a template computes with: the values of Python as far as templates meet them. Copies are
// cheap and share their data, which never changes after it is made; the one exception is a
// namespace, which is an Object. Strings are UTF-8 and are counted in characters.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace rlx::templates {

class Evaluator;
class Object;
class Value;
struct CallArguments;
struct Dict;
struct List;

// How a list behaves where Python has several types. A view (of a dict) has a length but no
// positions; a generator has neither, is always true, and gives each element once.
enum class ListShape : uint8_t { kList, kTuple, kView, kGenerator };

enum class Kind : uint8_t {
  kUndefined,
  kNone,
  kBool,
  kInt,
  kFloat,
  kString,
  kList,
  kDict,
  kObject,
};

struct Undefined {
  std::shared_ptr<const std::string> name;  // what was looked for; may be null
};
struct None {};

class Value {
 public:
  Value() = default;  // undefined, without a name
  Value(None) : data_(None{}) {}
  Value(bool value) : data_(value) {}
  Value(int64_t value) : data_(value) {}
  Value(double value) : data_(value) {}
  Value(std::string text) : data_(std::make_shared<const std::string>(std::move(text))) {}
  Value(std::string_view text) : Value(std::string(text)) {}
  Value(const char* text) : Value(std::string(text)) {}
  Value(std::shared_ptr<const Dict> dict) : data_(std::move(dict)) {}
  Value(std::shared_ptr<Object> object) : data_(std::move(object)) {}
  template <typename T>
  Value(const T*) = delete;  // would become a bool

  static Value make_undefined(std::string_view name);
  // Throws kOutOfRange when the elements are nested deeper than kMaxDepth or weigh more than
  // kMaxWeight.
  static Value make_list(std::vector<Value> items, ListShape shape = ListShape::kList);
  // Of equal keys the last value counts, at the place of the first.
  static Value make_dict(std::vector<std::pair<Value, Value>> entries);

  static constexpr int kMaxDepth = 100;
  static constexpr int64_t kMaxWeight = 4'000'000;

  Kind kind() const { return static_cast<Kind>(data_.index()); }
  bool is(Kind kind) const { return this->kind() == kind; }
  bool is_number() const { return is(Kind::kInt) || is(Kind::kFloat) || is(Kind::kBool); }
  // A whole number, which in Python a bool is too.
  bool is_integral() const { return is(Kind::kInt) || is(Kind::kBool); }

  // Preconditions: the kind.
  bool as_bool() const { return std::get<bool>(data_); }
  int64_t as_int() const { return is(Kind::kBool) ? as_bool() : std::get<int64_t>(data_); }
  double as_float() const;  // of any number
  const std::string& as_string() const {
    return *std::get<std::shared_ptr<const std::string>>(data_);
  }
  const List& as_list() const { return *std::get<std::shared_ptr<List>>(data_); }
  const Dict& as_dict() const { return *std::get<std::shared_ptr<const Dict>>(data_); }
  const std::shared_ptr<Object>& as_object() const {
    return std::get<std::shared_ptr<Object>>(data_);
  }
  // Of an undefined value: what was looked for.
  std::string_view undefined_name() const;

  // Levels of lists and dicts; what walking over all of it costs, about a unit for each value and
  // each 8 bytes of text, shared parts counted each time; whether an Object is in it.
  int depth() const;
  int64_t weight() const;
  bool holds_object() const;

 private:
  std::variant<Undefined, None, bool, int64_t, double, std::shared_ptr<const std::string>,
               std::shared_ptr<List>, std::shared_ptr<const Dict>, std::shared_ptr<Object>>
      data_;
};

struct List {
  std::vector<Value> items;
  ListShape shape = ListShape::kList;
  int depth = 1;
  int64_t weight = 1;
  bool holds_object = false;
  // Of a generator: how many elements were given out.
  mutable size_t num_taken = 0;
};

struct Dict {
  std::vector<std::pair<Value, Value>> entries;
  int depth = 1;
  int64_t weight = 1;
  bool holds_object = false;

  const Value* find(const Value& key) const;  // null when it is not there
  const Value* find(std::string_view key) const;
};

struct CallArguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

// A value with behaviour: a macro, a loop, a namespace, a function, a method of a value.
class Object {
 public:
  virtual ~Object() = default;
  virtual std::string_view type_name() const = 0;
  // Nothing when there is no such attribute.
  virtual std::optional<Value> attribute(std::string_view) const { return std::nullopt; }
  virtual bool is_callable() const { return false; }
  // Throws kInvalidArgument when the object is no function.
  virtual Value call(Evaluator& evaluator, const CallArguments& arguments);
};

// Variables that change: what namespace() makes.
class Namespace final : public Object {
 public:
  std::string_view type_name() const override { return "Namespace"; }
  std::optional<Value> attribute(std::string_view name) const override;
  // Throws kUnsupported for a value that holds an object: objects in here could outlive the scope
  // that they belong to, or hold each other.
  void set(std::string_view name, Value value);

 private:
  std::vector<std::pair<std::string, Value>> attributes_;
};

// The name that Python has for the type, for errors: "str", "NoneType".
std::string_view type_name(const Value& value);
bool is_true(const Value& value);
// As Python's ==; an object equals itself only.
bool is_equal(const Value& a, const Value& b);
// Negative, zero or positive. Throws kInvalidArgument for types without an order.
int compare(const Value& a, const Value& b);
// What printing gives: Python's str.
std::string to_text(const Value& value);
// Python's repr.
std::string to_repr(const Value& value);
// Elements: of a list, the keys of a dict, the characters of a string. Throws kInvalidArgument for
// what cannot be walked over. Takes what a generator has left.
std::vector<Value> take_elements(const Value& value);
// Throws kInvalidArgument for what has no length.
int64_t length_of(const Value& value);
// Throws kInvalidArgument naming an undefined value.
void check_defined(const Value& value);

}  // namespace rlx::templates
