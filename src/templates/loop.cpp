#include "templates/loop.h"

#include "base/error.h"
#include "templates/arguments.h"

namespace rlx::templates {
namespace {

// loop.cycle or loop.changed.
class LoopMethod final : public Object {
 public:
  LoopMethod(std::shared_ptr<LoopObject> loop, bool is_cycle)
      : loop_(std::move(loop)), is_cycle_(is_cycle) {}
  std::string_view type_name() const override { return "method"; }
  bool is_callable() const override { return true; }
  Value call(Evaluator&, const CallArguments& arguments) override {
    if (is_cycle_) return loop_->cycle(arguments);
    return loop_->is_changed(arguments);
  }

 private:
  const std::shared_ptr<LoopObject> loop_;
  const bool is_cycle_;
};

}  // namespace

std::optional<Value> LoopObject::attribute(std::string_view name) const {
  const auto index = static_cast<int64_t>(index_);
  const auto length = static_cast<int64_t>(items_.size());
  if (name == "index") return index + 1;
  if (name == "index0") return index;
  if (name == "revindex") return length - index;
  if (name == "revindex0") return length - index - 1;
  if (name == "first") return index == 0;
  if (name == "last") return index + 1 == length;
  if (name == "length") return length;
  if (name == "depth") return int64_t{depth_};
  if (name == "depth0") return int64_t{depth_} - 1;
  if (name == "previtem") {
    return index > 0 ? items_[index_ - 1] : Value::make_undefined("loop.previtem");
  }
  if (name == "nextitem") {
    return index + 1 < length ? items_[index_ + 1] : Value::make_undefined("loop.nextitem");
  }
  if (name == "cycle" || name == "changed") {
    // The object itself is never const; attribute() is for the sake of the others.
    auto self = std::const_pointer_cast<LoopObject>(shared_from_this());
    return Value(
        std::shared_ptr<Object>(std::make_shared<LoopMethod>(std::move(self), name == "cycle")));
  }
  return std::nullopt;
}

Value LoopObject::call(Evaluator&, const CallArguments& arguments) {
  if (!recurse_) {
    throw_error(ErrorCode::kInvalidArgument,
                "'loop' is called, but the loop is not marked 'recursive'.");
  }
  const Arguments checked("loop", arguments, {"iterable"});
  return recurse_(checked.require(0));
}

bool LoopObject::is_changed(const CallArguments& arguments) {
  const std::vector<Value>& values = arguments.positional;
  for (const Value& value : values) {
    if (value.holds_object()) {
      throw_error(ErrorCode::kUnsupported,
                  "'loop.changed' is given a {}; only plain values are "
                  "supported.",
                  templates::type_name(value));
    }
  }
  const bool same = last_ && last_->size() == values.size() &&
                    std::equal(values.begin(), values.end(), last_->begin(), is_equal);
  if (!same) last_ = values;
  return !same;
}

Value LoopObject::cycle(const CallArguments& arguments) const {
  if (arguments.positional.empty()) {
    throw_error(ErrorCode::kInvalidArgument, "'loop.cycle' needs at least one argument.");
  }
  return arguments.positional[index_ % arguments.positional.size()];
}

}  // namespace rlx::templates
