// The arguments of a filter, test, method or function, by position or by name, checked against the
// names that it has.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "templates/value.h"

namespace rlx::templates {

class Arguments {
 public:
  // Throws kInvalidArgument naming the function: too many arguments, an unknown name, or one that
  // is given twice. Both parameters must outlive this.
  Arguments(std::string_view function, const CallArguments& call,
            std::initializer_list<std::string_view> names);

  // Null when the argument is not given.
  const Value* find(size_t index) const { return values_[index]; }
  // These throw kInvalidArgument naming the function and the argument: it is missing, or is none of
  // the type.
  const Value& require(size_t index) const;
  const std::string& require_string(size_t index) const;
  std::optional<std::string_view> find_string(size_t index) const;  // none counts as not given
  int64_t int_or(size_t index, int64_t fallback) const;             // none counts as not given
  bool bool_or(size_t index, bool fallback) const;

 private:
  [[noreturn]] void fail_type(size_t index, std::string_view expected) const;

  std::string_view function_;
  std::vector<std::string_view> names_;
  std::vector<const Value*> values_;
};

}  // namespace rlx::templates
