#include "templates/parser.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "templates/filters.h"
#include "templates/lexer.h"
#include "templates/tests.h"

namespace rlx::templates {
namespace {

// Of brackets and blocks; real templates stay under 20. The parser and the evaluator recurse.
constexpr int kMaxNesting = 100;
// Of the tree, to which a chain like a ~ b | c adds levels without nesting.
constexpr int kMaxTreeDepth = 400;
constexpr int kMaxBranches = 300;

class Parser {
 public:
  explicit Parser(std::string_view source) : tokens_(tokenize_template(source)) {}

  Body run() {
    Body body = parse_body({});
    return body;
  }

 private:
  // Counts one level of recursion for as long as it lives.
  class Level {
   public:
    explicit Level(Parser& parser) : parser_(parser) {
      if (++parser_.nesting_ > kMaxNesting) {
        parser_.fail(ErrorCode::kOutOfRange, "Blocks or brackets are nested deeper than {} levels.",
                     kMaxNesting);
      }
    }
    ~Level() { --parser_.nesting_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    Parser& parser_;
  };

  template <typename... Args>
  [[noreturn]] void fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) const {
    Error error(code, fmt::format(format, std::forward<Args>(args)...));
    error.add_context(line_context(now().line));
    throw error;
  }

  const Token& now() const { return tokens_[at_]; }
  const Token& ahead() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  Token take() {
    Token token = tokens_[at_];
    if (at_ + 1 < tokens_.size()) ++at_;
    return token;
  }
  bool take_operator(std::string_view spelling) {
    if (!now().is_operator(spelling)) return false;
    take();
    return true;
  }
  bool take_name(std::string_view spelling) {
    if (!now().is_name(spelling)) return false;
    take();
    return true;
  }
  std::string describe_now() const {
    switch (now().kind) {
      case TokenKind::kEnd:
        return "the end of the template";
      case TokenKind::kBlockEnd:
        return "'%}'";
      case TokenKind::kOutputEnd:
        return "'}}'";
      case TokenKind::kString:
        return "a string";
      default:
        return "'" + now().text + "'";
    }
  }
  void expect_operator(std::string_view spelling) {
    if (take_operator(spelling)) return;
    fail(ErrorCode::kInvalidArgument, "{} is found, but '{}' is expected.", describe_now(),
         spelling);
  }
  void expect_name(std::string_view spelling) {
    if (take_name(spelling)) return;
    fail(ErrorCode::kInvalidArgument, "{} is found, but '{}' is expected.", describe_now(),
         spelling);
  }
  std::string expect_identifier() {
    if (now().kind != TokenKind::kName) {
      fail(ErrorCode::kInvalidArgument, "{} is found, but a name is expected.", describe_now());
    }
    return take().text;
  }
  void expect_block_end() {
    if (now().kind != TokenKind::kBlockEnd) {
      fail(ErrorCode::kInvalidArgument, "{} is found, but the end of the block is expected.",
           describe_now());
    }
    take();
  }

  // Statements.

  // Up to a block whose name is one of `ends`, which is left to be read from its name on; without
  // ends, up to the end of the template.
  Body parse_body(const std::vector<std::string_view>& ends) {
    const Level level(*this);
    Body body;
    const int line = now().line;
    while (true) {
      switch (now().kind) {
        case TokenKind::kText:
          body.push_back({StatementKind::kText, now().line, now().text});
          take();
          break;
        case TokenKind::kOutputBegin: {
          Statement& output = body.emplace_back(begin(StatementKind::kOutput));
          take();
          output.expression = parse_expression_list();
          if (now().kind != TokenKind::kOutputEnd) {
            fail(ErrorCode::kInvalidArgument, "{} is found, but '}}}}' is expected.",
                 describe_now());
          }
          take();
          break;
        }
        case TokenKind::kBlockBegin:
          take();
          if (now().kind == TokenKind::kName &&
              std::find(ends.begin(), ends.end(), now().text) != ends.end()) {
            return body;
          }
          parse_statement(body);
          break;
        default:
          if (!ends.empty()) {
            fail(ErrorCode::kInvalidArgument,
                 "The block that begins in line {} has no '{}' at its end.", line, ends.back());
          }
          return body;
      }
    }
  }

