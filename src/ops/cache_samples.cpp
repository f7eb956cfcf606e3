#include "ops/cache.h"
#include "ops/samples.h"

namespace rlx {
namespace {

SampleInput indices(std::string_view type, std::vector<double> values) {
  return make_sample_input(type, std::move(values));
}

}  // namespace

std::vector<Sample> CacheWrite::samples() {
  const std::vector<SampleSymbol> step = {{{"tokens", 1, 8}, 3}};
  return {
      make_sample(CacheWrite{},
                  {"f32[1, 6, 2, 4]", "f32[1, 3, 2, 4]", indices("i64[3]", {2, 3, 4})}),
      // Around the end, in a cache of just enough rows.
      make_sample(CacheWrite{.window = 3},
                  {"f32[1, 5, 2, 4]", "f32[1, tokens, 2, 4]", indices("i64[tokens]", {13, 14, 15})},
                  step),
      make_sample(CacheWrite{},
                  {"f16[3, 6, 2, 4]", "f32[1, tokens, 2, 4]", indices("i64[tokens]", {0, 5, 1}),
                   indices("i64[tokens]", {2, 0, 2})},
                  step),
      make_sample(CacheWrite{.window = 2},
                  {"bf16[2, 9, 8]", "f32[1, tokens, 8]", indices("i64[tokens]", {7, 100, 8}),
                   indices("i64[tokens]", {1, 0, 1})},
                  step),
  };
}

std::vector<BadSample> CacheWrite::bad_samples() {
  const std::string_view cache = "f32[2, 6, 2, 4]", update = "f32[1, 3, 2, 4]";
  return {
      make_bad_sample(CacheWrite{}, {cache, "f32[1, 3, 2, 5]", "i64[3]"},
                      "the extent of the cache"),
      make_bad_sample(CacheWrite{}, {cache, "f32[2, 3, 2, 4]", "i64[3]"}, "one run of tokens"),
      make_bad_sample(CacheWrite{}, {cache, update, "i64[4]"}, "a position for each token"),
      make_bad_sample(CacheWrite{}, {cache, update, "i32[3]"}, "but i64 is expected"),
      make_bad_sample(CacheWrite{}, {cache, update, "i64[3]", "i64[2]"}, "a text for each token"),
      make_bad_sample(CacheWrite{.window = -1}, {cache, update, "i64[3]"}, "0 or more is expected"),
      make_bad_sample(CacheWrite{}, {"q8_0[2, 6, 2, 32]", "i32[1, 3, 2, 32]", "i64[3]"},
                      "a float dtype is expected"),
      make_bad_sample(CacheWrite{}, {"f32[6, 4]", "f32[3, 4]", "i64[3]"}, "dimensions"),
  };
}

std::vector<Sample> CachedAttention::samples() {
  const std::vector<SampleSymbol> step = {{{"tokens", 1, 8}, 3}};
  return {
      make_sample(CachedAttention{}, {"f32[1, 3, 4, 8]", "f32[1, 6, 2, 8]", "f32[1, 6, 2, 6]",
                                      indices("i64[3]", {2, 3, 5})}),
      // A ring that has gone round many times.
      make_sample(CachedAttention{.scale = 0.3, .window = 3, .soft_cap = 1.5},
                  {"f32[1, tokens, 4, 8]", "f32[1, 5, 2, 8]", "f32[1, 5, 2, 8]",
                   indices("i64[tokens]", {103, 104, 105})},
                  step),
      make_sample(CachedAttention{.window = 70},
                  {"f32[1, tokens, 4, 8]", "f16[1, 72, 1, 8]", "f16[1, 72, 1, 8]",
                   indices("i64[tokens]", {1000, 1001, 1002})},
                  step),
      make_sample(CachedAttention{.texts = true},
                  {"f32[1, tokens, 4, 8]", "f32[3, 6, 2, 8]", "f32[3, 6, 2, 8]",
                   indices("i64[tokens]", {0, 4, 5}), indices("i64[tokens]", {2, 0, 0})},
                  step),
      make_sample(CachedAttention{.window = 2, .texts = true, .sinks = true},
                  {"f32[1, tokens, 4, 8]", "f32[3, 6, 2, 8]", "f32[3, 6, 2, 8]",
                   indices("i64[tokens]", {77, 4, 0}), indices("i64[tokens]", {1, 0, 2}), "f32[4]"},
                  step),
      make_sample(CachedAttention{},
                  {"f32[1, tokens, 4, 32]", "q8_0[1, 6, 2, 32]", "q8_0[1, 6, 2, 64]",
                   indices("i64[tokens]", {3, 4, 5})},
                  step),
  };
}

std::vector<BadSample> CachedAttention::bad_samples() {
  const std::string_view q = "f32[1, 3, 4, 8]", k = "f32[2, 6, 2, 8]";
  return {
      make_bad_sample(CachedAttention{}, {q, "f32[2, 6, 3, 8]", "f32[2, 6, 3, 8]", "i64[3]"},
                      "a multiple is expected"),
      make_bad_sample(CachedAttention{}, {q, "f32[2, 6, 2, 4]", k, "i64[3]"}, "the head size of q"),
      make_bad_sample(CachedAttention{}, {q, k, "f32[2, 5, 2, 8]", "i64[3]"}, "the extent of k"),
      make_bad_sample(CachedAttention{}, {q, k, k, "i64[2]"}, "a position for each token"),
      make_bad_sample(CachedAttention{.texts = true}, {q, k, k, "i64[3]"}, "but 5 are expected"),
      make_bad_sample(CachedAttention{.sinks = true}, {q, k, k, "i64[3]", "f32[2]"},
                      "one sink per head of q"),
      make_bad_sample(CachedAttention{}, {q, "q8_0[2, 6, 2, 8]", k, "i64[3]"}, "whole blocks"),
      make_bad_sample(CachedAttention{}, {"f64[1, 3, 4, 8]", k, k, "i64[3]"}, "computed in f32"),
      make_bad_sample(CachedAttention{.window = -1}, {q, k, k, "i64[3]"}, "0 or more is expected"),
  };
}

}  // namespace rlx
