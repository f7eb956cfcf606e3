#include "templates/evaluator.h"

#include <algorithm>

#include "base/error.h"
#include "templates/filters.h"
#include "templates/globals.h"
#include "templates/lexer.h"
#include "templates/loop.h"
#include "templates/operators.h"
#include "templates/tests.h"

namespace rlx::templates {
namespace {

class Macro final : public Object {
 public:
  Macro(std::string name, const Statement& definition, Scope& scope)
      : name_(std::move(name)), definition_(definition), scope_(scope) {}

  std::string_view type_name() const override { return "macro"; }
  bool is_callable() const override { return true; }
  std::optional<Value> attribute(std::string_view name) const override {
    if (name == "name") return Value(name_);
    return std::nullopt;
  }
  Value call(Evaluator& evaluator, const CallArguments& arguments) override {
    const std::vector<Parameter>& parameters = definition_.parameters;
    if (arguments.positional.size() > parameters.size()) {
      throw_error(ErrorCode::kInvalidArgument,
                  "The macro '{}' takes at most {} arguments, but {} are given.", name_,
                  parameters.size(), arguments.positional.size());
    }
    Scope scope{&scope_, {}};
    scope.set("caller", Value::make_undefined("caller"));
    for (size_t i = 0; i < arguments.positional.size(); ++i) {
      scope.set(parameters[i].name, arguments.positional[i]);
    }
    for (const auto& [name, value] : arguments.named) set_named(scope, arguments, name, value);
    for (size_t i = arguments.positional.size(); i < parameters.size(); ++i) {
      const Parameter& parameter = parameters[i];
      const auto is_given = [&](const auto& named) { return named.first == parameter.name; };
      if (std::any_of(arguments.named.begin(), arguments.named.end(), is_given)) continue;
      scope.set(parameter.name, parameter.fallback ? evaluator.evaluate(*parameter.fallback, scope)
                                                   : Value::make_undefined(parameter.name));
    }
    return evaluator.run_function(definition_.body, scope);
  }

 private:
  void set_named(Scope& scope, const CallArguments& arguments, const std::string& name,
                 const Value& value) const {
    const std::vector<Parameter>& parameters = definition_.parameters;
    const auto found = std::find_if(parameters.begin(), parameters.end(),
                                    [&](const Parameter& p) { return p.name == name; });
    if (found == parameters.end() && name != "caller") {
      throw_error(ErrorCode::kInvalidArgument, "The macro '{}' has no parameter '{}'.", name_,
                  name);
    }
    if (found - parameters.begin() < static_cast<ptrdiff_t>(arguments.positional.size())) {
      throw_error(ErrorCode::kInvalidArgument, "The macro '{}' is given the parameter '{}' twice.",
                  name_, name);
    }
    scope.set(name, value);
  }

  const std::string name_;
  const Statement& definition_;
  Scope& scope_;
};

Value make_macro(std::string name, const Statement& definition, Scope& scope) {
  return Value(
      std::shared_ptr<Object>(std::make_shared<Macro>(std::move(name), definition, scope)));
}

}  // namespace

const Value* Scope::find(std::string_view name) const {
  for (const Scope* scope = this; scope != nullptr; scope = scope->outer) {
    for (const auto& [own, value] : scope->variables) {
      if (own == name) return &value;
    }
  }
  return nullptr;
}

void Scope::set(std::string_view name, Value value) {
  for (auto& [own, old] : variables) {
    if (own == name) {
      old = std::move(value);
      return;
    }
  }
  variables.emplace_back(name, std::move(value));
}

// Counts one level of recursion for as long as it lives, and notes the line for errors.
class Evaluator::Level {
 public:
  Level(Evaluator& evaluator, int line) : evaluator_(evaluator) {
    evaluator.line_ = line;
    if (++evaluator.depth_ > evaluator.limits_.max_depth) {
      throw_error(ErrorCode::kOutOfRange, "Calls are nested deeper than {} levels.",
                  evaluator.limits_.max_depth);
    }
    evaluator.charge(1);
  }
  ~Level() { --evaluator_.depth_; }
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;

