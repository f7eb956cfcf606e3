#include "ops/attention.h"
#include "ops/samples.h"

namespace rlx {

std::vector<Sample> RopeTable::samples() {
  const SampleInput frequencies = make_sample_input("f32[4]", {1, 0.1, 0.01, 0.001});
  return {
      make_sample(RopeTable{}, {make_sample_input("i64[3]", {0, 1, 7}), frequencies}),
      make_sample(RopeTable{.scale = 1.2}, {make_sample_input("i64[2]", {5, 100}), frequencies}),
      make_sample(RopeTable{}, {make_sample_input("i64[tokens]", 0, 50), frequencies},
                  {{{"tokens", 1, 8}, 4}}),
  };
}

std::vector<BadSample> RopeTable::bad_samples() {
  return {
      make_bad_sample(RopeTable{}, {"i32[3]", "f32[4]"}, "but i64 is expected"),
      make_bad_sample(RopeTable{}, {"i64[1, 3]", "f32[4]"}, "but 1 dimensions are expected"),
      make_bad_sample(RopeTable{}, {"i64[3]", "f16[4]"}, "but f32 is expected"),
  };
}

std::vector<Sample> Rope::samples() {
  return {
      make_sample(Rope{}, {"f32[1, 3, 2, 8]", make_sample_input("f32[3, 8]", -1, 1)}),
      make_sample(Rope{}, {"f32[2, 3, 2, 8]", make_sample_input("f32[3, 4]", -1, 1)}),
      make_sample(Rope{.interleaved = true},
                  {"f32[1, 3, 2, 8]", make_sample_input("f32[3, 8]", -1, 1)}),
      make_sample(Rope{.interleaved = true},
                  {"f32[1, tokens, 2, 8]", make_sample_input("f32[tokens, 4]", -1, 1)},
                  {{{"tokens", 1, 16}, 5}}),
      make_sample(Rope{}, {"f32[1, tokens, 4, 64]", make_sample_input("f32[tokens, 64]", -1, 1)},
                  {{{"tokens", 1, 16}, 2}}),
  };
}

std::vector<BadSample> Rope::bad_samples() {
  return {
      make_bad_sample(Rope{}, {"f32[3, 2, 8]", "f32[3, 8]"}, "but 4 dimensions are expected"),
      make_bad_sample(Rope{}, {"f32[1, 3, 2, 8]", "f32[4, 8]"}, "the tokens of x"),
      make_bad_sample(Rope{}, {"f32[1, 3, 2, 8]", "f32[3, 10]"}, "an even number of columns"),
      make_bad_sample(Rope{}, {"f32[1, 3, 2, 8]", "f32[3, 3]"}, "an even number of columns"),
  };
}

std::vector<Sample> Attention::samples() {
  const std::vector<SampleSymbol> step = {{{"tokens", 1, 8}, 3}, {{"past", 0, 16}, 5}};
  const SampleInput mask = make_sample_input("bool[1, 1, 2, 3]", {1, 1, 0, 1, 0, 1});
  return {
      make_sample(Attention{}, {"f32[1, 3, 2, 8]", "f32[1, 3, 2, 8]", "f32[1, 3, 2, 8]"}),
      make_sample(Attention{}, {"f32[2, 3, 4, 8]", "f32[2, 5, 2, 8]", "f32[2, 5, 2, 6]"}),
      make_sample(
          Attention{},
          {"f32[1, tokens, 4, 8]", "f32[1, past + tokens, 2, 8]", "f32[1, past + tokens, 2, 8]"},
          step),
      make_sample(
          Attention{},
          {"f32[1, tokens, 4, 8]", "f16[1, past + tokens, 1, 8]", "f16[1, past + tokens, 1, 8]"},
          step),
      make_sample(Attention{.scale = 0.3, .window = 2, .soft_cap = 1.5},
                  {"f32[1, 4, 2, 8]", "f32[1, 6, 2, 8]", "f32[1, 6, 2, 8]"}),
      make_sample(Attention{.sinks = true},
                  {"f32[1, 3, 4, 8]", "f32[1, 5, 2, 8]", "f32[1, 5, 2, 8]", "f32[4]"}),
      make_sample(Attention{.causal = false, .mask = true},
                  {"f32[2, 2, 2, 8]", "f32[2, 3, 2, 8]", "f32[2, 3, 2, 8]", mask}),
      make_sample(Attention{.mask = true},
                  {"f32[1, 3, 2, 8]", "f32[1, 3, 1, 8]", "f32[1, 3, 1, 8]", "f32[2, 3, 3]"}),
      make_sample(Attention{.causal = false},
                  {"f32[1, 4, 2, 8]", "f32[1, 2, 2, 8]", "f32[1, 2, 2, 8]"}),
      make_sample(Attention{}, {"f32[2, 3, 4, 32]", "q8_0[2, 5, 2, 32]", "q8_0[2, 5, 2, 64]"}),
  };
}

std::vector<BadSample> Attention::bad_samples() {
  const std::string_view q = "f32[1, 4, 4, 8]", k = "f32[1, 4, 2, 8]";
  return {
      make_bad_sample(Attention{}, {q, "f32[1, 4, 3, 8]", "f32[1, 4, 3, 8]"},
                      "a multiple is expected"),
      make_bad_sample(Attention{}, {q, "f32[1, 4, 2, 4]", k}, "the head size of q"),
      make_bad_sample(Attention{}, {q, k, "f32[1, 5, 2, 8]"}, "the rows of k"),
      make_bad_sample(Attention{.mask = true}, {q, k, k}, "but 4 are expected"),
      make_bad_sample(Attention{.mask = true}, {q, k, k, "f32[5, 4]"}, "does not broadcast"),
      make_bad_sample(Attention{.sinks = true}, {q, k, k, "f32[2]"}, "one sink per head of q"),
      make_bad_sample(Attention{}, {q, "f32[1, 3, 2, 8]", "f32[1, 3, 2, 8]"},
                      "a key for each query"),
      make_bad_sample(Attention{.window = -1}, {q, k, k}, "finite values are expected"),
  };
}

std::vector<Sample> CacheAppend::samples() {
  const Dim past = Dim::symbol("past");
  const std::vector<SampleSymbol> step = {{{"tokens", 1, 8}, 3}, {{"past", 0, 16}, 5}};
  return {
      make_sample(CacheAppend{.row = 2}, {"f32[1, 6, 2, 4]", "f32[1, 3, 2, 4]"}),
      make_sample(CacheAppend{.row = 0, .axis = 0}, {"f16[4, 3]", "f32[4, 3]"}),
      make_sample(CacheAppend{.row = past}, {"f16[1, 16, 2, 4]", "f32[1, tokens, 2, 4]"}, step),
      make_sample(CacheAppend{.row = past, .axis = -2}, {"f32[2, 16, 4]", "f32[2, tokens, 4]"},
                  step),
  };
}

std::vector<BadSample> CacheAppend::bad_samples() {
  return {
      make_bad_sample(CacheAppend{}, {"f32[1, 6, 2]", "f32[1, 3, 4]"}, "the extent of the cache"),
      make_bad_sample(CacheAppend{.row = 4}, {"f32[1, 6]", "f32[1, 3]"}, "never has as many"),
      make_bad_sample(CacheAppend{.row = -1}, {"f32[1, 6]", "f32[1, 3]"}, "may be negative"),
      make_bad_sample(CacheAppend{}, {"i32[1, 6]", "i32[1, 3]"}, "a float dtype is expected"),
      make_bad_sample(CacheAppend{}, {"f32[1, 6]", "f32[1, 3, 1]"},
                      "but 2 dimensions are expected"),
      make_bad_sample(CacheAppend{}, {"q8_0[1, 6, 40]", "f32[1, 3, 40]"}, "whole blocks"),
      make_bad_sample(CacheAppend{.axis = 2}, {"q8_0[1, 6, 64]", "f32[1, 6, 32]"},
                      "no rows along its last axis"),
  };
}

}  // namespace rlx
