#include "runtime/session.h"

#include "base/error.h"
#include "program/weight_store.h"

namespace rlx {
namespace {

int find_named(std::span<const NamedValue> values, std::string_view name, const char* what) {
  std::string known;
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].name == name) return static_cast<int>(i);
    known += (known.empty() ? "" : ", ") + values[i].name;
  }
  throw_error(ErrorCode::kNotFound, "There is no {} named '{}'; there is: {}.", what, name, known);
}

}  // namespace

int find_input(const Program& program, std::string_view name) {
  return find_named(program.inputs, name, "input");
}

int find_output(const Program& program, std::string_view name) {
  return find_named(program.outputs, name, "output");
}

void check_weights(const Program& program, const WeightStore& weights) {
  std::string missing;
  for (const NamedValue& weight : program.weights) {
    if (weights.find(weight.name) == nullptr) {
      missing += (missing.empty() ? "'" : ", '") + weight.name + "'";
    }
  }
  if (!missing.empty()) {
    throw_error(ErrorCode::kNotFound, "The model's file lacks the tensors {}.", missing);
  }
  for (const NamedValue& weight : program.weights) {
    const WeightInfo& info = *weights.find(weight.name);
    const TensorType& expected = program.values[weight.value].type;
    TensorType given{info.dtype, {}};
    for (int64_t extent : info.shape) given.shape.push_back(extent);
    if (given != expected) {
      throw_error(ErrorCode::kCorruptData, "{}: tensor '{}' is {}, but the program expects {}.",
                  info.file, weight.name, to_string(given), to_string(expected));
    }
  }
}

}  // namespace rlx
