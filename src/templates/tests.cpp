#include "templates/tests.h"

#include <algorithm>

#include "base/error.h"
#include "templates/arguments.h"
#include "templates/filters.h"
#include "templates/operators.h"
#include "templates/python_text.h"

namespace rlx::templates {
namespace {

template <bool (*Holds)(const Value&)>
bool check(const Value& input, const CallArguments& call) {
  const Arguments arguments("test", call, {});
  return Holds(input);
}

template <Kind Wanted>
bool is_kind(const Value& input) {
  return input.is(Wanted);
}

bool is_defined(const Value& input) { return !input.is(Kind::kUndefined); }
bool is_truth(const Value& input) { return input.is(Kind::kBool) && input.as_bool(); }
bool is_falsehood(const Value& input) { return input.is(Kind::kBool) && !input.as_bool(); }
bool is_any_number(const Value& input) { return input.is_number(); }
bool is_callable(const Value& input) {
  return input.is(Kind::kObject) && input.as_object()->is_callable();
}
bool is_iterable(const Value& input) {
  return input.is(Kind::kString) || input.is(Kind::kList) || input.is(Kind::kDict) ||
         input.is(Kind::kUndefined);
}
bool is_sequence(const Value& input) {
  if (input.is(Kind::kList)) {
    return input.as_list().shape == ListShape::kList || input.as_list().shape == ListShape::kTuple;
  }
  return input.is(Kind::kString) || input.is(Kind::kDict) || input.is(Kind::kUndefined);
}
bool is_lower(const Value& input) { return has_case(to_text(input), false); }
bool is_upper(const Value& input) { return has_case(to_text(input), true); }
bool is_filter(const Value& input) {
  return input.is(Kind::kString) && find_filter(input.as_string()) != nullptr;
}
bool is_test(const Value& input) {
  return input.is(Kind::kString) && find_test(input.as_string()) != nullptr;
}

int64_t remainder(const Value& input, const Value& divisor) {
  const Value result = apply_binary("%", input, divisor);
  if (result.is_integral()) return result.as_int();
  return result.is(Kind::kFloat) && result.as_float() == 0 ? 0 : -1;
}
bool is_odd(const Value& input) { return remainder(input, int64_t{2}) == 1; }
bool is_even(const Value& input) { return remainder(input, int64_t{2}) == 0; }

bool is_divisible(const Value& input, const CallArguments& call) {
  const Arguments arguments("divisibleby", call, {"num"});
  return remainder(input, arguments.require(0)) == 0;
}

bool is_same(const Value& input, const CallArguments& call) {
  const Arguments arguments("sameas", call, {"other"});
  const Value& other = arguments.require(0);
  return input.kind() == other.kind() && is_equal(input, other);
}

enum class Comparison : uint8_t {
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kIn
};
template <Comparison Which>
bool compares(const Value& input, const CallArguments& call) {
  static constexpr std::string_view kSpellings[] = {"==", "!=", "<", "<=", ">", ">=", "in"};
  const Arguments arguments("test", call, {"other"});
  return apply_comparison(kSpellings[static_cast<int>(Which)], input, arguments.require(0));
}

struct Entry {
  std::string_view name;
  Test test;
};

constexpr Entry kTests[] = {
    {"boolean", check<is_kind<Kind::kBool>>},
    {"callable", check<is_callable>},
    {"defined", check<is_defined>},
    {"divisibleby", is_divisible},
    {"eq", compares<Comparison::kEqual>},
    {"equalto", compares<Comparison::kEqual>},
    {"even", check<is_even>},
    {"false", check<is_falsehood>},
    {"filter", check<is_filter>},
    {"float", check<is_kind<Kind::kFloat>>},
    {"ge", compares<Comparison::kGreaterEqual>},
    {"greaterthan", compares<Comparison::kGreater>},
    {"gt", compares<Comparison::kGreater>},
    {"in", compares<Comparison::kIn>},
    {"integer", check<is_kind<Kind::kInt>>},
    {"iterable", check<is_iterable>},
    {"le", compares<Comparison::kLessEqual>},
    {"lessthan", compares<Comparison::kLess>},
    {"lower", check<is_lower>},
    {"lt", compares<Comparison::kLess>},
    {"mapping", check<is_kind<Kind::kDict>>},
    {"ne", compares<Comparison::kNotEqual>},
    {"none", check<is_kind<Kind::kNone>>},
    {"number", check<is_any_number>},
    {"odd", check<is_odd>},
    {"sameas", is_same},
    {"sequence", check<is_sequence>},
    {"string", check<is_kind<Kind::kString>>},
    {"test", check<is_test>},
    {"true", check<is_truth>},
    {"undefined", check<is_kind<Kind::kUndefined>>},
    {"upper", check<is_upper>},
    {"==", compares<Comparison::kEqual>},
    {"!=", compares<Comparison::kNotEqual>},
    {"<", compares<Comparison::kLess>},
    {"<=", compares<Comparison::kLessEqual>},
    {">", compares<Comparison::kGreater>},
    {">=", compares<Comparison::kGreaterEqual>},
};

}  // namespace

Test find_test(std::string_view name) {
  const auto found = std::find_if(std::begin(kTests), std::end(kTests),
                                  [&](const Entry& entry) { return entry.name == name; });
  return found == std::end(kTests) ? nullptr : found->test;
}

}  // namespace rlx::templates
