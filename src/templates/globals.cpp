#include "templates/globals.h"

#include <array>
#include <ctime>

#include "base/error.h"
#include "templates/arguments.h"
#include "templates/evaluator.h"
#include "templates/operators.h"

namespace rlx::templates {
namespace {

using Function = Value (*)(Evaluator& evaluator, const CallArguments& call);

class GlobalFunction final : public Object {
 public:
  explicit GlobalFunction(Function function) : function_(function) {}
  std::string_view type_name() const override { return "function"; }
  bool is_callable() const override { return true; }
  Value call(Evaluator& evaluator, const CallArguments& arguments) override {
    return function_(evaluator, arguments);
  }

 private:
  const Function function_;
};

constexpr int64_t kMaxRange = 100'000;

Value call_range(Evaluator& evaluator, const CallArguments& call) {
  const Arguments arguments("range", call, {"start", "stop", "step"});
  const bool has_stop = arguments.find(1) != nullptr;
  arguments.require(0);
  const int64_t start = has_stop ? arguments.int_or(0, 0) : 0;
  const int64_t stop = has_stop ? arguments.int_or(1, 0) : arguments.int_or(0, 0);
  const int64_t step = arguments.int_or(2, 1);
  if (step == 0) throw_error(ErrorCode::kInvalidArgument, "The step of a range is 0.");
  std::vector<Value> items;
  for (int64_t i = start; step > 0 ? i < stop : i > stop;) {
    if (static_cast<int64_t>(items.size()) == kMaxRange) {
      throw_error(ErrorCode::kOutOfRange, "A range has more than {} numbers.", kMaxRange);
    }
    items.emplace_back(i);
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  evaluator.charge(static_cast<int64_t>(items.size()));
  return Value::make_list(std::move(items));
}

std::vector<std::pair<Value, Value>> named_entries(std::string_view function,
                                                   const CallArguments& call) {
  std::vector<std::pair<Value, Value>> entries;
  if (call.positional.size() > 1) {
    throw_error(ErrorCode::kInvalidArgument, "'{}' takes one dict and named arguments.", function);
  }
  if (!call.positional.empty()) {
    if (!call.positional[0].is(Kind::kDict)) {
      throw_error(ErrorCode::kInvalidArgument, "'{}' is given a {}, but a dict is expected.",
                  function, type_name(call.positional[0]));
    }
    entries = call.positional[0].as_dict().entries;
  }
  for (const auto& [name, value] : call.named) entries.emplace_back(name, value);
  return entries;
}

Value call_namespace(Evaluator&, const CallArguments& call) {
  auto result = std::make_shared<Namespace>();
  for (auto& [key, value] : named_entries("namespace", call)) result->set(to_text(key), value);
  return Value(std::shared_ptr<Object>(std::move(result)));
}

Value call_dict(Evaluator&, const CallArguments& call) {
  return Value::make_dict(named_entries("dict", call));
}

Value call_raise_exception(Evaluator&, const CallArguments& call) {
  const Arguments arguments("raise_exception", call, {"message"});
  throw_error(ErrorCode::kInvalidArgument, "The template refuses this conversation: {}",
              to_text(arguments.require(0)));
}

Value call_strftime_now(Evaluator& evaluator, const CallArguments& call) {
  const Arguments arguments("strftime_now", call, {"format"});
  const std::string& format = arguments.require_string(0);
  const std::time_t now = evaluator.now();
  std::tm local{};
  localtime_r(&now, &local);
  std::array<char, 1024> buffer{};
  // A mark in front tells an empty result from one that does not fit.
  const size_t size = std::strftime(buffer.data(), buffer.size(), ("x" + format).c_str(), &local);
  if (size == 0) {
    throw_error(ErrorCode::kOutOfRange, "A date takes more than {} bytes.", buffer.size());
  }
  return std::string(buffer.data() + 1, size - 1);
}

struct Entry {
  std::string_view name;
  Value function;
};

}  // namespace

const Value* find_global(std::string_view name) {
  const auto make = [](Function function) {
    return Value(std::shared_ptr<Object>(std::make_shared<GlobalFunction>(function)));
  };
  static const std::array<Entry, 5> kGlobals = {{
      {"dict", make(call_dict)},
      {"namespace", make(call_namespace)},
      {"raise_exception", make(call_raise_exception)},
      {"range", make(call_range)},
      {"strftime_now", make(call_strftime_now)},
  }};
  for (const Entry& entry : kGlobals) {
    if (entry.name == name) return &entry.function;
  }
  return nullptr;
}

}  // namespace rlx::templates
