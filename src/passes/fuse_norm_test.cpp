#include "passes/fuse_norm.h"

#include "passes/pass_testing.h"

namespace rlx {
namespace {

// Replaces the first `from` in the text, which must be there.
std::string with(std::string text, std::string_view from, std::string_view to) {
  const size_t place = text.find(from);
  EXPECT_NE(place, std::string::npos) << from;
  if (place != std::string::npos) text.replace(place, from.size(), to);
  return text;
}

const std::string kSpelled = R"(graph "g" {
  %x = input "x" : f32[2, 8]
  %w = weight "w" : f32[8]
  %eps = constant [1e-05] : f32[]
  %0 = mul(%x, %x) : f32[2, 8]
  %1 = reduce_mean(%0) axes=[-1] keep_dims=true : f32[2, 1]
  %2 = add(%1, %eps) : f32[2, 1]
  %3 = rsqrt(%2) : f32[2, 1]
  %4 = mul(%x, %3) : f32[2, 8]
  %y = mul(%4, %w) : f32[2, 8]
  output "y" %y
}
)";

const std::string kFused = R"(graph "g" {
  %x = input "x" : f32[2, 8]
  %w = weight "w" : f32[8]
  %y = rms_norm(%x, %w) eps=1e-05 : f32[2, 8]
  output "y" %y
}
)";

TEST(FuseNorm, WritesTheProductWithARootAsRmsNorm) { expect_changed(fuse_norm, kSpelled, kFused); }

TEST(FuseNorm, TakesOtherSpellings) {
  const std::string two = "  %two = constant [2] : f32[]\n  %0 = pow(%x, %two)";
  expect_changed(fuse_norm, with(kSpelled, "  %0 = mul(%x, %x)", two), kFused);
  expect_changed(fuse_norm, with(kSpelled, "mul(%x, %3)", "mul(%3, %x)"), kFused);
  expect_changed(fuse_norm, with(kSpelled, "mul(%4, %w)", "mul(%w, %4)"), kFused);
  expect_changed(fuse_norm, with(kSpelled, "add(%1, %eps)", "add(%eps, %1)"), kFused);
  const std::string root =
      with(with(kSpelled, "%3 = rsqrt", "%3 = sqrt"), "mul(%x, %3)", "div(%x, %3)");
  expect_changed(fuse_norm, root, kFused);
  const std::string inverse = "sqrt(%2) : f32[2, 1]\n  %5 = reciprocal(%3) : f32[2, 1]";
  expect_changed(
      fuse_norm,
      with(with(kSpelled, "rsqrt(%2) : f32[2, 1]", inverse), "mul(%x, %3)", "mul(%x, %5)"), kFused);
  const std::string power = "  %h = constant [-0.5] : f32[]\n  %3 = pow(%2, %h)";
  expect_changed(fuse_norm, with(kSpelled, "  %3 = rsqrt(%2)", power), kFused);
  const std::string mean =
      "  %n = constant [0.125] : f32[]\n"
      "  %s = reduce_sum(%0) axes=[1] keep_dims=true : f32[2, 1]\n"
      "  %1 = mul(%s, %n) : f32[2, 1]";
  expect_changed(
      fuse_norm,
      with(kSpelled, "  %1 = reduce_mean(%0) axes=[-1] keep_dims=true : f32[2, 1]", mean), kFused);
}

// A text as the parser and printer number its values.
std::string renumber(const std::string& text) { return to_string(parse_graph(text)); }

TEST(FuseNorm, KeepsWhatIsNoRmsNorm) {
  for (const std::string& text : {
           with(kSpelled, "mul(%x, %x)", "mul(%x, %w)"),           // no square
           with(kSpelled, "mul(%x, %3)", "mul(%0, %3)"),           // another numerator
           with(kSpelled, "reduce_mean", "reduce_max"),            // no mean
           with(kSpelled, "axes=[-1] keep_dims=true : f32[2, 1]",  // another axis
                "axes=[0] keep_dims=true : f32[1, 8]"),
       }) {
    std::string fixed = text;
    if (text.find("axes=[0]") != std::string::npos) {
      fixed = with(with(text, "add(%1, %eps) : f32[2, 1]", "add(%1, %eps) : f32[1, 8]"),
                   "rsqrt(%2) : f32[2, 1]", "rsqrt(%2) : f32[1, 8]");
    }
    expect_unchanged(fuse_norm, renumber(fixed));
  }
}

TEST(FuseNorm, KeepsANormOfWhichAPartIsAnOutput) {
  expect_unchanged(fuse_norm, with(kSpelled, "  output \"y\" %y\n",
                                   "  output \"y\" %y\n  output \"scale\" %3\n"));
}

TEST(FuseNorm, KeepsANormOfWhichAPartHasAnotherUser) {
  expect_unchanged(fuse_norm, renumber(with(kSpelled, "  output \"y\" %y\n",
                                            "  %5 = neg(%1) : f32[2, 1]\n  output \"y\" %y\n"
                                            "  output \"z\" %5\n")));
}

TEST(FuseNorm, KeepsWhatTheTargetDoesNotClaim) {
  expect_unchanged(fuse_norm, kSpelled, claim_simple());
}

