// A chat template: the little program that comes with a model and turns a conversation into the
// text that the model was trained on. Its language is the part of Jinja that such templates use,
// run by our own interpreter, since no C++ one is packaged; docs/generation.md lists it. What is
// not supported is refused by name and line, and every run is bounded in time, memory and depth.
#pragma once

#include <ctime>
#include <memory>
#include <string>
#include <string_view>

#include "templates/evaluator.h"
#include "templates/value.h"

namespace rlx::templates {

class Template {
 public:
  // `name` stands for the template in errors. Throws kInvalidArgument for what breaks the grammar,
  // kUnsupported naming a construct that is not supported, kOutOfRange for nesting that is too deep
  // or a text of more than a mebibyte; the name and the line are in the context.
  Template(std::string_view source, std::string name);

  // The text for these variables (a dict). Throws kInvalidArgument when the template raises an
  // exception or computes what has no sense, kUnsupported for a method or function that is not
  // supported, kOutOfRange when it goes beyond the limits; name and line are in the context. Const
  // use is thread-safe.
  std::string render(const Value& variables, std::time_t now = std::time(nullptr),
                     const Limits& limits = {}) const;

 private:
  std::string name_;
  std::shared_ptr<const Body> body_;
};

}  // namespace rlx::templates
