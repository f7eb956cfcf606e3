// Short forms in which the samples of ops are written. The types are in the text form:
// make_sample(Softmax{.axis = 1}, {"f32[2, 3]"}).
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "ir/op.h"

namespace rlx {

// An input of the type with values in [low, high), or with exactly the given values.
inline SampleInput make_sample_input(std::string_view type, double low = -2, double high = 2) {
  return {parse_tensor_type(type), low, high};
}
inline SampleInput make_sample_input(std::string_view type, std::vector<double> values) {
  return {parse_tensor_type(type), 0, 0, std::move(values)};
}

// One input: a type, or a type with its values.
struct SampleInputText {
  SampleInput input;

  SampleInputText(const char* type) : input(make_sample_input(type)) {}
  SampleInputText(SampleInput given) : input(std::move(given)) {}
};

// A symbol with its bound and its value in the run.
struct SampleSymbol {
  Symbol symbol;
  int64_t value = 0;
};

template <typename T>
Sample make_sample(T attributes, std::vector<SampleInputText> inputs,
                   std::vector<SampleSymbol> symbols = {}) {
  Sample sample;
  sample.op = make_op(std::move(attributes));
  for (SampleInputText& input : inputs) sample.inputs.push_back(std::move(input.input));
  for (SampleSymbol& symbol : symbols) {
    sample.symbols.push_back(std::move(symbol.symbol));
    sample.symbol_values.push_back(symbol.value);
  }
  return sample;
}

template <typename T>
BadSample make_bad_sample(T attributes, std::vector<std::string_view> types, std::string message) {
  BadSample sample{make_op(std::move(attributes)), {}, std::move(message)};
  for (std::string_view type : types) sample.inputs.push_back(parse_tensor_type(type));
  return sample;
}

}  // namespace rlx
