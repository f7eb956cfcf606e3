// A template as a tree: expressions that have a value, and statements that write text or set
// variables. Plain data; the parser makes it and the evaluator walks it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "templates/value.h"

namespace rlx::templates {

struct Expression;
using ExpressionPtr = std::unique_ptr<const Expression>;

enum class ExpressionKind : uint8_t {
  kConstant,
  kName,
  kList,
  kTuple,
  kDict,         // parts: key, value, key, value ...
  kAttribute,    // parts[0].name
  kIndex,        // parts[0][parts[1]]
  kSlice,        // parts[0][parts[1]:parts[2]:parts[3]], the last three may be null
  kCall,         // parts[0](parts[1], ..., named)
  kFilter,       // parts[0] | name(parts[1], ..., named); parts[0] is null in a block's filter
  kTest,         // parts[0] is name(parts[1], ..., named)
  kNot,          // parts[0]
  kNegate,       // parts[0]
  kPlus,         // parts[0]
  kAnd,          // parts[0], parts[1]
  kOr,           // parts[0], parts[1]
  kBinary,       // parts[0] name parts[1], with name one of + - * / // % **
  kCompare,      // parts[0] operators[0] parts[1] operators[1] parts[2] ...
  kConcatenate,  // all parts
  kConditional,  // parts[1] if parts[0] else parts[2], which may be null
};

struct Expression {
  ExpressionKind kind;
  int line = 0;
  int depth = 1;  // levels of the tree from here on
  std::string name;
  Value constant;
  std::vector<ExpressionPtr> parts;
  std::vector<std::pair<std::string, ExpressionPtr>> named;
  std::vector<std::string> operators;
};

// What `set`, `for` and `with` assign to: a name, an attribute of a namespace, or several targets.
struct Target {
  std::string name;
  std::string attribute;      // empty: the name itself
  std::vector<Target> parts;  // not empty: several, and no name
};

struct Statement;
using Body = std::vector<Statement>;

struct Parameter {
  std::string name;
  ExpressionPtr fallback;  // may be null
};

enum class StatementKind : uint8_t {
  kText,         // text
  kOutput,       // expression
  kSet,          // target = expression
  kSetBlock,     // target = the text of body, through the filter `expression` if there is one
  kFor,          // target in expression, if condition; body, other_body when there was none
  kIf,           // expression: body, else other_body
  kMacro,        // target.name(parameters): body
  kCallBlock,    // expression is a call, whose caller() is (parameters): body
  kFilterBlock,  // expression is the filter of the text of body
  kWith,         // bindings, then body
  kScope,        // body
  kBreak,
  kContinue,
};

struct Statement {
  StatementKind kind;
  int line = 0;
  std::string text;
  Target target;
  ExpressionPtr expression;
  ExpressionPtr condition;
  bool is_recursive = false;
  std::vector<Parameter> parameters;
  std::vector<std::pair<Target, ExpressionPtr>> bindings;
  Body body;
  Body other_body;
};

}  // namespace rlx::templates
