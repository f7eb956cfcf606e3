#include "passes/pipeline.h"

#include <gmock/gmock.h>

#include "passes/legalize.h"
#include "passes/pass_testing.h"
#include "passes/remove_dead_code.h"

namespace rlx {
namespace {

constexpr std::string_view kText = R"(graph "g" {
  %x = input "x" : f32[2, 4]
  %w = weight "w" : f32[4]
  %dead = neg(%x) : f32[2, 4]
  %y = rms_norm(%x, %w) : f32[2, 4]
  output "y" %y
}
)";

TEST(Pipeline, RefusesToDisableAnUnknownPassAndListsTheKnown) {
  try {
    run_pipeline(parse_graph(kText), default_pipeline(), claim_all(), {.disabled = {"fuse_all"}});
    FAIL() << "nothing is thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.what(), testing::HasSubstr("'fuse_all'"));
    EXPECT_THAT(error.what(), testing::HasSubstr("fuse_attention"));
    EXPECT_THAT(error.what(), testing::HasSubstr("legalize"));
  }
}

TEST(Pipeline, SkipsDisabledPassesWhereverTheyStand) {
  PipelineOptions options;
  options.disabled = {"remove_dead_code", "legalize"};
  const PipelineResult result =
      run_pipeline(parse_graph(kText), default_pipeline(), claim_simple(), options);
  for (const PassTiming& timing : result.timings) {
    EXPECT_NE(timing.name, "remove_dead_code");
    EXPECT_NE(timing.name, "legalize");
  }
  EXPECT_THAT(to_string(result.graph), testing::HasSubstr("rms_norm"));
}

TEST(Pipeline, ReportsWhatEachPassDid) {
  constexpr Pass kPasses[] = {{"remove_dead_code", remove_dead_code}, {"legalize", legalize}};
  const PipelineResult result = run_pipeline(parse_graph(kText), kPasses, claim_all());
  ASSERT_EQ(result.timings.size(), 2u);
  EXPECT_EQ(result.timings[0].name, "remove_dead_code");
  EXPECT_EQ(result.timings[0].nodes_before, 4);
  EXPECT_EQ(result.timings[0].nodes_after, 3);
  EXPECT_TRUE(result.timings[0].changed);
  EXPECT_GE(result.timings[0].milliseconds, 0);
  EXPECT_FALSE(result.timings[1].changed);
}

TEST(Pipeline, DumpsTheInputAndEachResult) {
  std::vector<std::string> names;
  PipelineOptions options;
  options.dump = [&](std::string_view pass, const Graph&) { names.emplace_back(pass); };
  constexpr Pass kPasses[] = {{"remove_dead_code", remove_dead_code}, {"legalize", legalize}};
  run_pipeline(parse_graph(kText), kPasses, claim_all(), options);
  EXPECT_THAT(names, testing::ElementsAre("input", "remove_dead_code", "legalize"));
}

Graph break_graph(const Graph& graph, const PassContext&) {
  Graph broken = graph;
  // The type is not what neg infers.
  broken.append(parse_graph(kText).node(2).op, {ValueId{0}}, {{DType::kF32, {7}}});
  return broken;
}

TEST(Pipeline, NamesThePassThatBreaksTheGraph) {
  constexpr Pass kPasses[] = {{"break_graph", break_graph}};
  try {
    run_pipeline(parse_graph(kText), kPasses, claim_all());
    FAIL() << "nothing is thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInternal);
    EXPECT_THAT(error.what(), testing::HasSubstr("after pass 'break_graph'"));
  }
  EXPECT_NO_THROW(run_pipeline(parse_graph(kText), kPasses, claim_all(), {.verify = false}));
}

Graph throw_always(const Graph&, const PassContext&) {
  throw_error(ErrorCode::kUnsupported, "This pass throws.");
}

TEST(Pipeline, NamesThePassThatThrows) {
  constexpr Pass kPasses[] = {{"throw_always", throw_always}};
  try {
    run_pipeline(parse_graph(kText), kPasses, claim_all());
    FAIL() << "nothing is thrown";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("in pass 'throw_always'"));
  }
}

