// What `loop` is inside a for loop.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "templates/value.h"

namespace rlx::templates {

class LoopObject final : public Object, public std::enable_shared_from_this<LoopObject> {
 public:
  // `recurse` runs the loop's body over other elements and gives their text; empty when the loop is
  // not recursive.
  using Recurse = std::function<Value(const Value& iterable)>;
  LoopObject(const std::vector<Value>& items, int depth, Recurse recurse)
      : items_(items), depth_(depth), recurse_(std::move(recurse)) {}

  std::string_view type_name() const override { return "loop"; }
  bool is_callable() const override { return true; }
  std::optional<Value> attribute(std::string_view name) const override;
  Value call(Evaluator& evaluator, const CallArguments& arguments) override;

  void go_to(size_t index) { index_ = index; }
  // loop.changed: whether the values differ from those of the last call.
  bool is_changed(const CallArguments& arguments);
  // loop.cycle: the argument whose turn it is.
  Value cycle(const CallArguments& arguments) const;

 private:
  const std::vector<Value> items_;
  const int depth_;
  const Recurse recurse_;
  size_t index_ = 0;
  std::optional<std::vector<Value>> last_;
};

}  // namespace rlx::templates
