#include "ir/text.h"

#include <cctype>
#include <charconv>
#include <cmath>
#include <unordered_map>

#include "base/checked.h"

namespace rlx {
namespace {

// Hexadecimal keeps a packed constant's bytes exactly; other constants print as numbers.
std::string print_constant(const TensorType& type, const ConstantData& data) {
  if (is_packed(type.dtype) || is_complex(type.dtype)) {
    std::string text = "hex\"";
    for (std::byte byte : data.bytes) text += fmt::format("{:02x}", static_cast<int>(byte));
    return text + "\"";
  }
  std::vector<int64_t> shape;
  for (const Dim& extent : type.shape) shape.push_back(extent.constant());
  const ReferenceTensor tensor = reference_from_bytes(type.dtype, std::move(shape), data.bytes);
  const int64_t elements = tensor.num_elements();
  auto print = [&](int64_t i) -> std::string {
    if (!tensor.holds_floats()) {
      if (type.dtype == DType::kU64) {
        return fmt::format("{}", static_cast<uint64_t>(tensor.integers[i]));
      }
      return fmt::format("{}", tensor.integers[i]);
    }
    const double value = tensor.floats[i];
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
    // The shortest text that reads back to the same number of that width.
    if (type.dtype == DType::kF64) return fmt::format("{}", value);
    return fmt::format("{}", static_cast<float>(value));
  };
  bool all_equal = elements > 1;
  for (int64_t i = 1; i < elements && all_equal; ++i) all_equal = print(i) == print(0);
  if (all_equal) return "splat " + print(0);
  std::string text = "[";
  for (int64_t i = 0; i < elements; ++i) {
    if (i > 0) text += ", ";
    text += print(i);
  }
  return text + "]";
}

std::string quote(std::string_view text) {
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (c == '\n') {
      quoted += "\\n";
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

class Printer {
 public:
  explicit Printer(const Graph& graph) : graph_(graph) {
    int next = 0;
    for (const Value& value : graph.values()) {
      names_.push_back(value.name.empty() ? fmt::format("%{}", next++) : "%" + value.name);
    }
  }

  std::string print() {
    text_ = "graph " + quote(graph_.name());
    print_symbols();
    text_ += " {\n";
    for (const Node& node : graph_.nodes()) print_node(node);
    for (const GraphOutput& output : graph_.outputs()) {
      text_ += fmt::format("  output {} {}\n", quote(output.name), names_[output.value.index]);
    }
    text_ += "}\n";
    return std::move(text_);
  }

 private:
  void print_symbols() {
    const auto symbols = graph_.symbols().symbols();
    if (symbols.empty()) return;
    text_ += " (";
    for (size_t i = 0; i < symbols.size(); ++i) {
      if (i > 0) text_ += ", ";
      if (symbols[i].lower != 0) text_ += fmt::format("{} <= ", symbols[i].lower);
      text_ += fmt::format("{} <= {}", symbols[i].name, symbols[i].upper);
    }
    text_ += ")";
  }

  void print_node(const Node& node) {
    text_ += "  ";
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (i > 0) text_ += ", ";
      text_ += names_[node.outputs[i].index];
    }
    text_ += " = ";
    if (node.op.kind().meaning == Meaning::kSource) {
      print_source(node);
    } else {
      text_ += std::string(node.op.name()) + "(";
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (i > 0) text_ += ", ";
        text_ += names_[node.inputs[i].index];
      }
      text_ += ")";
      const std::string attributes = print_attributes(node.op);
      if (!attributes.empty()) text_ += " " + attributes;
    }
    text_ += " : ";
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (i > 0) text_ += ", ";
      text_ += to_string(graph_.type(node.outputs[i]));
    }
    if (!node.source.empty()) text_ += "  @" + quote(node.source);
    text_ += "\n";
  }

  void print_source(const Node& node) {
    text_ += node.op.name();
    text_ += " ";
    if (const Input* input = node.op.as<Input>()) text_ += quote(input->name);
    if (const Weight* weight = node.op.as<Weight>()) text_ += quote(weight->name);
    if (const State* state = node.op.as<State>()) text_ += quote(state->name);
    if (const Constant* constant = node.op.as<Constant>()) {
      text_ += print_constant(graph_.type(node.outputs[0]), *constant->data);
    }
  }

