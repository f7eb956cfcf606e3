#include <cmath>

#include "ops/move.h"
#include "ops/samples.h"

namespace rlx {

std::vector<Sample> Concat::samples() {
  return {
      make_sample(Concat{}, {"f32[2, 3]", "f32[1, 3]"}),
      make_sample(Concat{.axis = -1}, {"f32[2, 3]", "f32[2, 0]", "f32[2, 5]"}),
      make_sample(Concat{.axis = 1}, {"i64[2, 3, 2]", "i64[2, 1, 2]"}),
      make_sample(Concat{.axis = 1}, {"f32[2, past, 3]", "f32[2, tokens, 3]"},
                  {{{"past", 0, 16}, 4}, {{"tokens", 1, 8}, 2}}),
      make_sample(Concat{}, {"bool[3]"}),
  };
}

std::vector<BadSample> Concat::bad_samples() {
  return {
      make_bad_sample(Concat{}, {"f32[2, 3]", "f32[2, 4]"}, "the extent 3 is expected at axis 1"),
      make_bad_sample(Concat{}, {"f32[2]", "f16[2]"}, "one dtype is expected"),
      make_bad_sample(Concat{}, {"f32[2]", "f32[2, 1]"}, "but 1 dimensions are expected"),
      make_bad_sample(Concat{}, {"f32[]", "f32[]"}, "The axis 0 is given"),
  };
}

std::vector<Sample> Pad::samples() {
  return {
      make_sample(Pad{.low = {1, 0}, .high = {0, 2}}, {"f32[2, 3]"}),
      make_sample(Pad{.low = {2}, .high = {1}, .value = -1.5}, {"f32[3]"}),
      make_sample(Pad{.low = {1}, .high = {1}, .value = 7}, {"i32[3]"}),
      make_sample(Pad{.low = {0, 1}, .high = {0, 0}}, {"f32[2, tokens]"}, {{{"tokens", 0, 8}, 3}}),
  };
}

std::vector<BadSample> Pad::bad_samples() {
  return {
      make_bad_sample(Pad{.low = {-1}, .high = {0}}, {"f32[3]"}, "0 or more is expected"),
      make_bad_sample(Pad{.low = {1}, .high = {0}}, {"f32[3, 3]"}, "has 2 dimensions"),
      make_bad_sample(Pad{.low = {1}, .high = {0}, .value = 0.5}, {"i32[3]"},
                      "which i32 does not hold"),
  };
}

std::vector<Sample> Gather::samples() {
  const SampleInput ids = make_sample_input("i64[2, 3]", {0, 2, 1, -1, 3, 0});
  return {
      make_sample(Gather{}, {"f32[4, 5]", ids}),
      make_sample(Gather{.axis = 1}, {"f32[2, 4, 3]", ids}),
      make_sample(Gather{.axis = -1}, {"f32[2, 4]", make_sample_input("i32[]", {2})}),
      make_sample(Gather{}, {"i64[4]", make_sample_input("u8[3]", {3, 0, 0})}),
      make_sample(Gather{}, {"q8_0[4, 64]", ids}),
      make_sample(Gather{}, {"f16[6, 8]", make_sample_input("i64[1, tokens]", 0, 5)},
                  {{{"tokens", 1, 8}, 3}}),
  };
}

std::vector<BadSample> Gather::bad_samples() {
  return {
      make_bad_sample(Gather{}, {"f32[4]", "f32[2]"}, "an integer dtype is expected"),
      make_bad_sample(Gather{.axis = 1}, {"f32[4]", "i64[2]"}, "has axes -1 to 0"),
      make_bad_sample(Gather{.axis = 1}, {"q8_0[4, 32]", "i64[2]"}, "gathered along axis 0"),
  };
}

std::vector<Sample> Scatter::samples() {
  const SampleInput ids = make_sample_input("i64[2, 3]", {0, 2, 1, -1, 3, 0});
  std::vector<Sample> samples = {
      make_sample(Scatter{.axis = 1}, {"f32[2, 5]", ids, "f32[2, 3]"}),
      make_sample(Scatter{}, {"f32[4, 3]", make_sample_input("i32[1, 3]", {3, 0, 1}), "f32[1, 3]"}),
      make_sample(Scatter{}, {"bool[3]", make_sample_input("i64[1]", {1}), "bool[1]"}),
  };
  for (ScatterReduction reduction : {ScatterReduction::kAdd, ScatterReduction::kMul,
                                     ScatterReduction::kMin, ScatterReduction::kMax}) {
    samples.push_back(make_sample(
        Scatter{.axis = 1, .reduction = reduction},
        {"f32[2, 5]", make_sample_input("i64[2, 3]", {0, 2, 0, -1, 3, 3}), "f32[2, 3]"}));
  }
  return samples;
}

std::vector<BadSample> Scatter::bad_samples() {
  return {
      make_bad_sample(Scatter{}, {"f32[4]", "i64[2]", "f32[3]"}, "one shape is expected"),
      make_bad_sample(Scatter{.axis = 1}, {"f32[2, 5]", "i64[3, 5]", "f32[3, 5]"},
                      "may reach past the data"),
      make_bad_sample(Scatter{}, {"f32[4]", "f32[2]", "f32[2]"}, "an integer dtype is expected"),
      make_bad_sample(Scatter{}, {"f32[4]", "i64[2]", "f16[2]"}, "one dtype is expected"),
  };
}

std::vector<Sample> Iota::samples() {
  const Dim tokens = Dim::symbol("tokens"), past = Dim::symbol("past");
  return {
      make_sample(Iota{.shape = {5}}, {}),
      make_sample(Iota{.shape = {2, 3}, .axis = 1, .start = -4, .step = 3}, {}),
      make_sample(Iota{.shape = {tokens}, .start = past}, {},
                  {{{"tokens", 1, 8}, 3}, {{"past", 0, 8}, 4}}),
      make_sample(Iota{.shape = {3, 2}, .axis = -2, .step = -1, .dtype = DType::kF32}, {}),
      make_sample(Iota{.shape = {4}, .dtype = DType::kI32}, {}),
  };
}

std::vector<BadSample> Iota::bad_samples() {
  return {
      make_bad_sample(Iota{.shape = {}}, {}, "The axis 0 is given"),
      make_bad_sample(Iota{.shape = {2}, .dtype = DType::kBool}, {},
                      "a float or an integer is expected"),
      make_bad_sample(Iota{.shape = {-2}}, {}, "may be negative"),
  };
}

std::vector<Sample> TopK::samples() {
  const double nan = std::nan("");
  return {
      make_sample(TopK{.k = 3}, {"f32[2, 9]"}),
      make_sample(TopK{.k = 2, .axis = 0, .largest = false}, {"f32[5, 3]"}),
      make_sample(TopK{.k = 4}, {make_sample_input("f32[6]", {1, 3, nan, 3, 0, 3})}),
      make_sample(TopK{.k = 2}, {make_sample_input("i32[2, 5]", -3, 3)}),
      make_sample(TopK{.k = 2}, {"f32[tokens, 6]"}, {{{"tokens", 0, 8}, 2}}),
  };
}

std::vector<BadSample> TopK::bad_samples() {
  return {
      make_bad_sample(TopK{.k = 4}, {"f32[3]"}, "0 up to the extent 3"),
      make_bad_sample(TopK{.k = 1, .axis = 1}, {"f32[3]"}, "has axes -1 to 0"),
      make_bad_sample(TopK{.k = 1}, {"bool[3]"}, "dtype is expected"),
  };
}

std::vector<Sample> Sort::samples() {
  const double nan = std::nan("");
  return {
      make_sample(Sort{}, {"f32[2, 9]"}),
      make_sample(Sort{.axis = 0, .descending = true}, {"f32[5, 3]"}),
      make_sample(Sort{}, {make_sample_input("f32[6]", {1, 3, nan, 3, 0, 3})}),
      make_sample(Sort{.descending = true}, {make_sample_input("f32[6]", {1, 3, nan, 3, 0, 3})}),
      make_sample(Sort{}, {make_sample_input("i64[2, 7]", -3, 3)}),
  };
}

std::vector<BadSample> Sort::bad_samples() {
  return {
      make_bad_sample(Sort{.axis = 1}, {"f32[3]"}, "has axes -1 to 0"),
      make_bad_sample(Sort{}, {"bool[3]"}, "dtype is expected"),
  };
}

}  // namespace rlx