// One block of a language model as an ONNX file would spell it, with a cache.
constexpr std::string_view kBlock = R"(graph "block" (1 <= tokens <= 8, past <= 56) {
  %x = input "x" : f32[1, tokens, 8]
  %mask = input "mask" : f32[tokens, past + tokens]
  %nw = weight "norm" : f32[8]
  %wq = weight "wq" : f32[8, 8]
  %wo = weight "wo" : f32[8, 8]
  %wg = weight "wg" : f32[16, 8]
  %wu = weight "wu" : f32[16, 8]
  %wd = weight "wd" : f32[8, 16]
  %two = constant [2] : f32[]
  %one = constant [1] : f32[]
  %half = constant [0.5] : f32[]
  %eps = constant [1e-06] : f32[]
  %kc = state "k" : f32[1, 64, 2, 4]
  %0 = pow(%x, %two) : f32[1, tokens, 8]
  %1 = reduce_mean(%0) axes=[-1] keep_dims=true : f32[1, tokens, 1]
  %2 = add(%1, %eps) : f32[1, tokens, 1]
  %3 = sqrt(%2) : f32[1, tokens, 1]
  %4 = div(%one, %3) : f32[1, tokens, 1]
  %5 = mul(%x, %4) : f32[1, tokens, 8]
  %n = mul(%nw, %5) : f32[1, tokens, 8]
  %6 = transpose(%wq) : f32[8, 8]
  %7 = matmul(%n, %6) : f32[1, tokens, 8]
  %8 = reshape(%7) shape=[1, tokens, 2, 4] : f32[1, tokens, 2, 4]
  %9 = cache_append(%kc, %8) row=(past) : f32[1, past + tokens, 2, 4]
  %10 = transpose(%8) permutation=[0, 2, 1, 3] : f32[1, 2, tokens, 4]
  %11 = transpose(%9) permutation=[0, 2, 3, 1] : f32[1, 2, 4, past + tokens]
  %12 = transpose(%9) permutation=[0, 2, 1, 3] : f32[1, 2, past + tokens, 4]
  %13 = matmul(%10, %11) : f32[1, 2, tokens, past + tokens]
  %14 = mul(%13, %half) : f32[1, 2, tokens, past + tokens]
  %15 = add(%14, %mask) : f32[1, 2, tokens, past + tokens]
  %16 = softmax(%15) : f32[1, 2, tokens, past + tokens]
  %17 = matmul(%16, %12) : f32[1, 2, tokens, 4]
  %18 = transpose(%17) permutation=[0, 2, 1, 3] : f32[1, tokens, 2, 4]
  %19 = reshape(%18) shape=[1, tokens, 8] : f32[1, tokens, 8]
  %20 = transpose(%wo) : f32[8, 8]
  %21 = matmul(%19, %20) : f32[1, tokens, 8]
  %h = add(%x, %21) : f32[1, tokens, 8]
  %22 = rms_norm(%h, %nw) : f32[1, tokens, 8]
  %23 = matmul(%22, %wg) transpose_b=true : f32[1, tokens, 16]
  %24 = matmul(%22, %wu) transpose_b=true : f32[1, tokens, 16]
  %25 = sigmoid(%23) : f32[1, tokens, 16]
  %26 = mul(%23, %25) : f32[1, tokens, 16]
  %27 = mul(%26, %24) : f32[1, tokens, 16]
  %28 = matmul(%27, %wd) transpose_b=true : f32[1, tokens, 8]
  %y = add(%h, %28) : f32[1, tokens, 8]
  output "y" %y
}
)";

TEST(Pipeline, FusesABlockOfALanguageModel) {
  const PipelineResult result = run_pipeline(parse_graph(kBlock), default_pipeline(), claim_all());
  EXPECT_EQ(to_string(result.graph), R"(graph "block" (1 <= tokens <= 8, past <= 56) {
  %x = input "x" : f32[1, tokens, 8]
  %mask = input "mask" : f32[tokens, past + tokens]
  %nw = weight "norm" : f32[8]
  %wq = weight "wq" : f32[8, 8]
  %wo = weight "wo" : f32[8, 8]
  %wg = weight "wg" : f32[16, 8]
  %wu = weight "wu" : f32[16, 8]
  %wd = weight "wd" : f32[8, 16]
  %kc = state "k" : f32[1, 64, 2, 4]
  %n = rms_norm(%x, %nw) : f32[1, tokens, 8]
  %0 = matmul(%n, %wq) transpose_b=true : f32[1, tokens, 8]
  %1 = reshape(%0) shape=[1, tokens, 2, 4] : f32[1, tokens, 2, 4]
  %2 = cache_append(%kc, %1) row=(past) : f32[1, past + tokens, 2, 4]
  %3 = attention(%1, %2, %2, %mask) scale=0.5 causal=false mask=true : f32[1, tokens, 2, 4]
  %4 = reshape(%3) shape=[1, tokens, 8] : f32[1, tokens, 8]
  %5 = matmul(%4, %wo) transpose_b=true : f32[1, tokens, 8]
  %h, %6 = add_rms_norm(%x, %5, %nw) : f32[1, tokens, 8], f32[1, tokens, 8]
  %7 = matmul(%6, %wg) transpose_b=true : f32[1, tokens, 16]
  %8 = matmul(%6, %wu) transpose_b=true : f32[1, tokens, 16]
  %9 = swiglu(%7, %8) : f32[1, tokens, 16]
  %y = linear(%9, %wd, %h) residual=true : f32[1, tokens, 8]
  output "y" %y
}
)");
}

TEST(Pipeline, GivesTheSameTextWhenItRunsTwice) {
  for (const PassContext& context : {claim_all(), claim_simple(), PassContext{}}) {
    const Graph once = run_pipeline(parse_graph(kBlock), default_pipeline(), context).graph;
    const Graph twice = run_pipeline(once, default_pipeline(), context).graph;
    EXPECT_EQ(to_string(twice), to_string(once));
  }
}

TEST(Pipeline, LeavesNothingIllegalOnATargetOfSimpleKernels) {
  const Graph graph = run_pipeline(parse_graph(kBlock), default_pipeline(), claim_simple()).graph;
  EXPECT_NO_THROW(check_legal(graph, claim_simple()));
}

}  // namespace
}  // namespace rlx