  const Graph& graph_;
  std::vector<std::string> names_;
  std::string text_;
};

class Parser {
 public:
  Parser(std::string_view text, const OpRegistry& registry) : text_(text), registry_(registry) {}

  Graph parse() {
    try {
      parse_graph_text();
    } catch (Error& error) {
      error.add_context(fmt::format("graph text, line {}", line()));
      throw;
    }
    return std::move(graph_);
  }

  Op parse_single_op(std::string_view name) { return parse_attributes(find_kind(name)); }

 private:
  int line() const {
    int count = 1;
    for (size_t i = 0; i < position_ && i < text_.size(); ++i) count += text_[i] == '\n';
    return count;
  }
  [[noreturn]] void fail_expected(std::string_view what) {
    std::string_view rest = text_.substr(std::min(position_, text_.size()));
    rest = rest.substr(0, std::min<size_t>(rest.find('\n'), 24));
    throw_error(ErrorCode::kInvalidArgument, "{} is expected, but the text goes on with '{}'.",
                what, rest);
  }

  char peek() const { return position_ < text_.size() ? text_[position_] : '\0'; }
  void skip_spaces() {
    while (position_ < text_.size()) {
      if (std::isspace(static_cast<unsigned char>(text_[position_]))) {
        ++position_;
      } else if (text_.substr(position_, 2) == "//") {
        while (position_ < text_.size() && text_[position_] != '\n') ++position_;
      } else {
        return;
      }
    }
  }
  bool accept(std::string_view token) {
    skip_spaces();
    if (text_.substr(position_, token.size()) != token) return false;
    position_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    if (!accept(token)) fail_expected(fmt::format("'{}'", token));
  }
  std::string_view read_word() {
    skip_spaces();
    const size_t start = position_;
    while (std::isalnum(static_cast<unsigned char>(peek())) || peek() == '_' || peek() == '.') {
      ++position_;
    }
    if (start == position_) fail_expected("A name");
    return text_.substr(start, position_ - start);
  }
  std::string read_quoted() {
    skip_spaces();
    if (peek() != '"') fail_expected("A quoted string");
    std::string plain;
    for (++position_; peek() != '"'; ++position_) {
      if (position_ >= text_.size()) fail_expected("A closing quote");
      if (peek() == '\\') {
        ++position_;
        plain += peek() == 'n' ? '\n' : peek();
      } else {
        plain += peek();
      }
    }
    ++position_;
    return plain;
  }
  int64_t read_integer() {
    skip_spaces();
    int64_t value = 0;
    const auto [end, error] =
        std::from_chars(text_.data() + position_, text_.data() + text_.size(), value);
    if (error != std::errc()) fail_expected("A whole number");
    position_ = end - text_.data();
    return value;
  }
  // The text up to and including the bracket that closes the one at the current position.
  std::string_view read_bracketed() {
    const size_t start = position_;
    int depth = 0;
    for (; position_ < text_.size(); ++position_) {
      const char c = text_[position_];
      if (c == '[' || c == '(') ++depth;
      if ((c == ']' || c == ')') && --depth == 0) {
        ++position_;
        return text_.substr(start, position_ - start);
      }
    }
    fail_expected("A closing bracket");
  }

  void parse_graph_text() {
    expect("graph");
    graph_.set_name(read_quoted());
    if (accept("(")) {
      do {
        parse_symbol();
      } while (accept(","));
      expect(")");
    }
    expect("{");
    while (!accept("}")) {
      skip_spaces();
      if (peek() == '%') {
        parse_node();
      } else if (accept("output")) {
        std::string name = read_quoted();
        graph_.add_output(std::move(name), read_value());
      } else {
        fail_expected("A node, an output or '}'");
      }
    }
    skip_spaces();
    if (position_ != text_.size()) fail_expected("The end of the text");
  }

  void parse_symbol() {
    Symbol symbol;
    skip_spaces();
    if (std::isdigit(static_cast<unsigned char>(peek()))) {
      symbol.lower = read_integer();
      expect("<=");
    }
    symbol.name = read_word();
    expect("<=");
    symbol.upper = read_integer();
    graph_.declare_symbol(std::move(symbol));
  }

  ValueId read_value() {
    expect("%");
    const std::string name(read_word());
    const auto found = values_.find(name);
    if (found == values_.end()) {
      throw_error(ErrorCode::kInvalidArgument, "%{} is not defined before its use.", name);
    }
    return found->second;
  }