TEST(FuseNorm, SeesThroughCastsToF32) {
  constexpr std::string_view kAfter = R"(graph "g" {
  %x = input "x" : f16[2, 8]
  %w = weight "w" : f16[8]
  %y = rms_norm(%x, %w) : f16[2, 8]
  output "y" %y
}
)";
  // The cast back stands before the product with the weight, or after it.
  expect_changed(fuse_norm,
                 R"(graph "g" {
  %x = input "x" : f16[2, 8]
  %w = weight "w" : f16[8]
  %eps = constant [1e-06] : f32[]
  %c = cast(%x) : f32[2, 8]
  %0 = mul(%c, %c) : f32[2, 8]
  %1 = reduce_mean(%0) axes=[-1] keep_dims=true : f32[2, 1]
  %2 = add(%1, %eps) : f32[2, 1]
  %3 = rsqrt(%2) : f32[2, 1]
  %4 = mul(%c, %3) : f32[2, 8]
  %5 = cast(%4) dtype=f16 : f16[2, 8]
  %y = mul(%w, %5) : f16[2, 8]
  output "y" %y
}
)",
                 kAfter);
  expect_changed(fuse_norm,
                 R"(graph "g" {
  %x = input "x" : f16[2, 8]
  %w = weight "w" : f16[8]
  %eps = constant [1e-06] : f32[]
  %c = cast(%x) : f32[2, 8]
  %0 = mul(%c, %c) : f32[2, 8]
  %1 = reduce_mean(%0) axes=[-1] keep_dims=true : f32[2, 1]
  %2 = add(%1, %eps) : f32[2, 1]
  %3 = rsqrt(%2) : f32[2, 1]
  %4 = mul(%c, %3) : f32[2, 8]
  %5 = cast(%w) : f32[8]
  %6 = mul(%4, %5) : f32[2, 8]
  %y = cast(%6) dtype=f16 : f16[2, 8]
  output "y" %y
}
)",
                 kAfter);
}

TEST(FuseNorm, WritesMeanAndVarianceAsLayerNorm) {
  expect_changed(fuse_norm,
                 R"(graph "g" {
  %x = input "x" : f32[2, 8]
  %w = weight "w" : f32[8]
  %b = weight "b" : f32[8]
  %eps = constant [1e-05] : f32[]
  %0 = reduce_mean(%x) axes=[-1] keep_dims=true : f32[2, 1]
  %1 = sub(%x, %0) : f32[2, 8]
  %2 = mul(%1, %1) : f32[2, 8]
  %3 = reduce_mean(%2) axes=[-1] keep_dims=true : f32[2, 1]
  %4 = add(%3, %eps) : f32[2, 1]
  %5 = sqrt(%4) : f32[2, 1]
  %6 = div(%1, %5) : f32[2, 8]
  %7 = mul(%6, %w) : f32[2, 8]
  %y = add(%7, %b) : f32[2, 8]
  output "y" %y
}
)",
                 R"(graph "g" {
  %x = input "x" : f32[2, 8]
  %w = weight "w" : f32[8]
  %b = weight "b" : f32[8]
  %y = layer_norm(%x, %w, %b) : f32[2, 8]
  output "y" %y
}
)");
}

TEST(FuseNorm, JoinsASumAndItsNorm) {
  expect_changed(fuse_norm,
                 R"(graph "g" {
  %x = input "x" : f32[2, 8]
  %z = input "z" : f32[2, 8]
  %s = add(%x, %z) : f32[2, 8]
  %0 = exp(%s) : f32[2, 8]
  %w = weight "w" : f32[8]
  %n = rms_norm(%s, %w) : f32[2, 8]
  %y = add(%0, %n) : f32[2, 8]
  output "y" %y
}
)",
                 R"(graph "g" {
  %x = input "x" : f32[2, 8]
  %z = input "z" : f32[2, 8]
  %w = weight "w" : f32[8]
  %s, %n = add_rms_norm(%x, %z, %w) : f32[2, 8], f32[2, 8]
  %0 = exp(%s) : f32[2, 8]
  %y = add(%0, %n) : f32[2, 8]
  output "y" %y
}
)");
}

TEST(FuseNorm, JoinsASumOfAValueWithItself) {
  expect_changed(fuse_norm,
                 R"(graph "g" {
  %x = input "x" : f32[2, 8]
  %w = weight "w" : f32[8]
  %s = add(%x, %x) : f32[2, 8]
  %n = rms_norm(%s, %w) : f32[2, 8]
  output "s" %s
  output "n" %n
}
)",
                 R"(graph "g" {
  %x = input "x" : f32[2, 8]
  %w = weight "w" : f32[8]
  %s, %n = add_rms_norm(%x, %x, %w) : f32[2, 8], f32[2, 8]
  output "s" %s
  output "n" %n
}
)");
}

TEST(FuseNorm, KeepsASumThatOnlyItsNormUses) {
  expect_unchanged(fuse_norm, R"(graph "g" {
  %x = input "x" : f32[2, 8]
  %w = weight "w" : f32[8]
  %s = add(%x, %x) : f32[2, 8]
  %n = rms_norm(%s, %w) : f32[2, 8]
  output "n" %n
}
)");
}

TEST(FuseNorm, KeepsASumWhoseWeightIsComputedLater) {
  expect_unchanged(fuse_norm, R"(graph "g" {
  %x = input "x" : f32[2, 8]
  %w = weight "w" : f32[8]
  %s = add(%x, %x) : f32[2, 8]
  %0 = exp(%w) : f32[8]
  %n = rms_norm(%s, %0) : f32[2, 8]
  output "s" %s
  output "n" %n
}
)");
}

TEST(FuseNorm, KeepsASumThatStretches) {
  expect_unchanged(fuse_norm, R"(graph "g" {
  %x = input "x" : f32[2, 8]
  %w = weight "w" : f32[8]
  %s = add(%x, %w) : f32[2, 8]
  %n = rms_norm(%s, %w) : f32[2, 8]
  output "s" %s
  output "n" %n
}
)");
}

}  // namespace
}  // namespace rlx