  // The rest of a body and its end block.
  Body parse_body_to(std::string_view end) {
    Body body = parse_body({end});
    take();
    expect_block_end();
    return body;
  }

  Statement begin(StatementKind kind) const {
    Statement statement{};
    statement.kind = kind;
    statement.line = now().line;
    return statement;
  }

  void parse_statement(Body& body) {
    static constexpr std::pair<std::string_view, void (Parser::*)(Body&)> kStatements[] = {
        {"set", &Parser::parse_set},         {"for", &Parser::parse_for},
        {"if", &Parser::parse_if},           {"macro", &Parser::parse_macro},
        {"call", &Parser::parse_call_block}, {"filter", &Parser::parse_filter_block},
        {"with", &Parser::parse_with},       {"generation", &Parser::parse_generation},
        {"break", &Parser::parse_break},     {"continue", &Parser::parse_continue},
    };
    const std::string name = now().kind == TokenKind::kName ? now().text : "";
    for (const auto& [spelling, parse] : kStatements) {
      if (name == spelling) return (this->*parse)(body);
    }
    if (name.empty() || name == "else" || name == "elif" || name.starts_with("end")) {
      fail(ErrorCode::kInvalidArgument, "{} does not begin a statement.", describe_now());
    }
    fail(ErrorCode::kUnsupported, "The statement '{}' is not supported.", name);
  }

  Target parse_target(bool allow_attribute) {
    std::vector<Target> parts;
    bool is_list = false;
    do {
      if (is_list && !begins_target()) break;  // a comma at the end
      Target target;
      if (take_operator("(")) {
        const Level level(*this);
        target = parse_target(false);
        expect_operator(")");
      } else {
        target.name = expect_identifier();
        if (allow_attribute && parts.empty() && take_operator(".")) {
          target.attribute = expect_identifier();
        }
      }
      parts.push_back(std::move(target));
      is_list = is_list || now().is_operator(",");
    } while (take_operator(","));
    if (!is_list) return std::move(parts[0]);
    Target all;
    all.parts = std::move(parts);
    return all;
  }

  bool begins_target() const {
    return (now().kind == TokenKind::kName && !now().is_name("in")) || now().is_operator("(");
  }

  void parse_set(Body& body) {
    Statement set = begin(StatementKind::kSet);
    take();
    set.target = parse_target(true);
    if (take_operator("=")) {
      set.expression = parse_expression_list();
      expect_block_end();
    } else {
      set.kind = StatementKind::kSetBlock;
      if (now().is_operator("|")) set.expression = parse_filters(nullptr);
      expect_block_end();
      set.body = parse_function_body("endset");
    }
    body.push_back(std::move(set));
  }

  void parse_for(Body& body) {
    Statement loop = begin(StatementKind::kFor);
    take();
    loop.target = parse_target(false);
    expect_name("in");
    loop.expression = parse_expression_list(/*with_condition=*/false);
    if (take_name("if")) loop.condition = parse_expression();
    loop.is_recursive = take_name("recursive");
    expect_block_end();
    ++loops_;
    loop.body = parse_body({"else", "endfor"});
    --loops_;
    if (take().text == "else") {
      expect_block_end();
      loop.other_body = parse_body_to("endfor");
    } else {
      expect_block_end();
    }
    body.push_back(std::move(loop));
  }

  // An elif is an `if` inside the other body.
  void parse_if(Body& body) {
    Statement whole = begin(StatementKind::kIf);
    Statement* branch = &whole;
    for (int branches = 1;; ++branches) {
      take();
      branch->expression = parse_expression_list();
      expect_block_end();
      branch->body = parse_body({"elif", "else", "endif"});
      if (!now().is_name("elif")) break;
      if (branches == kMaxBranches) {
        fail(ErrorCode::kOutOfRange, "An 'if' has more than {} branches.", kMaxBranches);
      }
      branch = &branch->other_body.emplace_back(begin(StatementKind::kIf));
    }
    const bool has_else = take().text == "else";
    expect_block_end();
    if (has_else) branch->other_body = parse_body_to("endif");
    body.push_back(std::move(whole));
  }

