// The methods of strings, dicts and lists that do not change them. Those that would are refused, as
// in the environment that chat templates are written for.
#pragma once

#include <string_view>

#include "templates/value.h"

namespace rlx::templates {

// Whether values of this kind have the method in Python, also one that is refused when called.
bool has_method(const Value& value, std::string_view name);
// The method bound to the value, as a function. Precondition: has_method.
Value make_method(const Value& value, std::string_view name);

}  // namespace rlx::templates
