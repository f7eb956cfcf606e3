#include "ops/reduce.h"
#include "ops/samples.h"

namespace rlx {
namespace {

// The same uses for all reductions: one axis, several, all, kept, symbolic, integers.
template <typename T>
std::vector<Sample> make_reduce_samples(bool with_integers) {
  std::vector<Sample> samples = {
      make_sample(T{.axes = {-1}}, {"f32[3, 37]"}),
      make_sample(T{.axes = {0}, .keep_dims = true}, {"f32[5, 6]"}),
      make_sample(T{.axes = {0, -1}}, {"f32[2, 3, 4]"}),
      make_sample(T{}, {"f32[2, 3, 4]"}),
      make_sample(T{.axes = {1}}, {"f32[2, tokens, 3]"}, {{{"tokens", 1, 16}, 5}}),
  };
  if (with_integers) {
    samples.push_back(make_sample(T{.axes = {1}}, {make_sample_input("i32[3, 5]", -9, 9)}));
    samples.push_back(make_sample(T{.axes = {1}}, {make_sample_input("i64[3, 5]", -9, 9)}));
  }
  return samples;
}

template <typename T>
std::vector<BadSample> make_reduce_bad_samples() {
  return {
      make_bad_sample(T{.axes = {2}}, {"f32[2, 3]"}, "has axes -2 to 1"),
      make_bad_sample(T{.axes = {1, -1}}, {"f32[2, 3]"}, "is listed twice"),
      make_bad_sample(T{}, {"bool[2, 3]"}, "dtype is expected"),
  };
}

template <typename T>
std::vector<Sample> make_arg_samples() {
  return {
      make_sample(T{}, {"f32[3, 17]"}),
      make_sample(T{.axis = 0, .keep_dims = true}, {"f32[5, 4]"}),
      make_sample(T{.axis = 1}, {"f32[2, 6, 3]"}),
      make_sample(T{.axis = 0}, {make_sample_input("f32[6]", {1, 3, 3, 0, 0, 2})}),
      make_sample(T{.axis = 0, .select_last = true},
                  {make_sample_input("f32[6]", {1, 3, 3, 0, 0, 2})}),
      make_sample(T{}, {make_sample_input("i32[3, 8]", -3, 3)}),
      make_sample(T{}, {"f32[tokens, 9]"}, {{{"tokens", 1, 16}, 2}}),
  };
}

template <typename T>
std::vector<BadSample> make_arg_bad_samples() {
  return {
      make_bad_sample(T{.axis = 2}, {"f32[2, 3]"}, "has axes -2 to 1"),
      make_bad_sample(T{.axis = 1}, {"f32[2, 0]"}, "at least one element is expected"),
      make_bad_sample(T{}, {"bool[2]"}, "dtype is expected"),
  };
}

}  // namespace

std::vector<Sample> ReduceSum::samples() { return make_reduce_samples<ReduceSum>(true); }
std::vector<BadSample> ReduceSum::bad_samples() { return make_reduce_bad_samples<ReduceSum>(); }

std::vector<Sample> ReduceMean::samples() { return make_reduce_samples<ReduceMean>(false); }
std::vector<BadSample> ReduceMean::bad_samples() {
  std::vector<BadSample> samples = make_reduce_bad_samples<ReduceMean>();
  samples.push_back(make_bad_sample(ReduceMean{}, {"i32[2]"}, "a float dtype is expected"));
  return samples;
}

std::vector<Sample> ReduceMax::samples() { return make_reduce_samples<ReduceMax>(true); }
std::vector<BadSample> ReduceMax::bad_samples() { return make_reduce_bad_samples<ReduceMax>(); }

std::vector<Sample> ReduceMin::samples() { return make_reduce_samples<ReduceMin>(true); }
std::vector<BadSample> ReduceMin::bad_samples() { return make_reduce_bad_samples<ReduceMin>(); }

std::vector<Sample> ReduceProd::samples() { return make_reduce_samples<ReduceProd>(true); }
std::vector<BadSample> ReduceProd::bad_samples() { return make_reduce_bad_samples<ReduceProd>(); }

std::vector<Sample> Argmax::samples() { return make_arg_samples<Argmax>(); }
std::vector<BadSample> Argmax::bad_samples() { return make_arg_bad_samples<Argmax>(); }

std::vector<Sample> Argmin::samples() { return make_arg_samples<Argmin>(); }
std::vector<BadSample> Argmin::bad_samples() { return make_arg_bad_samples<Argmin>(); }

std::vector<Sample> CumulativeSum::samples() {
  return {
      make_sample(CumulativeSum{}, {"f32[7]"}),
      make_sample(CumulativeSum{.axis = 1}, {"f32[2, 5, 3]"}),
      make_sample(CumulativeSum{.axis = -1, .exclusive = true}, {"f32[2, 5]"}),
      make_sample(CumulativeSum{.axis = -1, .reverse = true}, {"f32[2, 5]"}),
      make_sample(CumulativeSum{.axis = 0, .exclusive = true, .reverse = true},
                  {make_sample_input("i64[5, 2]", -9, 9)}),
      make_sample(CumulativeSum{.axis = 1}, {"f32[2, tokens]"}, {{{"tokens", 0, 16}, 6}}),
  };
}

std::vector<BadSample> CumulativeSum::bad_samples() {
  return {
      make_bad_sample(CumulativeSum{.axis = 1}, {"f32[2]"}, "has axes -1 to 0"),
      make_bad_sample(CumulativeSum{}, {"bool[2]"}, "dtype is expected"),
  };
}

}  // namespace rlx