  std::vector<Parameter> parse_parameters() {
    std::vector<Parameter> parameters;
    expect_operator("(");
    while (!take_operator(")")) {
      if (!parameters.empty()) {
        expect_operator(",");
        if (take_operator(")")) break;
      }
      Parameter& parameter = parameters.emplace_back();
      parameter.name = expect_identifier();
      if (take_operator("=")) {
        parameter.fallback = parse_expression();
      } else if (parameters.size() > 1 && parameters[parameters.size() - 2].fallback) {
        fail(ErrorCode::kInvalidArgument,
             "The parameter '{}' has no default, but one before it has.", parameter.name);
      }
    }
    return parameters;
  }

  // A body whose text is kept: no break may leave it.
  Body parse_function_body(std::string_view end) {
    const int loops = std::exchange(loops_, 0);
    Body body = parse_body_to(end);
    loops_ = loops;
    return body;
  }

  void parse_macro(Body& body) {
    Statement macro = begin(StatementKind::kMacro);
    take();
    macro.target.name = expect_identifier();
    macro.parameters = parse_parameters();
    expect_block_end();
    macro.body = parse_function_body("endmacro");
    body.push_back(std::move(macro));
  }

  void parse_call_block(Body& body) {
    Statement call = begin(StatementKind::kCallBlock);
    take();
    if (now().is_operator("(")) call.parameters = parse_parameters();
    call.expression = parse_expression();
    if (call.expression->kind != ExpressionKind::kCall) {
      fail(ErrorCode::kInvalidArgument, "'call' is not followed by the call of a macro.");
    }
    expect_block_end();
    call.body = parse_function_body("endcall");
    body.push_back(std::move(call));
  }

  void parse_filter_block(Body& body) {
    Statement filter = begin(StatementKind::kFilterBlock);
    take();
    filter.expression = parse_filters(parse_filter(nullptr));
    expect_block_end();
    filter.body = parse_function_body("endfilter");
    body.push_back(std::move(filter));
  }

  void parse_with(Body& body) {
    Statement with = begin(StatementKind::kWith);
    take();
    while (now().kind != TokenKind::kBlockEnd) {
      if (!with.bindings.empty()) expect_operator(",");
      Target target;
      target.name = expect_identifier();
      expect_operator("=");
      with.bindings.emplace_back(std::move(target), parse_expression());
    }
    expect_block_end();
    with.body = parse_body_to("endwith");
    body.push_back(std::move(with));
  }

  // Marks what an assistant wrote, for training; for writing it is a body like any other.
  void parse_generation(Body& body) {
    Statement scope = begin(StatementKind::kScope);
    take();
    expect_block_end();
    scope.body = parse_body_to("endgeneration");
    body.push_back(std::move(scope));
  }

  void parse_jump(Body& body, StatementKind kind) {
    Statement jump = begin(kind);
    if (loops_ == 0) fail(ErrorCode::kInvalidArgument, "{} stands outside a loop.", describe_now());
    take();
    expect_block_end();
    body.push_back(std::move(jump));
  }
  void parse_break(Body& body) { parse_jump(body, StatementKind::kBreak); }
  void parse_continue(Body& body) { parse_jump(body, StatementKind::kContinue); }

  // Expressions, the loosest first.

  template <typename... Parts>
  ExpressionPtr make(ExpressionKind kind, int line, std::string name, Parts... parts) {
    auto node = std::make_unique<Expression>();
    node->kind = kind;
    node->line = line;
    node->name = std::move(name);
    (node->parts.push_back(std::move(parts)), ...);
    return seal(std::move(node));
  }

  ExpressionPtr seal(std::unique_ptr<Expression> node) {
    for (const ExpressionPtr& part : node->parts) {
      if (part) node->depth = std::max(node->depth, part->depth + 1);
    }
    for (const auto& [name, part] : node->named)
      node->depth = std::max(node->depth, part->depth + 1);
    if (node->depth > kMaxTreeDepth) {
      fail(ErrorCode::kOutOfRange, "An expression has more than {} levels.", kMaxTreeDepth);
    }
    return node;
  }

  // One expression, or with commas a tuple of them.
  ExpressionPtr parse_expression_list(bool with_condition = true) {
    const int line = now().line;
    std::vector<ExpressionPtr> items;
    items.push_back(with_condition ? parse_expression() : parse_or());
    if (!now().is_operator(",")) return std::move(items[0]);
    while (take_operator(",")) {
      if (ends_expression()) break;
      items.push_back(with_condition ? parse_expression() : parse_or());
    }
    return make_sequence(ExpressionKind::kTuple, line, std::move(items));
  }

