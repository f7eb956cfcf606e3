// The tests: what may stand behind `is`.
#pragma once

#include <string_view>

#include "templates/value.h"

namespace rlx::templates {

using Test = bool (*)(const Value& input, const CallArguments& arguments);

// Null when there is no such test. A test throws kInvalidArgument for an argument it cannot take.
Test find_test(std::string_view name);

}  // namespace rlx::templates
