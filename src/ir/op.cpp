#include "ir/op.h"

#include <charconv>

namespace rlx {
namespace {

// Double quotes around, backslash before quote and backslash.
std::string quote(std::string_view text) {
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

std::string unquote(std::string_view text) {
  if (text.size() < 2 || text.front() != '"' || text.back() != '"') {
    throw_error(ErrorCode::kInvalidArgument, "{} is not a quoted string.", text);
  }
  std::string plain;
  for (size_t i = 1; i + 1 < text.size(); ++i) {
    if (text[i] == '\\' && i + 2 < text.size()) ++i;
    plain += text[i];
  }
  return plain;
}

// Calls visit(item) for each comma-separated item of "[a, b]".
template <typename Visit>
void split_list(std::string_view text, Visit visit) {
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') {
    throw_error(ErrorCode::kInvalidArgument, "'{}' is not a list such as [1, 2].", text);
  }
  text = text.substr(1, text.size() - 2);
  while (!text.empty()) {
    const size_t comma = text.find(',');
    visit(text.substr(0, comma));
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
}

template <typename T>
T parse_number(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw_error(ErrorCode::kInvalidArgument, "'{}' is not a number.", text);
  }
  return value;
}

class PrintVisitor final : public FieldVisitor {
 public:
  struct Field {
    std::string name, text;
  };
  std::vector<Field> fields;

  using FieldVisitor::operator();
  void operator()(std::string_view name, bool& v) override { add(name, v ? "true" : "false"); }
  void operator()(std::string_view name, int64_t& v) override { add(name, fmt::format("{}", v)); }
  void operator()(std::string_view name, double& v) override { add(name, fmt::format("{}", v)); }
  void operator()(std::string_view name, std::string& v) override { add(name, quote(v)); }
  void operator()(std::string_view name, DType& v) override {
    add(name, std::string(to_string(v)));
  }
  void operator()(std::string_view name, Dim& v) override {
    // Spaces would end the attribute, so an expression is bracketed.
    add(name, v.is_constant() ? to_string(v) : "(" + to_string(v) + ")");
  }
  void operator()(std::string_view name, Shape& v) override { add(name, to_string(v)); }
  void operator()(std::string_view name, std::vector<int64_t>& v) override {
    add(name, fmt::format("[{}]", fmt::join(v, ", ")));
  }
  void operator()(std::string_view name, Formula& v) override {
    add(name, v.steps().empty() ? "\"\"" : quote(to_string(v)));
  }

 protected:
  void enumeration(std::string_view name, int& index,
                   std::span<const std::string_view> names) override {
    add(name, std::string(names[index]));
  }

 private:
  void add(std::string_view name, std::string text) {
    fields.push_back({std::string(name), std::move(text)});
  }
};

class ParseVisitor final : public FieldVisitor {
 public:
  ParseVisitor(std::string_view name, std::string_view text) : name_(name), text_(text) {}
  bool found = false;

  using FieldVisitor::operator();
  void operator()(std::string_view name, bool& v) override {
    if (!matches(name)) return;
    if (text_ != "true" && text_ != "false") {
      throw_error(ErrorCode::kInvalidArgument, "'{}' is neither true nor false.", text_);
    }
    v = text_ == "true";
  }
  void operator()(std::string_view name, int64_t& v) override {
    if (matches(name)) v = parse_number<int64_t>(text_);
  }
  void operator()(std::string_view name, double& v) override {
    if (matches(name)) v = parse_number<double>(text_);
  }
  void operator()(std::string_view name, std::string& v) override {
    if (matches(name)) v = unquote(text_);
  }
  void operator()(std::string_view name, DType& v) override {
    if (matches(name) && !parse_dtype(text_, v)) {
      throw_error(ErrorCode::kInvalidArgument, "'{}' is not a dtype.", text_);
    }
  }
  void operator()(std::string_view name, Dim& v) override {
    if (!matches(name)) return;
    std::string_view text = text_;
    if (text.size() >= 2 && text.front() == '(' && text.back() == ')') {
      text = text.substr(1, text.size() - 2);
    }
    v = parse_dim(text);
  }
  void operator()(std::string_view name, Shape& v) override {
    if (!matches(name)) return;
    v.clear();
    split_list(text_, [&](std::string_view item) { v.push_back(parse_dim(item)); });
  }
  void operator()(std::string_view name, std::vector<int64_t>& v) override {
    if (!matches(name)) return;
    v.clear();
    split_list(text_, [&](std::string_view item) { v.push_back(parse_number<int64_t>(item)); });
  }
  void operator()(std::string_view name, Formula& v) override {
    if (matches(name)) v = parse_formula(unquote(text_));
  }