  ExpressionPtr make_sequence(ExpressionKind kind, int line, std::vector<ExpressionPtr> items) {
    auto node = std::make_unique<Expression>();
    node->kind = kind;
    node->line = line;
    node->parts = std::move(items);
    return seal(std::move(node));
  }

  bool ends_expression() const {
    return now().kind == TokenKind::kBlockEnd || now().kind == TokenKind::kOutputEnd ||
           now().kind == TokenKind::kEnd || now().is_operator(")") || now().is_name("in");
  }

  ExpressionPtr parse_expression() {
    const Level level(*this);
    ExpressionPtr value = parse_or();
    while (now().is_name("if")) {
      const int line = take().line;
      ExpressionPtr condition = parse_or();
      ExpressionPtr other = take_name("else") ? parse_expression() : nullptr;
      value = make(ExpressionKind::kConditional, line, {}, std::move(condition), std::move(value),
                   std::move(other));
    }
    return value;
  }

  ExpressionPtr parse_or() {
    ExpressionPtr left = parse_and();
    while (now().is_name("or")) {
      const int line = take().line;
      left = make(ExpressionKind::kOr, line, {}, std::move(left), parse_and());
    }
    return left;
  }

  ExpressionPtr parse_and() {
    ExpressionPtr left = parse_not();
    while (now().is_name("and")) {
      const int line = take().line;
      left = make(ExpressionKind::kAnd, line, {}, std::move(left), parse_not());
    }
    return left;
  }

  ExpressionPtr parse_not() {
    if (!now().is_name("not")) return parse_compare();
    const Level level(*this);
    const int line = take().line;
    return make(ExpressionKind::kNot, line, {}, parse_not());
  }

  std::string take_comparison() {
    static constexpr std::string_view kComparisons[] = {"==", "!=", "<", "<=", ">", ">="};
    for (const std::string_view spelling : kComparisons) {
      if (take_operator(spelling)) return std::string(spelling);
    }
    if (take_name("in")) return "in";
    if (now().is_name("not") && ahead().is_name("in")) {
      take();
      take();
      return "not in";
    }
    return {};
  }

  ExpressionPtr parse_compare() {
    const int line = now().line;
    ExpressionPtr first = parse_sum();
    std::string spelling = take_comparison();
    if (spelling.empty()) return first;
    auto node = std::make_unique<Expression>();
    node->kind = ExpressionKind::kCompare;
    node->line = line;
    node->parts.push_back(std::move(first));
    for (; !spelling.empty(); spelling = take_comparison()) {
      node->operators.push_back(spelling);
      node->parts.push_back(parse_sum());
    }
    return seal(std::move(node));
  }

  ExpressionPtr parse_sum() {
    ExpressionPtr left = parse_concatenation();
    while (now().is_operator("+") || now().is_operator("-")) {
      Token token = take();
      left = make(ExpressionKind::kBinary, token.line, token.text, std::move(left),
                  parse_concatenation());
    }
    return left;
  }

  ExpressionPtr parse_concatenation() {
    const int line = now().line;
    std::vector<ExpressionPtr> parts;
    parts.push_back(parse_product());
    while (take_operator("~")) parts.push_back(parse_product());
    if (parts.size() == 1) return std::move(parts[0]);
    return make_sequence(ExpressionKind::kConcatenate, line, std::move(parts));
  }

  ExpressionPtr parse_product() {
    ExpressionPtr left = parse_power();
    while (now().is_operator("*") || now().is_operator("/") || now().is_operator("//") ||
           now().is_operator("%")) {
      Token token = take();
      left = make(ExpressionKind::kBinary, token.line, token.text, std::move(left), parse_power());
    }
    return left;
  }

  ExpressionPtr parse_power() {
    ExpressionPtr left = parse_unary(true);
    while (now().is_operator("**")) {
      const int line = take().line;
      left = make(ExpressionKind::kBinary, line, "**", std::move(left), parse_unary(true));
    }
    return left;
  }

