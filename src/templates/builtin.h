// Chat templates for models whose file has none, in the few shapes that most models are trained on.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rlx::templates {

// The source of a built-in template; empty when there is none of this name.
std::string_view find_builtin_template(std::string_view name);
std::vector<std::string> list_builtin_templates();

}  // namespace rlx::templates
