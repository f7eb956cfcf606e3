// The functions that every template has: range, namespace, dict, raise_exception, strftime_now.
#pragma once

#include <string_view>

#include "templates/value.h"

namespace rlx::templates {

// Null when there is no such function.
const Value* find_global(std::string_view name);

}  // namespace rlx::templates
