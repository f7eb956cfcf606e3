#include "templates/template.h"

#include "base/error.h"
#include "templates/parser.h"

namespace rlx::templates {
namespace {

constexpr size_t kMaxSourceBytes = size_t{1} << 20;

}  // namespace

Template::Template(std::string_view source, std::string name) : name_(std::move(name)) {
  with_context(name_, [&] {
    if (source.size() > kMaxSourceBytes) {
      throw_error(ErrorCode::kOutOfRange, "The template has {} bytes, but at most {} are expected.",
                  source.size(), kMaxSourceBytes);
    }
    body_ = std::make_shared<const Body>(parse_template(source));
  });
}

std::string Template::render(const Value& variables, std::time_t now, const Limits& limits) const {
  RLX_CHECK(variables.is(Kind::kDict));
  return with_context(name_,
                      [&] { return Evaluator(limits, now).render(*body_, variables.as_dict()); });
}

}  // namespace rlx::templates