  void parse_node() {
    const size_t start = position_;
    std::vector<std::string> names;
    do {
      expect("%");
      names.emplace_back(read_word());
    } while (accept(","));
    expect("=");
    const std::string_view op_name = read_word();
    pending_ = {};
    std::optional<Op> op = parse_source(op_name);
    const bool is_source = op.has_value();
    std::vector<ValueId> inputs;
    if (!is_source) op = parse_op(op_name, inputs);
    expect(":");
    std::vector<TensorType> written;
    do {
      written.push_back(read_type());
    } while (accept(","));
    std::string source;
    if (accept("@")) source = read_quoted();
    try {
      append(std::move(*op), is_source, inputs, written, source, names);
    } catch (const Error&) {
      position_ = start;  // the error is about the node, not about what follows it
      throw;
    }
  }

  void append(Op op, bool is_source, const std::vector<ValueId>& inputs,
              const std::vector<TensorType>& written, const std::string& source,
              const std::vector<std::string>& names) {
    std::vector<TensorType> types = written;
    if (is_source) {
      if (types.size() != 1) fail_expected("One type");
      if (op.is<Constant>()) op = Constant{make_constant(types[0])};
    } else {
      std::vector<TensorType> input_types;
      for (ValueId input : inputs) input_types.push_back(graph_.type(input));
      types = op.infer(input_types, graph_.symbols());
      if (types != written) {
        std::string inferred;
        for (const TensorType& type : types) {
          inferred += (inferred.empty() ? "" : ", ") + to_string(type);
        }
        throw_error(ErrorCode::kInvalidArgument,
                    "The written type of %{} differs from the inferred type {}.", names[0],
                    inferred);
      }
    }
    if (types.size() != names.size()) {
      throw_error(ErrorCode::kInvalidArgument, "Op '{}' has {} outputs, but {} are named.",
                  op.name(), types.size(), names.size());
    }
    const int32_t node = graph_.append(std::move(op), inputs, std::move(types), source);
    for (size_t i = 0; i < names.size(); ++i) {
      const ValueId value = graph_.node(node).outputs[i];
      if (!values_.emplace(names[i], value).second) {
        throw_error(ErrorCode::kInvalidArgument, "%{} is defined twice.", names[i]);
      }
      graph_.name_value(value, names[i]);
    }
  }

  std::optional<Op> parse_source(std::string_view op_name) {
    if (op_name == Input::kName) return Op(Input{read_quoted()});
    if (op_name == Weight::kName) return Op(Weight{read_quoted()});
    if (op_name == State::kName) return Op(State{read_quoted()});
    if (op_name != Constant::kName) return std::nullopt;
    skip_spaces();
    if (accept("hex")) {
      pending_.hex = read_quoted();
    } else if (accept("splat")) {
      pending_.splat = true;
      pending_.numbers.emplace_back(read_number());
    } else {
      expect("[");
      while (!accept("]")) {
        if (!pending_.numbers.empty()) expect(",");
        pending_.numbers.emplace_back(read_number());
      }
    }
    return Op(Constant{});
  }

  std::string_view read_number() {
    skip_spaces();
    const size_t start = position_;
    while (std::isalnum(static_cast<unsigned char>(peek())) || peek() == '.' || peek() == '-' ||
           peek() == '+') {
      ++position_;
    }
    if (start == position_) fail_expected("A number");
    return text_.substr(start, position_ - start);
  }

  const OpKind& find_kind(std::string_view op_name) const {
    const OpKind* kind = registry_.find(op_name);
    if (kind == nullptr) {
      throw_error(ErrorCode::kNotFound, "There is no op named '{}'.", op_name);
    }
    return *kind;
  }

  Op parse_op(std::string_view op_name, std::vector<ValueId>& inputs) {
    const OpKind& kind = find_kind(op_name);
    expect("(");
    while (!accept(")")) {
      if (!inputs.empty()) expect(",");
      inputs.push_back(read_value());
    }
    return parse_attributes(kind);
  }

  // Attributes up to ':' or the end of the text.
  Op parse_attributes(const OpKind& kind) {
    std::shared_ptr<void> attributes = kind.make_default();
    skip_spaces();
    while (peek() != ':' && peek() != '\0') {
      const std::string_view name = read_word();
      expect("=");
      parse_attribute(kind, attributes.get(), name, read_attribute_text());
      skip_spaces();
    }
    return Op(kind, std::move(attributes));
  }

