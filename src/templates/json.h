// JSON to values and back: the messages and tools that a template is given, and the filter tojson.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "templates/value.h"

namespace rlx::templates {

struct JsonStyle {
  std::optional<std::string> indent;  // of one level; nothing: all on one line
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool sort_keys = false;
  bool ascii_only = false;  // other characters as \u escapes
};

// As Python's json.dumps. Throws kInvalidArgument for what JSON has no form for.
std::string write_json(const Value& value, const JsonStyle& style);

// Throws kInvalidArgument naming the byte at which the text is not JSON, and kOutOfRange for
// nesting or whole numbers beyond what a Value takes. `what` names the text in errors.
Value read_json(std::string_view text, std::string_view what);

}  // namespace rlx::templates
