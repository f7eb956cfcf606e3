#include "passes/fuse_matmul_epilogue.h"

#include "ops/matmul.h"
#include "passes/pass_testing.h"

namespace rlx {
namespace {

// The weights and inputs that the cases below share.
std::string linear_frame(std::string_view body) {
  return "graph \"g\" {\n"
         "  %x = input \"x\" : f32[2, 8]\n"
         "  %r = input \"r\" : f32[2, 4]\n"
         "  %w = weight \"w\" : f32[4, 8]\n"
         "  %b = weight \"b\" : f32[4]\n" +
         std::string(body) + "}\n";
}
void expect(std::string_view before, std::string_view after,
            const PassContext& context = claim_all()) {
  const std::string output = "  output \"y\" %y\n";
  // A weight that nothing uses any more is gone from both.
  const Graph expected = parse_graph(linear_frame(std::string(after) + output));
  EXPECT_EQ(run_pass(fuse_matmul_epilogue, linear_frame(std::string(before) + output), context),
            to_string(expected));
}
void expect_same(std::string_view body, const PassContext& context = claim_all()) {
  expect_unchanged(fuse_matmul_epilogue, linear_frame(body), context);
}

TEST(FuseMatmulEpilogue, JoinsBiasActivationAndResidual) {
  expect(R"(  %0 = matmul(%x, %w) transpose_b=true : f32[2, 4]
  %1 = add(%0, %b) : f32[2, 4]
  %2 = silu(%1) : f32[2, 4]
  %y = add(%r, %2) : f32[2, 4]
)",
         R"(  %y = linear(%x, %w, %b, %r) bias=true residual=true activation=silu : f32[2, 4]
)");
}

TEST(FuseMatmulEpilogue, TakesTheLongestPartThatTheTargetClaims) {
  PassContext context;
  context.claims = [](const Op& op, std::span<const TensorType>, const SymbolTable&) {
    return op.is<Linear>() && !op.as<Linear>()->residual;
  };
  expect(R"(  %0 = matmul(%x, %w) transpose_b=true : f32[2, 4]
  %1 = add(%b, %0) : f32[2, 4]
  %2 = tanh(%1) : f32[2, 4]
  %y = add(%2, %r) : f32[2, 4]
)",
         R"(  %0 = linear(%x, %w, %b) bias=true activation=tanh : f32[2, 4]
  %y = add(%0, %r) : f32[2, 4]
)",
         context);
}

TEST(FuseMatmulEpilogue, TakesABiasWithLeadingOnes) {
  expect(R"(  %c = constant [1, 2, 3, 4] : f32[1, 4]
  %0 = matmul(%x, %w) transpose_b=true : f32[2, 4]
  %1 = add(%0, %c) : f32[2, 4]
  %2 = add(%1, %b) : f32[2, 4]
  %y = add(%2, %r) : f32[2, 4]
)",
         R"(  %c = constant [1, 2, 3, 4] : f32[1, 4]
  %0 = reshape(%c) shape=[4] : f32[4]
  %1 = linear(%x, %w, %0) bias=true : f32[2, 4]
  %2 = add(%1, %b) : f32[2, 4]
  %y = add(%2, %r) : f32[2, 4]
)");
}

TEST(FuseMatmulEpilogue, GivesTheSumOfTwoProductsToOneOfThem) {
  expect(R"(  %0 = matmul(%x, %w) transpose_b=true : f32[2, 4]
  %1 = matmul(%x, %w) transpose_b=true : f32[2, 4]
  %2 = add(%0, %1) : f32[2, 4]
  %3 = add(%2, %r) : f32[2, 4]
  %y = add(%3, %b) : f32[2, 4]
)",
         R"(  %0 = matmul(%x, %w) transpose_b=true : f32[2, 4]
  %1 = linear(%x, %w, %0) residual=true : f32[2, 4]
  %2 = add(%1, %r) : f32[2, 4]
  %y = add(%2, %b) : f32[2, 4]
)");
}

TEST(FuseMatmulEpilogue, KeepsAPlainProduct) {
  expect_same(R"(  %0 = matmul(%x, %w) transpose_b=true : f32[2, 4]
  %y = mul(%0, %r) : f32[2, 4]
  %1 = add(%y, %b) : f32[2, 4]
  output "y" %1
)");
}

TEST(FuseMatmulEpilogue, KeepsAnIntermediateThatIsAnOutput) {
  expect_same(R"(  %0 = matmul(%x, %w) transpose_b=true : f32[2, 4]
  %1 = add(%0, %b) : f32[2, 4]
  %2 = add(%1, %r) : f32[2, 4]
  output "y" %0
  output "z" %2
)");
}

TEST(FuseMatmulEpilogue, KeepsAnIntermediateThatIsUsedTwice) {
  expect_same(R"(  %0 = matmul(%x, %w) transpose_b=true : f32[2, 4]
  %1 = silu(%0) : f32[2, 4]
  %2 = add(%0, %b) : f32[2, 4]
  output "y" %1
  output "z" %2
  output "r" %r
)");
}

TEST(FuseMatmulEpilogue, KeepsAProductWithAWeightThatIsNotTransposed) {
  expect_same(R"(  %v = weight "v" : f32[8, 4]
  %0 = matmul(%x, %v) : f32[2, 4]
  %1 = add(%0, %b) : f32[2, 4]
  %2 = matmul(%1, %w) : f32[2, 8]
  output "y" %2
)");
}

TEST(FuseMatmulEpilogue, KeepsWhatTheTargetDoesNotClaim) {
  expect_same(R"(  %0 = matmul(%x, %w) transpose_b=true : f32[2, 4]
  %1 = add(%0, %b) : f32[2, 4]
  output "y" %1
)",
              claim_simple());
}

TEST(FuseMatmulEpilogue, KeepsAStateThatIsWrittenBeforeTheSum) {
  // The sum is the place where linear would read the state.
  expect_unchanged(fuse_matmul_epilogue, R"(graph "g" {
  %u = input "u" : f32[1, 8]
  %w = weight "w" : f32[8, 8]
  %s = state "s" : f32[4, 8]
  %0 = matmul(%s, %w) transpose_b=true : f32[4, 8]
  %1 = cache_append(%s, %u) row=3 axis=0 : f32[4, 8]
  %2 = relu(%0) : f32[4, 8]
  output "y" %2
  output "z" %1
}
)");
}

}  // namespace
}  // namespace rlx
