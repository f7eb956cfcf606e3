#include "ops/samples.h"
#include "ops/view.h"

namespace rlx {

std::vector<Sample> Reshape::samples() {
  const Dim tokens = Dim::symbol("tokens"), past = Dim::symbol("past");
  return {
      make_sample(Reshape{.shape = {6, 2}}, {"f32[3, 4]"}),
      make_sample(Reshape{.shape = {2, -1, 1}}, {"f32[3, 4]"}),
      make_sample(Reshape{.shape = {}}, {"f32[1, 1]"}),
      make_sample(Reshape{.shape = {1, tokens, 4, 2}}, {"f32[1, tokens, 8]"},
                  {{{"tokens", 1, 16}, 3}}),
      make_sample(Reshape{.shape = {past + tokens, -1}}, {"f32[1, past + tokens, 4, 2]"},
                  {{{"tokens", 1, 16}, 3}, {{"past", 0, 16}, 2}}),
      make_sample(Reshape{.shape = {4, 3}}, {"i64[12]"}),
  };
}

std::vector<BadSample> Reshape::bad_samples() {
  return {
      make_bad_sample(Reshape{.shape = {5}}, {"f32[2, 3]"}, "has 6 elements, but the shape [5]"),
      make_bad_sample(Reshape{.shape = {4, -1}}, {"f32[2, 3]"}, "do not divide"),
      make_bad_sample(Reshape{.shape = {-1, -1}}, {"f32[2, 3]"}, "at most one extent may be -1"),
      make_bad_sample(Reshape{.shape = {-2, -3}}, {"f32[2, 3]"}, "may be negative"),
      make_bad_sample(Reshape{.shape = {64}}, {"q8_0[2, 32]"}, "must keep the last axis"),
  };
}

std::vector<Sample> Transpose::samples() {
  return {
      make_sample(Transpose{}, {"f32[3, 4]"}),
      make_sample(Transpose{.permutation = {0, 2, 1, 3}}, {"f32[2, 3, 4, 5]"}),
      make_sample(Transpose{.permutation = {2, 0, 1}}, {"f32[2, 3, 4]"}),
      make_sample(Transpose{.permutation = {1, 0, 2}}, {"f32[2, tokens, 3]"},
                  {{{"tokens", 0, 16}, 5}}),
      make_sample(Transpose{}, {"i32[3, 2]"}),
  };
}

std::vector<BadSample> Transpose::bad_samples() {
  return {
      make_bad_sample(Transpose{.permutation = {0, 0}}, {"f32[2, 3]"}, "each axis 0 to 1 once"),
      make_bad_sample(Transpose{.permutation = {0}}, {"f32[2, 3]"}, "each axis 0 to 1 once"),
      make_bad_sample(Transpose{}, {"q8_0[2, 32]"}, "must keep the last axis"),
  };
}

std::vector<Sample> Broadcast::samples() {
  const Dim tokens = Dim::symbol("tokens");
  return {
      make_sample(Broadcast{.shape = {2, 3}}, {"f32[3]"}),
      make_sample(Broadcast{.shape = {2, 3, 4}}, {"f32[3, 1]"}),
      make_sample(Broadcast{.shape = {2, 2}}, {"f32[]"}),
      make_sample(Broadcast{.shape = {tokens, 4}}, {"f32[1, 4]"}, {{{"tokens", 0, 16}, 3}}),
  };
}

std::vector<BadSample> Broadcast::bad_samples() {
  return {
      make_bad_sample(Broadcast{.shape = {2, 4}}, {"f32[3]"}, "does not broadcast to [2, 4]"),
      make_bad_sample(Broadcast{.shape = {4}}, {"f32[1, 4]"}, "does not broadcast to [4]"),
      make_bad_sample(Broadcast{.shape = {-1}}, {"f32[1]"}, "may be negative"),
  };
}

std::vector<Sample> Slice::samples() {
  const Dim tokens = Dim::symbol("tokens");
  return {
      make_sample(Slice{.starts = {1, 0}, .sizes = {2, 4}}, {"f32[3, 4]"}),
      make_sample(Slice{.starts = {0, 1}, .sizes = {3, 3}, .steps = {1, 2}}, {"f32[3, 6]"}),
      make_sample(Slice{.starts = {3}, .sizes = {0}}, {"f32[3]"}),
      make_sample(Slice{.starts = {0, tokens - 1, 0}, .sizes = {1, 1, 4}}, {"f32[1, tokens, 4]"},
                  {{{"tokens", 1, 16}, 5}}),
      make_sample(Slice{.starts = {0, 0}, .sizes = {tokens, 2}}, {"i64[16, 4]"},
                  {{{"tokens", 0, 16}, 5}}),
      make_sample(Slice{.starts = {}, .sizes = {}}, {"f32[]"}),
  };
}

std::vector<BadSample> Slice::bad_samples() {
  return {
      make_bad_sample(Slice{.starts = {2}, .sizes = {2}}, {"f32[3]"}, "may lie outside axis 0"),
      make_bad_sample(Slice{.starts = {-1}, .sizes = {1}}, {"f32[3]"}, "may lie outside axis 0"),
      make_bad_sample(Slice{.starts = {0}, .sizes = {1}}, {"f32[3, 4]"},
                      "one per axis is expected"),
      make_bad_sample(Slice{.starts = {0}, .sizes = {1}, .steps = {-1}}, {"f32[3]"},
                      "1 or more is expected"),
      make_bad_sample(Slice{.starts = {0, 16}, .sizes = {2, 32}}, {"q8_0[2, 64]"},
                      "must take whole blocks of 32"),
  };
}

}  // namespace rlx