  std::string_view read_attribute_text() {
    skip_spaces();
    if (peek() == '[' || peek() == '(') return read_bracketed();
    const size_t start = position_;
    if (peek() == '"') {
      read_quoted();
    } else {
      while (position_ < text_.size() && !std::isspace(static_cast<unsigned char>(peek()))) {
        ++position_;
      }
    }
    return text_.substr(start, position_ - start);
  }

  TensorType read_type() {
    skip_spaces();
    const size_t start = position_;
    read_word();
    if (peek() != '[') fail_expected("'['");
    read_bracketed();
    return parse_tensor_type(text_.substr(start, position_ - start));
  }

  std::shared_ptr<const ConstantData> make_constant(const TensorType& type) {
    auto data = std::make_shared<ConstantData>();
    if (!pending_.hex.empty() || is_packed(type.dtype) || is_complex(type.dtype)) {
      for (size_t i = 0; i + 1 < pending_.hex.size(); i += 2) {
        int byte = 0;
        const char* digits = pending_.hex.data() + i;
        if (std::from_chars(digits, digits + 2, byte, 16).ptr != digits + 2) {
          fail_expected("Hexadecimal bytes");
        }
        data->bytes.push_back(static_cast<std::byte>(byte));
      }
      const int64_t expected = upper_bound_bytes(type, graph_.symbols());
      if (static_cast<int64_t>(data->bytes.size()) != expected) {
        throw_error(ErrorCode::kInvalidArgument, "{} bytes are given, but {} takes {}.",
                    data->bytes.size(), to_string(type), expected);
      }
      return data;
    }
    std::vector<int64_t> shape;
    int64_t elements = 1;
    for (const Dim& extent : type.shape) {
      shape.push_back(extent.constant());
      elements = checked_mul(elements, shape.back());
    }
    // A few letters of text must not ask for all the memory there is.
    constexpr int64_t kMaxSplatElements = int64_t{1} << 24;
    if (pending_.splat && elements > kMaxSplatElements) {
      throw_error(ErrorCode::kOutOfRange, "{} has {} elements, but a splat has at most {}.",
                  to_string(type), elements, kMaxSplatElements);
    }
    if (!pending_.splat && static_cast<int64_t>(pending_.numbers.size()) != elements) {
      throw_error(ErrorCode::kInvalidArgument, "{} numbers are given, but {} has {} elements.",
                  pending_.numbers.size(), to_string(type), elements);
    }
    ReferenceTensor tensor = make_reference_tensor(type.dtype, std::move(shape));
    for (int64_t i = 0; i < elements; ++i) {
      set_element(tensor, i, pending_.numbers[pending_.splat ? 0 : i]);
    }
    data->bytes = to_bytes(tensor);
    return data;
  }

  void set_element(ReferenceTensor& tensor, int64_t index, std::string_view text) {
    const char* end = text.data() + text.size();
    std::from_chars_result result{};
    if (tensor.holds_floats()) {
      result = std::from_chars(text.data(), end, tensor.floats[index]);
    } else if (tensor.dtype == DType::kU64) {
      uint64_t value = 0;
      result = std::from_chars(text.data(), end, value);
      tensor.integers[index] = static_cast<int64_t>(value);
    } else {
      int64_t value = 0;
      result = std::from_chars(text.data(), end, value);
      tensor.set_integer(index, value);
    }
    if (result.ec != std::errc() || result.ptr != end) {
      throw_error(ErrorCode::kInvalidArgument, "'{}' is not a number of {}.", text,
                  to_string(tensor.dtype));
    }
  }

  struct PendingConstant {
    std::vector<std::string_view> numbers;
    bool splat = false;
    std::string hex;
  };

  std::string_view text_;
  const OpRegistry& registry_;
  size_t position_ = 0;
  Graph graph_;
  std::unordered_map<std::string, ValueId> values_;
  PendingConstant pending_;
};

}  // namespace

std::string to_string(const Graph& graph) { return Printer(graph).print(); }

Op parse_op(std::string_view name, std::string_view attributes, const OpRegistry& registry) {
  return Parser(attributes, registry).parse_single_op(name);
}

Graph parse_graph(std::string_view text, const OpRegistry& registry) {
  return Parser(text, registry).parse();
}

}  // namespace rlx