  ExpressionPtr parse_unary(bool with_filters) {
    const int line = now().line;
    ExpressionPtr value;
    if (now().is_operator("-") || now().is_operator("+")) {
      const Level level(*this);
      const bool negates = take().text == "-";
      value = make(negates ? ExpressionKind::kNegate : ExpressionKind::kPlus, line, {},
                   parse_unary(false));
    } else {
      value = parse_primary();
    }
    value = parse_postfix(std::move(value));
    return with_filters ? parse_filters_and_tests(std::move(value)) : std::move(value);
  }

  ExpressionPtr make_constant(int line, Value value) {
    auto node = std::make_unique<Expression>();
    node->kind = ExpressionKind::kConstant;
    node->line = line;
    node->constant = std::move(value);
    return node;
  }

  ExpressionPtr parse_primary() {
    const int line = now().line;
    switch (now().kind) {
      case TokenKind::kName: {
        const std::string name = take().text;
        if (name == "true" || name == "True") return make_constant(line, true);
        if (name == "false" || name == "False") return make_constant(line, false);
        if (name == "none" || name == "None") return make_constant(line, None{});
        if (name == "varargs" || name == "kwargs") {
          fail(ErrorCode::kUnsupported, "Macros with '{}' are not supported.", name);
        }
        return make(ExpressionKind::kName, line, name);
      }
      case TokenKind::kString: {
        std::string text = take().text;
        while (now().kind == TokenKind::kString) text += take().text;
        return make_constant(line, std::move(text));
      }
      case TokenKind::kInt:
        return make_constant(line, take().int_value);
      case TokenKind::kFloat:
        return make_constant(line, take().float_value);
      default:
        break;
    }
    if (take_operator("(")) return parse_parentheses(line);
    if (take_operator("[")) {
      return make_sequence(ExpressionKind::kList, line, parse_items("]"));
    }
    if (take_operator("{")) return parse_dict(line);
    fail(ErrorCode::kInvalidArgument, "{} is found, but an expression is expected.",
         describe_now());
  }

  ExpressionPtr parse_parentheses(int line) {
    if (take_operator(")")) return make(ExpressionKind::kTuple, line, {});
    ExpressionPtr value = parse_expression_list();
    expect_operator(")");
    return value;
  }

  std::vector<ExpressionPtr> parse_items(std::string_view end) {
    std::vector<ExpressionPtr> items;
    while (!take_operator(end)) {
      if (!items.empty()) {
        expect_operator(",");
        if (take_operator(end)) break;
      }
      items.push_back(parse_expression());
    }
    return items;
  }

  ExpressionPtr parse_dict(int line) {
    std::vector<ExpressionPtr> items;
    while (!take_operator("}")) {
      if (!items.empty()) {
        expect_operator(",");
        if (take_operator("}")) break;
      }
      items.push_back(parse_expression());
      expect_operator(":");
      items.push_back(parse_expression());
    }
    return make_sequence(ExpressionKind::kDict, line, std::move(items));
  }

  ExpressionPtr parse_postfix(ExpressionPtr value) {
    while (true) {
      const int line = now().line;
      if (take_operator(".")) {
        if (now().kind == TokenKind::kInt) {
          value = make(ExpressionKind::kIndex, line, {}, std::move(value),
                       make_constant(line, take().int_value));
        } else {
          value = make(ExpressionKind::kAttribute, line, expect_identifier(), std::move(value));
        }
      } else if (take_operator("[")) {
        value = parse_subscript(line, std::move(value));
      } else if (now().is_operator("(")) {
        value = parse_call(ExpressionKind::kCall, line, {}, std::move(value));
      } else {
        return value;
      }
    }
  }

  ExpressionPtr parse_subscript(int line, ExpressionPtr value) {
    ExpressionPtr parts[3];
    bool is_slice = false;
    for (int i = 0; i < 3; ++i) {
      if (!now().is_operator(":") && !now().is_operator("]")) parts[i] = parse_expression();
      if (!take_operator(":")) break;
      is_slice = true;
    }
    if (now().is_operator(",")) {
      fail(ErrorCode::kUnsupported, "Several positions in one pair of brackets are not supported.");
    }
    expect_operator("]");
    if (is_slice) {
      return make(ExpressionKind::kSlice, line, {}, std::move(value), std::move(parts[0]),
                  std::move(parts[1]), std::move(parts[2]));
    }
    if (!parts[0]) fail(ErrorCode::kInvalidArgument, "The brackets hold no position.");
    return make(ExpressionKind::kIndex, line, {}, std::move(value), std::move(parts[0]));
  }