 private:
  Evaluator& evaluator_;
};

std::string Evaluator::render(const Body& body, const Dict& context) {
  Scope scope;
  for (const auto& [name, value] : context.entries) scope.set(to_text(name), value);
  try {
    Scope top{&scope, {}};
    run(body, top);
  } catch (Error& error) {
    error.add_context(line_context(line_));
    throw;
  }
  return std::move(output_);
}

void Evaluator::charge(int64_t units) {
  work_ += units;
  if (work_ > limits_.max_work) {
    throw_error(ErrorCode::kOutOfRange, "The template does more than {} steps.", limits_.max_work);
  }
}

Value Evaluator::call(const Value& function, const CallArguments& arguments) {
  check_defined(function);
  if (!function.is(Kind::kObject)) {
    throw_error(ErrorCode::kInvalidArgument, "A {} is called, but it is not a function.",
                type_name(function));
  }
  const std::shared_ptr<Object> object = function.as_object();
  return object->call(*this, arguments);
}

std::string Evaluator::run_function(const Body& body, Scope& scope) { return capture(body, scope); }

std::string Evaluator::capture(const Body& body, Scope& scope) {
  std::string outer = std::exchange(output_, {});
  run(body, scope);
  std::string text = std::exchange(output_, std::move(outer));
  charge(static_cast<int64_t>(text.size() / 8));
  check_text_size(text.size());
  return text;
}

void Evaluator::write(std::string_view text) {
  charge(static_cast<int64_t>(text.size() / 8));
  if (static_cast<int64_t>(output_.size() + text.size()) > limits_.max_output_bytes) {
    throw_error(ErrorCode::kOutOfRange, "The template writes more than {} bytes.",
                limits_.max_output_bytes);
  }
  output_ += text;
}

void Evaluator::assign(const Target& target, Value value, Scope& scope) {
  if (!target.attribute.empty()) {
    const Value* owner = scope.find(target.name);
    auto* names = owner != nullptr && owner->is(Kind::kObject)
                      ? dynamic_cast<Namespace*>(owner->as_object().get())
                      : nullptr;
    if (names == nullptr) {
      throw_error(ErrorCode::kInvalidArgument, "'{}.{}' is set, but '{}' is not a namespace.",
                  target.name, target.attribute, target.name);
    }
    names->set(target.attribute, std::move(value));
    return;
  }
  if (target.parts.empty()) {
    scope.set(target.name, std::move(value));
    return;
  }
  check_defined(value);
  std::vector<Value> items = take_elements(value);
  if (items.size() != target.parts.size()) {
    throw_error(ErrorCode::kInvalidArgument, "{} values are unpacked into {} names.", items.size(),
                target.parts.size());
  }
  for (size_t i = 0; i < items.size(); ++i) assign(target.parts[i], std::move(items[i]), scope);
}

Evaluator::Flow Evaluator::run(const Body& body, Scope& scope) {
  for (const Statement& statement : body) {
    const Flow flow = run(statement, scope);
    if (flow != Flow::kGoOn) return flow;
  }
  return Flow::kGoOn;
}

Evaluator::Flow Evaluator::run(const Statement& statement, Scope& scope) {
  const Level level(*this, statement.line);
  switch (statement.kind) {
    case StatementKind::kText:
      write(statement.text);
      break;
    case StatementKind::kOutput:
      write(to_text(evaluate(*statement.expression, scope)));
      break;
    case StatementKind::kSet:
    case StatementKind::kSetBlock:
      run_set(statement, scope);
      break;
    case StatementKind::kFor:
      return run_for(statement, scope);
    case StatementKind::kIf:
      return run(
          is_true(evaluate(*statement.expression, scope)) ? statement.body : statement.other_body,
          scope);
    case StatementKind::kMacro:
      scope.set(statement.target.name, make_macro(statement.target.name, statement, scope));
      break;
    case StatementKind::kCallBlock:
      run_call_block(statement, scope);
      break;
    case StatementKind::kFilterBlock: {
      Scope inner{&scope, {}};
      const Value text = capture(statement.body, inner);
      write(to_text(evaluate_filter(*statement.expression, &text, scope)));
      break;
    }
    case StatementKind::kWith:
      run_with(statement, scope);
      break;
    case StatementKind::kScope: {
      Scope inner{&scope, {}};
      return run(statement.body, inner);
    }
    case StatementKind::kBreak:
      return Flow::kBreak;
    case StatementKind::kContinue:
      return Flow::kContinue;
  }
  return Flow::kGoOn;
}

void Evaluator::run_set(const Statement& statement, Scope& scope) {
  if (statement.kind == StatementKind::kSet) {
    assign(statement.target, evaluate(*statement.expression, scope), scope);
    return;
  }
  Scope inner{&scope, {}};
  Value text = capture(statement.body, inner);
  if (statement.expression) text = evaluate_filter(*statement.expression, &text, scope);
  assign(statement.target, std::move(text), scope);
}

void Evaluator::run_call_block(const Statement& statement, Scope& scope) {
  const Expression& expression = *statement.expression;
  const Value function = evaluate(*expression.parts[0], scope);
  CallArguments arguments = evaluate_arguments(expression, scope);
  arguments.named.emplace_back("caller", make_macro("caller", statement, scope));
  write(to_text(call(function, arguments)));
}

void Evaluator::run_with(const Statement& statement, Scope& scope) {
  Scope inner{&scope, {}};
  // The values are those of outside, also where a name is bound twice.
  for (const auto& [target, expression] : statement.bindings) {
    assign(target, evaluate(*expression, scope), inner);
  }
  run(statement.body, inner);
}

Evaluator::Flow Evaluator::run_for(const Statement& statement, Scope& scope) {
  bool any = false;
  run_loop(statement, evaluate(*statement.expression, scope), scope, 1, any);
  if (any || statement.other_body.empty()) return Flow::kGoOn;
  Scope inner{&scope, {}};
  return run(statement.other_body, inner);
}

Evaluator::Flow Evaluator::run_loop(const Statement& statement, const Value& iterable, Scope& scope,
                                    int depth, bool& any) {
  std::vector<Value> items = take_elements(iterable);
  charge(static_cast<int64_t>(items.size()));
  if (statement.condition) {
    std::vector<Value> kept;
    for (Value& item : items) {
      Scope inner{&scope, {}};
      assign(statement.target, item, inner);
      if (is_true(evaluate(*statement.condition, inner))) kept.push_back(std::move(item));
    }
    items = std::move(kept);
  }
  LoopObject::Recurse recurse;
  if (statement.is_recursive) {
    recurse = [this, &statement, &scope, depth](const Value& inner_iterable) {
      const Level level(*this, statement.line);
      std::string outer = std::exchange(output_, {});
      bool inner_any = false;
      run_loop(statement, inner_iterable, scope, depth + 1, inner_any);
      return Value(std::exchange(output_, std::move(outer)));
    };
  }
  const auto loop = std::make_shared<LoopObject>(items, depth, std::move(recurse));
  const Value loop_value{std::shared_ptr<Object>(loop)};
  for (size_t i = 0; i < items.size(); ++i) {
    any = true;
    loop->go_to(i);
    Scope inner{&scope, {}};
    inner.set("loop", loop_value);
    assign(statement.target, items[i], inner);
    if (run(statement.body, inner) == Flow::kBreak) break;
  }
  return Flow::kGoOn;
}

Value Evaluator::evaluate(const Expression& expression, Scope& scope) {
  const Level level(*this, expression.line);
  return evaluate_kind(expression, scope);
}

Value Evaluator::evaluate_kind(const Expression& expression, Scope& scope) {
  const auto part = [&](size_t i) { return evaluate(*expression.parts[i], scope); };
  const auto optional_part = [&](size_t i) { return expression.parts[i] ? part(i) : Value(); };
  switch (expression.kind) {
    case ExpressionKind::kConstant:
      return expression.constant;
    case ExpressionKind::kName: {
      if (const Value* found = scope.find(expression.name)) return *found;
      if (const Value* found = find_global(expression.name)) return *found;
      return Value::make_undefined(expression.name);
    }
    case ExpressionKind::kList:
      return Value::make_list(evaluate_parts(expression, scope));
    case ExpressionKind::kTuple:
      return Value::make_list(evaluate_parts(expression, scope), ListShape::kTuple);
    case ExpressionKind::kDict:
      return evaluate_dict(expression, scope);
    case ExpressionKind::kAttribute:
      return find_attribute(part(0), expression.name);
    case ExpressionKind::kIndex: {
      const Value value = part(0);
      return find_item(value, part(1));
    }
    case ExpressionKind::kSlice: {
      const Value value = part(0);
      charge(value.weight());
      const Value start = optional_part(1), stop = optional_part(2);
      return slice(value, start, stop, optional_part(3));
    }
    case ExpressionKind::kCall:
      return evaluate_call(expression, scope);
    case ExpressionKind::kFilter: {
      const Value input = part(0);
      return evaluate_filter(expression, &input, scope);
    }
    case ExpressionKind::kTest: {
      const Value input = part(0);
      return find_test(expression.name)(input, evaluate_arguments(expression, scope));
    }
    case ExpressionKind::kNot:
      return !is_true(part(0));
    case ExpressionKind::kNegate:
      return negate(part(0));
    case ExpressionKind::kPlus: {
      const Value value = part(0);
      negate(value);  // refuses what is no number
      return value;
    }
    case ExpressionKind::kAnd: {
      Value left = part(0);
      return is_true(left) ? part(1) : left;
    }
    case ExpressionKind::kOr: {
      Value left = part(0);
      return is_true(left) ? left : part(1);
    }
    case ExpressionKind::kBinary: {
      const Value left = part(0);
      Value result = apply_binary(expression.name, left, part(1));
      charge(result.weight());
      return result;
    }
    case ExpressionKind::kCompare:
      return evaluate_compare(expression, scope);
    case ExpressionKind::kConcatenate: {
      std::string text;
      for (size_t i = 0; i < expression.parts.size(); ++i) {
        text += to_text(part(i));
        check_text_size(text.size());
      }
      charge(static_cast<int64_t>(text.size() / 8));
      return text;
    }
    case ExpressionKind::kConditional:
      return is_true(part(0)) ? part(1) : optional_part(2);
  }
  return Value();
}

std::vector<Value> Evaluator::evaluate_parts(const Expression& expression, Scope& scope) {
  std::vector<Value> values;
  for (const ExpressionPtr& part : expression.parts) values.push_back(evaluate(*part, scope));
  return values;
}

Value Evaluator::evaluate_dict(const Expression& expression, Scope& scope) {
  std::vector<std::pair<Value, Value>> entries;
  for (size_t i = 0; i < expression.parts.size(); i += 2) {
    Value key = evaluate(*expression.parts[i], scope);
    if (key.is(Kind::kList) || key.is(Kind::kDict)) {
      throw_error(ErrorCode::kInvalidArgument, "A {} cannot be the key of a dict.", type_name(key));
    }
    entries.emplace_back(std::move(key), evaluate(*expression.parts[i + 1], scope));
  }
  return Value::make_dict(std::move(entries));
}

CallArguments Evaluator::evaluate_arguments(const Expression& expression, Scope& scope) {
  CallArguments arguments;
  for (size_t i = 1; i < expression.parts.size(); ++i) {
    arguments.positional.push_back(evaluate(*expression.parts[i], scope));
  }
  for (const auto& [name, part] : expression.named) {
    arguments.named.emplace_back(name, evaluate(*part, scope));
  }
  return arguments;
}

Value Evaluator::evaluate_call(const Expression& expression, Scope& scope) {
  const Value function = evaluate(*expression.parts[0], scope);
  const CallArguments arguments = evaluate_arguments(expression, scope);
  line_ = expression.line;
  Value result = call(function, arguments);
  charge(result.weight());
  return result;
}

Value Evaluator::evaluate_compare(const Expression& expression, Scope& scope) {
  Value left = evaluate(*expression.parts[0], scope);
  for (size_t i = 0; i < expression.operators.size(); ++i) {
    Value right = evaluate(*expression.parts[i + 1], scope);
    charge((left.weight() + right.weight()) / 8);
    if (!apply_comparison(expression.operators[i], left, right)) return false;
    left = std::move(right);
  }
  return true;
}

// `input` stands for the text of a block, which the first filter of the chain takes.
Value Evaluator::evaluate_filter(const Expression& expression, const Value* input, Scope& scope) {
  Value from_chain;
  const Expression* inner = expression.parts[0].get();
  // A chain over a block's text has no expression at its bottom.
  bool is_block_chain = true;
  for (const Expression* at = &expression; at != nullptr; at = at->parts[0].get()) {
    if (at->kind != ExpressionKind::kFilter) is_block_chain = false;
    if (!is_block_chain) break;
  }
  if (is_block_chain && inner != nullptr) {
    from_chain = evaluate_filter(*inner, input, scope);
    input = &from_chain;
  }
  const CallArguments arguments = evaluate_arguments(expression, scope);
  line_ = expression.line;
  charge(input->weight());
  Value result = find_filter(expression.name)(*this, *input, arguments);
  charge(result.weight());
  return result;
}

}  // namespace rlx::templates
