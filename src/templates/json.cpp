#include "templates/json.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "templates/operators.h"
#include "templates/python_text.h"
#include "text/unicode.h"

namespace rlx::templates {
namespace {

class JsonWriter {
 public:
  explicit JsonWriter(const JsonStyle& style) : style_(style) {}

  std::string run(const Value& value) {
    write(value, 0);
    return std::move(out_);
  }

 private:
  void write(const Value& value, int level) {
    switch (value.kind()) {
      case Kind::kNone:
        out_ += "null";
        break;
      case Kind::kBool:
        out_ += value.as_bool() ? "true" : "false";
        break;
      case Kind::kInt:
        out_ += std::to_string(value.as_int());
        break;
      case Kind::kFloat:
        out_ += number(value.as_float());
        break;
      case Kind::kString:
        write_string(value.as_string());
        break;
      case Kind::kDict:
        write_dict(value.as_dict(), level);
        break;
      case Kind::kList:
        if (value.as_list().shape == ListShape::kList ||
            value.as_list().shape == ListShape::kTuple) {
          write_list(value.as_list(), level);
          break;
        }
        [[fallthrough]];
      default:
        check_defined(value);
        throw_error(ErrorCode::kInvalidArgument, "A value of the type {} has no form in JSON.",
                    type_name(value));
    }
    check_text_size(out_.size());
  }

  static std::string number(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
    return repr_of_float(value);
  }

  void break_line(int level) {
    if (!style_.indent) return;
    out_ += '\n';
    for (int i = 0; i < level; ++i) out_ += *style_.indent;
  }

  void write_list(const List& list, int level) {
    out_ += '[';
    for (size_t i = 0; i < list.items.size(); ++i) {
      if (i > 0) out_ += style_.item_separator;
      break_line(level + 1);
      write(list.items[i], level + 1);
    }
    if (!list.items.empty()) break_line(level);
    out_ += ']';
  }

  static std::string key_text(const Value& key) {
    switch (key.kind()) {
      case Kind::kString:
        return key.as_string();
      case Kind::kNone:
        return "null";
      case Kind::kBool:
        return key.as_bool() ? "true" : "false";
      case Kind::kInt:
        return std::to_string(key.as_int());
      case Kind::kFloat:
        return number(key.as_float());
      default:
        throw_error(ErrorCode::kInvalidArgument,
                    "A {} is the key of a dict, which JSON has no "
                    "form for.",
                    type_name(key));
    }
  }

  void write_dict(const Dict& dict, int level) {
    auto entries = dict.entries;
    if (style_.sort_keys) {
      std::stable_sort(entries.begin(), entries.end(),
                       [](const auto& a, const auto& b) { return compare(a.first, b.first) < 0; });
    }
    out_ += '{';
    for (size_t i = 0; i < entries.size(); ++i) {
      if (i > 0) out_ += style_.item_separator;
      break_line(level + 1);
      write_string(key_text(entries[i].first));
      out_ += style_.key_separator;
      write(entries[i].second, level + 1);
    }
    if (!entries.empty()) break_line(level);
    out_ += '}';
  }

  void write_unit(uint32_t unit) { out_ += fmt::format("\\u{:04x}", unit); }

  void write_string(const std::string& text) {
    out_ += '"';
    for (size_t at = 0; at < text.size();) {
      const DecodedCharacter c = decode_utf8(text, at);
      const uint32_t p = c.code_point;
      static constexpr std::string_view kSpecial = "\"\\\n\r\t\b\f";
      static constexpr std::string_view kLetters = "\"\\nrtbf";
      const size_t special = p < 0x80 ? kSpecial.find(static_cast<char>(p)) : std::string::npos;
      if (special != std::string_view::npos) {
        out_ += '\\';
        out_ += kLetters[special];
      } else if (p < 0x20 || (style_.ascii_only && p >= 0x7F && p < 0x10000)) {
        if (p == 0x7F)
          out_ += '\x7F';
        else
          write_unit(p);
      } else if (style_.ascii_only && p >= 0x10000) {
        write_unit(0xD800 + ((p - 0x10000) >> 10));
        write_unit(0xDC00 + ((p - 0x10000) & 0x3FF));
      } else {
        out_ += std::string_view(text).substr(at, c.length_bytes);
      }
      at += c.length_bytes;
    }
    out_ += '"';
  }

  const JsonStyle& style_;
  std::string out_;
};

// Builds values while nlohmann's reader walks over the text, so that no tree of its own is needed.
class ValueBuilder {
 public:
  using number_integer_t = nlohmann::json::number_integer_t;
  using number_unsigned_t = nlohmann::json::number_unsigned_t;
  using number_float_t = nlohmann::json::number_float_t;
  using string_t = nlohmann::json::string_t;
  using binary_t = nlohmann::json::binary_t;

  bool null() { return add(None{}); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(number_integer_t value) { return add(int64_t{value}); }
  bool number_unsigned(number_unsigned_t value) {
    if (value > static_cast<uint64_t>(INT64_MAX)) {
      throw_error(ErrorCode::kOutOfRange, "The number {} does not fit into 64 bits.", value);
    }
    return add(static_cast<int64_t>(value));
  }
  bool number_float(number_float_t value, const string_t&) { return add(value); }
  bool string(string_t& text) { return add(std::move(text)); }
  bool binary(binary_t&) { return false; }
  bool start_object(size_t) { return open(true); }
  bool end_object() { return close(); }
  bool start_array(size_t) { return open(false); }
  bool end_array() { return close(); }
  bool key(string_t& text) {
    open_.back().key = std::move(text);
    return true;
  }
  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception&) {
    error_position = position;
    return false;
  }

  Value root;
  size_t error_position = 0;

 private:
  struct Container {
    bool is_dict;
    std::string key;
    std::vector<Value> items;
    std::vector<std::pair<Value, Value>> entries;
  };

  bool open(bool is_dict) {
    if (open_.size() >= static_cast<size_t>(Value::kMaxDepth)) {
      throw_error(ErrorCode::kOutOfRange, "JSON is nested deeper than {} levels.",
                  Value::kMaxDepth);
    }
    open_.push_back({is_dict, {}, {}, {}});
    return true;
  }

  bool close() {
    Container container = std::move(open_.back());
    open_.pop_back();
    return add(container.is_dict ? Value::make_dict(std::move(container.entries))
                                 : Value::make_list(std::move(container.items)));
  }

  bool add(Value value) {
    if (open_.empty()) {
      root = std::move(value);
    } else if (open_.back().is_dict) {
      open_.back().entries.emplace_back(std::move(open_.back().key), std::move(value));
    } else {
      open_.back().items.push_back(std::move(value));
    }
    return true;
  }

  std::vector<Container> open_;
};

}  // namespace

std::string write_json(const Value& value, const JsonStyle& style) {
  return JsonWriter(style).run(value);
}

Value read_json(std::string_view text, std::string_view what) {
  ValueBuilder builder;
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &builder)) {
    throw_error(ErrorCode::kInvalidArgument, "{}: The text is not JSON at byte {}.", what,
                builder.error_position);
  }
  return std::move(builder.root);
}

}  // namespace rlx::templates