 protected:
  void enumeration(std::string_view name, int& index,
                   std::span<const std::string_view> names) override {
    if (!matches(name)) return;
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i] == text_) {
        index = static_cast<int>(i);
        return;
      }
    }
    throw_error(ErrorCode::kInvalidArgument, "'{}' is not one of: {}.", text_,
                fmt::join(names, ", "));
  }

 private:
  bool matches(std::string_view name) {
    if (name != name_) return false;
    found = true;
    return true;
  }
  std::string_view name_, text_;
};

class DimVisitor final : public FieldVisitor {
 public:
  std::vector<Dim> dims;

  using FieldVisitor::operator();
  void operator()(std::string_view, bool&) override {}
  void operator()(std::string_view, int64_t&) override {}
  void operator()(std::string_view, double&) override {}
  void operator()(std::string_view, std::string&) override {}
  void operator()(std::string_view, DType&) override {}
  void operator()(std::string_view, Dim& v) override { dims.push_back(v); }
  void operator()(std::string_view, Shape& v) override {
    dims.insert(dims.end(), v.begin(), v.end());
  }
  void operator()(std::string_view, std::vector<int64_t>&) override {}
  void operator()(std::string_view, Formula&) override {}

 protected:
  void enumeration(std::string_view, int&, std::span<const std::string_view>) override {}
};

std::vector<PrintVisitor::Field> print_fields(const OpKind& kind, const void* attributes) {
  PrintVisitor visitor;
  // The visitor takes references so that parsing can share the member function; printing only
  // reads.
  kind.visit_fields(const_cast<void*>(attributes), visitor);
  return std::move(visitor.fields);
}

}  // namespace

std::vector<TensorType> Op::infer(std::span<const TensorType> inputs,
                                  const SymbolTable& symbols) const {
  const InferContext context{name(), inputs, symbols};
  const int count = static_cast<int>(inputs.size());
  if (count < kind_->arity.min || (kind_->arity.max >= 0 && count > kind_->arity.max)) {
    const std::string most =
        kind_->arity.max < 0 ? std::string("any number") : fmt::format("{}", kind_->arity.max);
    context.fail("{} inputs are given, but {} to {} are expected.", count, kind_->arity.min, most);
  }
  std::vector<TensorType> types = kind_->infer(attributes(), context);
  for (const TensorType& type : types) {
    if (type.rank() > kMaxRank) {
      context.fail("The result {} has {} dimensions, but at most {} are supported.",
                   to_string(type), type.rank(), kMaxRank);
    }
  }
  return types;
}

std::vector<Dim> Op::list_dims() const {
  DimVisitor visitor;
  kind_->visit_fields(const_cast<void*>(attributes()), visitor);
  return std::move(visitor.dims);
}

bool Op::operator==(const Op& other) const {
  if (kind_ != other.kind_) return false;
  if (attributes_ == other.attributes_) return true;
  if (kind_->equals != nullptr) return kind_->equals(attributes(), other.attributes());
  const auto a = print_fields(*kind_, attributes());
  const auto b = print_fields(*kind_, other.attributes());
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].text != b[i].text) return false;
  }
  return true;
}

std::string print_attributes(const Op& op) {
  const auto fields = print_fields(op.kind(), op.attributes());
  const auto defaults = print_fields(op.kind(), op.kind().make_default().get());
  std::string text;
  for (size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].text == defaults[i].text) continue;
    if (!text.empty()) text += " ";
    text += fields[i].name + "=" + fields[i].text;
  }
  return text;
}

void parse_attribute(const OpKind& kind, void* attributes, std::string_view name,
                     std::string_view text) {
  ParseVisitor visitor(name, text);
  with_context(fmt::format("op '{}', attribute '{}'", kind.name, name), [&] {
    kind.visit_fields(attributes, visitor);
    if (!visitor.found) {
      throw_error(ErrorCode::kInvalidArgument, "The op has no attribute of this name.");
    }
  });
}

const OpKind* OpRegistry::find(std::string_view name) const {
  for (const OpKind* kind : kinds_) {
    if (kind->name == name) return kind;
  }
  return nullptr;
}

}  // namespace rlx
