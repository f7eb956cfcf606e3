// Turns a template's tokens into its tree, by the grammar and the precedence of Jinja.
#pragma once

#include <string_view>

#include "templates/ast.h"

namespace rlx::templates {

// Throws kInvalidArgument for what breaks the grammar, kUnsupported naming a statement, filter or
// test that does not exist here, and kOutOfRange for nesting that is too deep; the line is in the
// context.
Body parse_template(std::string_view source);

}  // namespace rlx::templates
