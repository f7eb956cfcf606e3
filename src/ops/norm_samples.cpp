#include "ops/norm.h"
#include "ops/samples.h"

namespace rlx {
namespace {

template <typename T>
std::vector<Sample> make_softmax_samples() {
  return {
      make_sample(T{}, {make_sample_input("f32[3, 37]", -10, 10)}),
      make_sample(T{.axis = 0}, {"f32[5, 4]"}),
      make_sample(T{.axis = 1}, {"f32[2, 6, 3]"}),
      make_sample(T{}, {make_sample_input("f32[2, 5]", 80, 100)}),
      make_sample(T{}, {"f32[2, tokens]"}, {{{"tokens", 1, 16}, 5}}),
  };
}

template <typename T>
std::vector<BadSample> make_softmax_bad_samples() {
  return {
      make_bad_sample(T{.axis = 2}, {"f32[2, 3]"}, "has axes -2 to 1"),
      make_bad_sample(T{}, {"i32[2, 3]"}, "a float dtype is expected"),
  };
}

}  // namespace

std::vector<Sample> Softmax::samples() { return make_softmax_samples<Softmax>(); }
std::vector<BadSample> Softmax::bad_samples() { return make_softmax_bad_samples<Softmax>(); }

std::vector<Sample> LogSoftmax::samples() { return make_softmax_samples<LogSoftmax>(); }
std::vector<BadSample> LogSoftmax::bad_samples() { return make_softmax_bad_samples<LogSoftmax>(); }

std::vector<Sample> RmsNorm::samples() {
  return {
      make_sample(RmsNorm{}, {"f32[3, 64]", "f32[64]"}),
      make_sample(RmsNorm{.eps = 0.1}, {"f32[2, 3, 5]", "f32[5]"}),
      make_sample(RmsNorm{}, {"f32[9]", "f16[9]"}),
      make_sample(RmsNorm{}, {make_sample_input("f32[2, 8]", -400, 400), "f32[8]"}),
      make_sample(RmsNorm{.eps = 1e-5}, {"f32[1, tokens, 8]", "f32[8]"}, {{{"tokens", 0, 16}, 5}}),
  };
}

std::vector<BadSample> RmsNorm::bad_samples() {
  return {
      make_bad_sample(RmsNorm{}, {"f32[2, 3]", "f32[2]"}, "the extent 3 is expected at axis 0"),
      make_bad_sample(RmsNorm{}, {"i32[2, 3]", "f32[3]"}, "a float dtype is expected"),
      make_bad_sample(RmsNorm{.eps = -1}, {"f32[2, 3]", "f32[3]"}, "0 or more is expected"),
      make_bad_sample(RmsNorm{}, {"f32[]", "f32[]"}, "at least 1 dimensions are expected"),
  };
}

std::vector<Sample> LayerNorm::samples() {
  return {
      make_sample(LayerNorm{}, {"f32[3, 64]", "f32[64]", "f32[64]"}),
      make_sample(LayerNorm{.eps = 1e-12}, {"f32[2, 3, 5]", "f32[5]", "f32[5]"}),
      make_sample(LayerNorm{}, {"f32[9]", "f16[9]", "bf16[9]"}),
      make_sample(LayerNorm{}, {make_sample_input("f32[2, 8]", 90, 110), "f32[8]", "f32[8]"}),
      make_sample(LayerNorm{}, {"f32[1, tokens, 8]", "f32[8]", "f32[8]"}, {{{"tokens", 0, 16}, 5}}),
  };
}

std::vector<BadSample> LayerNorm::bad_samples() {
  return {
      make_bad_sample(LayerNorm{}, {"f32[2, 3]", "f32[3]", "f32[2]"}, "one bias per element"),
      make_bad_sample(LayerNorm{}, {"f32[2, 3]", "f32[1, 3]", "f32[3]"},
                      "but 1 dimensions are expected"),
  };
}

std::vector<Sample> AddRmsNorm::samples() {
  return {
      make_sample(AddRmsNorm{}, {"f32[3, 64]", "f32[3, 64]", "f32[64]"}),
      make_sample(AddRmsNorm{.eps = 1e-5}, {"f32[2, 3, 5]", "f32[2, 3, 5]", "f16[5]"}),
      make_sample(AddRmsNorm{}, {"f32[1, tokens, 8]", "f32[1, tokens, 8]", "f32[8]"},
                  {{{"tokens", 0, 16}, 5}}),
  };
}

std::vector<BadSample> AddRmsNorm::bad_samples() {
  return {
      make_bad_sample(AddRmsNorm{}, {"f32[2, 3]", "f32[3]", "f32[3]"}, "one type is expected"),
      make_bad_sample(AddRmsNorm{}, {"f32[2, 3]", "f32[2, 3]", "f32[2]"}, "one weight per element"),
  };
}

}  // namespace rlx
