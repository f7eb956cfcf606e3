#include "templates/arguments.h"

#include <algorithm>

#include "base/error.h"

namespace rlx::templates {

Arguments::Arguments(std::string_view function, const CallArguments& call,
                     std::initializer_list<std::string_view> names)
    : function_(function), names_(names), values_(names.size(), nullptr) {
  if (call.positional.size() > names.size()) {
    throw_error(ErrorCode::kInvalidArgument, "'{}' takes at most {} arguments, but {} are given.",
                function, names.size(), call.positional.size());
  }
  for (size_t i = 0; i < call.positional.size(); ++i) values_[i] = &call.positional[i];
  for (const auto& [name, value] : call.named) {
    const auto found = std::find(names_.begin(), names_.end(), name);
    if (found == names_.end()) {
      throw_error(ErrorCode::kInvalidArgument, "'{}' has no argument '{}'.", function, name);
    }
    const Value*& slot = values_[static_cast<size_t>(found - names_.begin())];
    if (slot != nullptr) {
      throw_error(ErrorCode::kInvalidArgument, "'{}' is given the argument '{}' twice.", function,
                  name);
    }
    slot = &value;
  }
}

const Value& Arguments::require(size_t index) const {
  if (values_[index] == nullptr) {
    throw_error(ErrorCode::kInvalidArgument, "'{}' needs the argument '{}'.", function_,
                names_[index]);
  }
  return *values_[index];
}

void Arguments::fail_type(size_t index, std::string_view expected) const {
  check_defined(*values_[index]);
  throw_error(ErrorCode::kInvalidArgument,
              "The argument '{}' of '{}' is a {}, but a {} is expected.", names_[index], function_,
              type_name(*values_[index]), expected);
}

const std::string& Arguments::require_string(size_t index) const {
  if (!require(index).is(Kind::kString)) fail_type(index, "string");
  return values_[index]->as_string();
}

std::optional<std::string_view> Arguments::find_string(size_t index) const {
  const Value* value = values_[index];
  if (value == nullptr || value->is(Kind::kNone)) return std::nullopt;
  if (!value->is(Kind::kString)) fail_type(index, "string");
  return value->as_string();
}

int64_t Arguments::int_or(size_t index, int64_t fallback) const {
  const Value* value = values_[index];
  if (value == nullptr || value->is(Kind::kNone)) return fallback;
  if (!value->is_integral()) fail_type(index, "whole number");
  return value->as_int();
}

bool Arguments::bool_or(size_t index, bool fallback) const {
  return values_[index] == nullptr ? fallback : is_true(*values_[index]);
}

}  // namespace rlx::templates
