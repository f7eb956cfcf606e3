// The filters: functions that stand behind a '|'. All that chat templates use, with the meaning
// that Jinja gives them; `tojson` is the one of the chat templates' own environment, which keeps
// characters as they are. Those that walk over a list give the whole result at once, and it behaves
// as a generator where Jinja makes one.
#pragma once

#include <string_view>

#include "templates/value.h"

namespace rlx::templates {

using Filter = Value (*)(Evaluator& evaluator, const Value& input, const CallArguments& arguments);

// Null when there is no such filter. A filter throws kInvalidArgument for an input or argument it
// cannot take.
Filter find_filter(std::string_view name);

}  // namespace rlx::templates
