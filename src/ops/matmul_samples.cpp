#include "ops/matmul.h"
#include "ops/samples.h"

namespace rlx {

std::vector<Sample> Matmul::samples() {
  const Matmul transposed{.transpose_b = true};
  return {
      make_sample(Matmul{}, {"f32[3, 4]", "f32[4, 5]"}),
      make_sample(transposed, {"f32[3, 40]", "f32[6, 40]"}),
      make_sample(transposed, {"f32[1, 64]", "f32[48, 64]"}),
      make_sample(Matmul{.transpose_a = true}, {"f32[2, 4, 3]", "f32[2, 4, 5]"}),
      make_sample(Matmul{.transpose_a = true, .transpose_b = true}, {"f32[4, 3]", "f32[5, 4]"}),
      make_sample(Matmul{}, {"f32[2, 1, 3, 4]", "f32[5, 4, 2]"}),
      make_sample(transposed, {"f32[2, tokens, 8]", "f32[6, 8]"}, {{{"tokens", 1, 16}, 7}}),
      make_sample(transposed, {"f32[tokens, 8]", "f32[past + tokens, 8]"},
                  {{{"tokens", 1, 16}, 3}, {{"past", 0, 16}, 4}}),
      make_sample(transposed, {"f32[3, 32]", "f16[5, 32]"}),
      make_sample(transposed, {"f32[3, 32]", "bf16[5, 32]"}),
      make_sample(transposed, {"f32[3, 64]", "q8_0[5, 64]"}),
      make_sample(Matmul{}, {"f32[3, 0]", "f32[0, 2]"}),
      make_sample(Matmul{},
                  {make_sample_input("i32[2, 3]", -9, 9), make_sample_input("i32[3, 4]", -9, 9)}),
  };
}

std::vector<BadSample> Matmul::bad_samples() {
  return {
      make_bad_sample(Matmul{}, {"f32[3, 4]", "f32[5, 4]"}, "contracts an extent 4 with 5"),
      make_bad_sample(Matmul{}, {"f32[4]", "f32[4, 5]"}, "at least 2 dimensions are expected"),
      make_bad_sample(Matmul{}, {"f32[3, 32]", "q8_0[32, 32]"}, "needs transpose_b=true"),
      make_bad_sample(Matmul{.transpose_b = true}, {"i32[3, 32]", "q8_0[32, 32]"},
                      "a float dtype is expected"),
      make_bad_sample(Matmul{}, {"i32[3, 4]", "i64[4, 4]"}, "one dtype is expected"),
      make_bad_sample(Matmul{}, {"f32[2, 3, 4]", "f32[3, 4, 5]"}, "do not broadcast"),
  };
}

std::vector<Sample> Linear::samples() {
  std::vector<Sample> samples = {
      make_sample(Linear{}, {"f32[3, 8]", "f32[5, 8]"}),
      make_sample(Linear{.bias = true}, {"f32[2, 3, 8]", "f32[5, 8]", "f32[5]"}),
      make_sample(Linear{.residual = true}, {"f32[3, 8]", "f32[5, 8]", "f32[3, 5]"}),
      make_sample(Linear{.bias = true}, {"f32[3, 64]", "q8_0[5, 64]", "f16[5]"}),
      make_sample(Linear{.residual = true}, {"f32[1, tokens, 8]", "f32[5, 8]", "f32[1, tokens, 5]"},
                  {{{"tokens", 1, 16}, 4}}),
  };
  for (Activation activation : {Activation::kRelu, Activation::kGelu, Activation::kGeluTanh,
                                Activation::kSilu, Activation::kSigmoid, Activation::kTanh}) {
    samples.push_back(make_sample(Linear{.bias = true, .residual = true, .activation = activation},
                                  {"f32[3, 8]", "f32[5, 8]", "f32[5]", "f32[3, 5]"}));
  }
  return samples;
}

std::vector<BadSample> Linear::bad_samples() {
  return {
      make_bad_sample(Linear{.bias = true}, {"f32[3, 8]", "f32[5, 8]"}, "but 3 are expected"),
      make_bad_sample(Linear{}, {"f32[3, 8]", "f32[8, 5]"}, "the extent 8 is expected at axis 1"),
      make_bad_sample(Linear{.bias = true}, {"f32[3, 8]", "f32[5, 8]", "f32[8]"},
                      "one bias per row of w"),
      make_bad_sample(Linear{.residual = true}, {"f32[3, 8]", "f32[5, 8]", "f32[3, 8]"},
                      "but the output's type f32[3, 5] is expected"),
  };
}

std::vector<Sample> GroupedMatmul::samples() {
  const SampleInput ids = make_sample_input("i64[3, 2]", {0, 3, 2, 2, 1, 0});
  const SampleInput ids32 = make_sample_input("i32[3, 2]", {0, 3, 2, 2, 1, 0});
  return {
      make_sample(GroupedMatmul{}, {"f32[3, 8]", "f32[4, 5, 8]", ids}),
      make_sample(GroupedMatmul{}, {"f32[3, 2, 8]", "f32[4, 5, 8]", ids32}),
      make_sample(GroupedMatmul{}, {"f32[3, 64]", "q8_0[4, 5, 64]", ids}),
      make_sample(GroupedMatmul{},
                  {"f32[tokens, 8]", "f32[4, 5, 8]", make_sample_input("i64[tokens, 2]", 0, 3)},
                  {{{"tokens", 1, 16}, 3}}),
  };
}

std::vector<BadSample> GroupedMatmul::bad_samples() {
  return {
      make_bad_sample(GroupedMatmul{}, {"f32[3, 8]", "f32[4, 5, 8]", "f32[3, 2]"},
                      "but i64 or i32 is expected"),
      make_bad_sample(GroupedMatmul{}, {"f32[3, 8]", "f32[4, 5, 9]", "i64[3, 2]"},
                      "the last extent of x"),
      make_bad_sample(GroupedMatmul{}, {"f32[4, 8]", "f32[4, 5, 8]", "i64[3, 2]"},
                      "the tokens of expert_ids"),
  };
}

}  // namespace rlx
