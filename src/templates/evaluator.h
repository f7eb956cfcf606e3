// Walks a template's tree over a context and writes its text. Work, memory and recursion are
// bounded, so that any template ends.
#pragma once

#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "templates/ast.h"
#include "templates/value.h"

namespace rlx::templates {

struct Limits {
  int64_t max_output_bytes = int64_t{16} << 20;
  // One for each expression and statement, and about one for each value or 8 bytes that are made.
  int64_t max_work = 20'000'000;
  int max_depth = 800;  // of expressions and statements inside each other, over all calls
};

// The variables of one stretch of the template, over those around it. Lives on the stack of the
// evaluator; macros refer to the scope that they were made in, and a namespace, which could keep
// one for longer, does not take them.
struct Scope {
  Scope* outer = nullptr;
  std::vector<std::pair<std::string, Value>> variables;

  const Value* find(std::string_view name) const;  // here or around; null when it is nowhere
  void set(std::string_view name, Value value);
};

class Evaluator {
 public:
  // `now` is what strftime_now sees. The context must outlive the evaluator.
  Evaluator(const Limits& limits, std::time_t now) : limits_(limits), now_(now) {}

  // The text. Throws rlx::Error with the line in the context.
  std::string render(const Body& body, const Dict& context);

  // For filters and functions:

  // Throws kOutOfRange when the work is used up.
  void charge(int64_t units);
  // Calls a function value. Throws kInvalidArgument when it is none.
  Value call(const Value& function, const CallArguments& arguments);
  // Runs a macro's body in a scope of its own over `outer` and returns its text.
  std::string run_function(const Body& body, Scope& scope);
  Value evaluate(const Expression& expression, Scope& scope);
  std::time_t now() const { return now_; }

 private:
  class Level;
  enum class Flow : uint8_t { kGoOn, kBreak, kContinue };

  Flow run(const Body& body, Scope& scope);
  Flow run(const Statement& statement, Scope& scope);
  Flow run_for(const Statement& statement, Scope& scope);
  Flow run_loop(const Statement& statement, const Value& iterable, Scope& scope, int depth,
                bool& any);
  void run_set(const Statement& statement, Scope& scope);
  void run_call_block(const Statement& statement, Scope& scope);
  void run_with(const Statement& statement, Scope& scope);
  std::string capture(const Body& body, Scope& scope);
  void write(std::string_view text);
  void assign(const Target& target, Value value, Scope& scope);

  Value evaluate_kind(const Expression& expression, Scope& scope);
  Value evaluate_dict(const Expression& expression, Scope& scope);
  Value evaluate_call(const Expression& expression, Scope& scope);
  Value evaluate_compare(const Expression& expression, Scope& scope);
  Value evaluate_filter(const Expression& expression, const Value* input, Scope& scope);
  CallArguments evaluate_arguments(const Expression& expression, Scope& scope);
  std::vector<Value> evaluate_parts(const Expression& expression, Scope& scope);

  friend class LoopObject;

  const Limits limits_;
  const std::time_t now_;
  int64_t work_ = 0;
  int depth_ = 0;
  int line_ = 1;
  std::string output_;
};

}  // namespace rlx::templates