  // A call, or the arguments of a filter or test: from the opening parenthesis on, if there is one.
  ExpressionPtr parse_call(ExpressionKind kind, int line, std::string name, ExpressionPtr callee) {
    auto node = std::make_unique<Expression>();
    node->kind = kind;
    node->line = line;
    node->name = std::move(name);
    node->parts.push_back(std::move(callee));
    bool is_first = true;
    if (!take_operator("(")) return seal(std::move(node));
    while (!take_operator(")")) {
      if (!is_first) {
        expect_operator(",");
        if (take_operator(")")) break;
      }
      is_first = false;
      if (now().is_operator("*") || now().is_operator("**")) {
        fail(ErrorCode::kUnsupported, "Arguments that are unpacked with '{}' are not supported.",
             now().text);
      }
      if (now().kind == TokenKind::kName && ahead().is_operator("=")) {
        std::string argument = take().text;
        take();
        node->named.emplace_back(std::move(argument), parse_expression());
      } else {
        if (!node->named.empty()) {
          fail(ErrorCode::kInvalidArgument, "An argument without a name follows one with a name.");
        }
        node->parts.push_back(parse_expression());
      }
    }
    return seal(std::move(node));
  }

  // Filters alone, as after 'set x'.
  ExpressionPtr parse_filters(ExpressionPtr value) {
    while (take_operator("|")) value = parse_filter(std::move(value));
    return value;
  }

  ExpressionPtr parse_filter(ExpressionPtr value) {
    const int line = now().line;
    const std::string name = expect_identifier();
    if (find_filter(name) == nullptr) {
      fail(ErrorCode::kUnsupported, "The filter '{}' is not supported.", name);
    }
    return parse_call(ExpressionKind::kFilter, line, name, std::move(value));
  }

  ExpressionPtr parse_filters_and_tests(ExpressionPtr value) {
    while (true) {
      if (take_operator("|")) {
        value = parse_filter(std::move(value));
      } else if (now().is_name("is")) {
        value = parse_test(std::move(value));
      } else if (now().is_operator("(")) {
        value = parse_call(ExpressionKind::kCall, now().line, {}, std::move(value));
      } else {
        return value;
      }
    }
  }

  ExpressionPtr parse_test(ExpressionPtr value) {
    const int line = take().line;
    const bool negated = take_name("not");
    const std::string name = expect_identifier();
    if (find_test(name) == nullptr) {
      fail(ErrorCode::kUnsupported, "The test '{}' is not supported.", name);
    }
    ExpressionPtr test;
    if (now().is_operator("(")) {
      test = parse_call(ExpressionKind::kTest, line, name, std::move(value));
    } else if (begins_test_argument()) {
      test =
          make(ExpressionKind::kTest, line, name, std::move(value), parse_postfix(parse_primary()));
    } else {
      test = make(ExpressionKind::kTest, line, name, std::move(value));
    }
    return negated ? make(ExpressionKind::kNot, line, {}, std::move(test)) : std::move(test);
  }

  bool begins_test_argument() const {
    switch (now().kind) {
      case TokenKind::kString:
      case TokenKind::kInt:
      case TokenKind::kFloat:
        return true;
      case TokenKind::kName:
        if (now().is_name("is")) {
          fail(ErrorCode::kInvalidArgument, "Tests cannot be chained with 'is'.");
        }
        // Words that go on with the expression around the test.
        for (const char* word : {"else", "or", "and", "if", "in", "not", "recursive"}) {
          if (now().is_name(word)) return false;
        }
        return true;
      default:
        return now().is_operator("[") || now().is_operator("{");
    }
  }

  const std::vector<Token> tokens_;
  size_t at_ = 0;
  int nesting_ = 0;
  int loops_ = 0;  // around the current place, inside the same function
};

}  // namespace

Body parse_template(std::string_view source) { return Parser(source).run(); }

}  // namespace rlx::templates
