#include "passes/fuse_swiglu.h"

#include "passes/pass_testing.h"

namespace rlx {
namespace {

void expect(std::string_view before, std::string_view after) {
  expect_changed_in_frame(fuse_swiglu, before, after);
}
void expect_same(std::string_view body, const PassContext& context = claim_all()) {
  expect_unchanged_in_frame(fuse_swiglu, body, context);
}

TEST(FuseSwiglu, JoinsAProductWithASigmoid) {
  expect_changed(fuse_swiglu,
                 R"(graph "g" {
  %gate = input "gate" : f32[2, 8]
  %up = input "up" : f32[2, 8]
  %0 = sigmoid(%gate) : f32[2, 8]
  %1 = mul(%gate, %0) : f32[2, 8]
  %y = mul(%1, %up) : f32[2, 8]
  output "y" %y
}
)",
                 R"(graph "g" {
  %gate = input "gate" : f32[2, 8]
  %up = input "up" : f32[2, 8]
  %y = swiglu(%gate, %up) : f32[2, 8]
  output "y" %y
}
)");
}

TEST(FuseSwiglu, JoinsEachActivation) {
  expect(R"(  %0 = silu(%x) : f32[2, 4]
  %y = mul(%z, %0) : f32[2, 4]
)",
         R"(  %y = swiglu(%x, %z) : f32[2, 4]
)");
  expect(R"(  %0 = gelu(%x) approximate=tanh : f32[2, 4]
  %y = mul(%0, %z) : f32[2, 4]
)",
         R"(  %y = geglu(%x, %z) approximate=tanh : f32[2, 4]
)");
  expect(R"(  %0 = relu(%x) : f32[2, 4]
  %y = mul(%0, %w) : f32[2, 4]
)",
         R"(  %y = reglu(%x, %w) : f32[2, 4]
)");
}

TEST(FuseSwiglu, KeepsAnActivationThatIsUsedAgain) {
  expect_same(R"(  %0 = silu(%x) : f32[2, 4]
  %1 = mul(%0, %z) : f32[2, 4]
  %y = add(%1, %0) : f32[2, 4]
)");
}

TEST(FuseSwiglu, KeepsAnActivationThatIsAnOutput) {
  expect_unchanged(fuse_swiglu, R"(graph "g" {
  %x = input "x" : f32[4]
  %a = silu(%x) : f32[4]
  %y = mul(%a, %x) : f32[4]
  output "a" %a
  output "y" %y
}
)");
}

TEST(FuseSwiglu, KeepsASquaredActivation) {
  expect_same(R"(  %0 = relu(%x) : f32[2, 4]
  %y = mul(%0, %0) : f32[2, 4]
)");
}

TEST(FuseSwiglu, KeepsAnActivationThatIsStretched) {
  expect_same(R"(  %0 = silu(%w) : f32[4]
  %y = mul(%0, %x) : f32[2, 4]
)");
}

TEST(FuseSwiglu, KeepsOtherSigmoids) {
  expect_same(R"(  %0 = sigmoid(%x) : f32[2, 4]
  %y = mul(%0, %z) : f32[2, 4]
)");
}

TEST(FuseSwiglu, KeepsWhatTheTargetDoesNotClaim) {
  expect_same(R"(  %0 = silu(%x) : f32[2, 4]
  %y = mul(%0, %z) : f32[2, 4]
)",
              claim_simple());
}

}  // namespace
}  // namespace rlx
