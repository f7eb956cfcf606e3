// What the compiler promises of a program's memory, on small graphs written as text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/cpu/session.h"
#include "compiler/compile.h"
#include "ops/registry.h"
#include "program/slots.h"
#include "runtime/arena.h"

namespace rlx {
namespace {

using testing::HasSubstr;

Program compile_text(std::string_view text, const CompileOptions& options = {}) {
  return compile(parse_graph(text), cpu::CpuTarget({.max_threads = 2}), options).program;
}

const ProgramValue& find(const Program& program, const std::string& name) {
  for (const ProgramValue& value : program.values) {
    if (value.name == "%" + name) return value;
  }
  throw Error(ErrorCode::kNotFound, name);
}

TEST(Lowering, WritesAnElementwiseResultOverAnInputThatDies) {
  const Program program = compile_text(R"(graph "g" {
  %x = input "x" : f32[64, 64]
  %y = exp(%x) : f32[64, 64]
  %z = cumulative_sum(%y) : f32[64, 64]
  %w = exp(%z) : f32[64, 64]
  %v = cumulative_sum(%w) : f32[64, 64]
  output "v" %v
}
)");
  EXPECT_EQ(find(program, "w").offset_bytes, find(program, "z").offset_bytes);
}

TEST(Lowering, NeverWritesOverAValueThatIsReadLater) {
  const Program program = compile_text(R"(graph "g" {
  %x = input "x" : f32[64, 64]
  %y = cumulative_sum(%x) : f32[64, 64]
  %z = exp(%y) : f32[64, 64]
  %s = cumulative_sum(%z) : f32[64, 64]
  %t = add(%s, %y) : f32[64, 64]
  output "t" %t
}
)");
  EXPECT_NE(find(program, "z").offset_bytes, find(program, "y").offset_bytes);
}

TEST(Lowering, KeepsInputsAndOutputsApartFromWork) {
  const Program program = compile_text(R"(graph "g" {
  %x = input "x" : f32[8]
  %y = exp(%x) : f32[8]
  output "x" %x
  output "y" %y
  output "again" %y
}
)");
  ASSERT_EQ(program.outputs.size(), 3u);
  EXPECT_NE(program.outputs[0].value, program.inputs[0].value);
  for (const NamedValue& output : program.outputs) {
    EXPECT_EQ(program.values[output.value].segment, Segment::kIo);
  }
}

TEST(Lowering, ReadsAStatesNewContentAfterAnUpdate) {
  auto program = std::make_shared<const Program>(compile_text(R"(graph "g" {
  %u = input "u" : f32[1, 1, 2]
  %s = state "s" : f32[1, 2, 2]
  %c = cache_append(%s, %u) row=1 : f32[1, 2, 2]
  %t = add(%s, %s) : f32[1, 2, 2]
  output "c" %c
  output "t" %t
}
)"));
  const auto session = cpu::make_session(program, nullptr, std::make_shared<ThreadPool>(1),
                                         {.max_threads = 2}, {.poison = true});
  session->arena().write<float>(program->inputs[0].value, std::vector<float>{1, 1});
  ASSERT_TRUE(session->run().ok);
  EXPECT_THAT(session->arena().span<float>(program->outputs[1].value),
              testing::ElementsAre(0, 0, 2, 2));
}

TEST(Lowering, RefusesToReadAViewOfAStateAfterAnUpdate) {
  try {
    compile_text(R"(graph "g" {
  %u = input "u" : f32[1, 1, 4]
  %s = state "s" : f32[1, 8, 4]
  %v = slice(%s) starts=[0, 0, 0] sizes=[1, 2, 4] : f32[1, 2, 4]
  %c = cache_append(%s, %u) row=0 : f32[1, 1, 4]
  %t = exp(%v) : f32[1, 2, 4]
  output "c" %c
  output "t" %t
}
)");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("used afterwards"));
  }
}

TEST(Lowering, PlansScratchInsideTheWorkSegment) {
  const Program program = compile_text(R"(graph "g" {
  %x = input "x" : f16[64, 64]
  %w = input "w" : f16[64, 64]
  %y = matmul(%x, %w) : f16[64, 64]
  output "y" %y
}
)");
  bool has_scratch = false;
  for (const Instruction& instruction : program.instructions) {
    has_scratch = has_scratch || instruction.scratch_bytes > 0;
    EXPECT_LE(instruction.scratch_offset_bytes + instruction.scratch_bytes,
              program.plan.segment(Segment::kWork).size_bytes);
  }
  EXPECT_TRUE(has_scratch);
  check_slots(list_slots(program));
}

TEST(Lowering, SizesHalfPrecisionValuesByTheirOwnWidth) {
  const Program program = compile_text(R"(graph "g" {
  %x = input "x" : f16[1024]
  %y = exp(%x) : f16[1024]
  output "y" %y
}
)");
  EXPECT_EQ(program.values[program.inputs[0].value].size_bytes, 2048);
  EXPECT_EQ(program.values[program.outputs[0].value].size_bytes, 2048);
}

TEST(Lowering, GivesTheSamePlanEveryTime) {
  const std::string text = R"(graph "g" (tokens <= 32) {
  %x = input "x" : f32[tokens, 16]
  %a = softmax(%x) : f32[tokens, 16]
  %b = cumulative_sum(%x) : f32[tokens, 16]
  %c = mul(%a, %b) : f32[tokens, 16]
  %d = softmax(%c) : f32[tokens, 16]
  output "d" %d
}
)";
  const std::string first = to_string(compile_text(text));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(to_string(compile_text(text)), first);
}

TEST(Lowering, APlanForSmallerBoundsNeverCostsMore) {
  int64_t last = 0;
  for (int64_t bound : {1, 2, 3, 8, 17, 64, 300}) {
    const Program program = compile_text(fmt::format(R"(graph "g" (tokens <= {}) {{
  %x = input "x" : f32[tokens, 16]
  %a = softmax(%x) : f32[tokens, 16]
  %b = cumulative_sum(%a) : f32[tokens, 16]
  %c = mul(%a, %b) : f32[tokens, 16]
  output "c" %c
}}
)",
                                                     bound));
    EXPECT_GE(program.plan.arena_bytes, last);
    last = program.plan.arena_bytes;
  }
}

TEST(Lowering, ListsEveryOpWithoutAKernelAtOnce) {
  try {
    compile_text(R"(graph "g" {
  %x = input "x" : c64[4]
  %y = copy(%x) : c64[4]
  output "y" %y
}
)");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("copy"));
  }
}

TEST(Poison, BlamesTheKernelThatReadsWhatNothingWrote) {
  Program program = compile_text(R"(graph "g" {
  %x = input "x" : f32[4]
  %y = cumulative_sum(%x) : f32[4]
  %z = cumulative_sum(%y) : f32[4]
  output "z" %z
}
)");
  // The fault: the first step writes elsewhere than the second reads.
  program.values[program.instructions[1].inputs[0]].offset_bytes += 64;
  program.plan.segment(Segment::kWork).size_bytes += 64;
  program.plan.arena_bytes += 4096;
  auto faulty = std::make_shared<Program>(std::move(program));
  ProgramValue copy = faulty->values[faulty->instructions[0].outputs[0]];
  copy.offset_bytes -= 64;
  faulty->values.push_back(copy);
  faulty->instructions[0].outputs[0] = static_cast<int32_t>(faulty->values.size()) - 1;
  const cpu::TargetOptions target{.max_threads = 2};
  const auto session =
      cpu::make_session(faulty, nullptr, std::make_shared<ThreadPool>(1), target, {.poison = true});
  const RunStatus status = session->run();
  EXPECT_FALSE(status.ok);
  EXPECT_THAT(status.message, HasSubstr("nothing has written"));
}

// Four branches of a big and a small value each; running one branch after the other keeps one big
// value at a time, the order as written keeps all four.
constexpr std::string_view kWideGraph = R"(graph "g" {
  %x = input "x" : f32[64]
  %a0 = broadcast(%x) shape=[64, 64] : f32[64, 64]
  %a1 = cumulative_sum(%a0) axis=0 : f32[64, 64]
  %a2 = cumulative_sum(%a0) axis=1 : f32[64, 64]
  %a3 = cumulative_sum(%a0) axis=0 reverse=true : f32[64, 64]
  %a4 = cumulative_sum(%a0) axis=1 reverse=true : f32[64, 64]
  %b1 = reduce_sum(%a1) axes=[0] : f32[64]
  %b2 = reduce_sum(%a2) axes=[0] : f32[64]
  %b3 = reduce_sum(%a3) axes=[0] : f32[64]
  %b4 = reduce_sum(%a4) axes=[0] : f32[64]
  %c = concat(%b1, %b2, %b3, %b4) : f32[256]
  %d = cumulative_sum(%c) : f32[256]
  output "d" %d
}
)";

TEST(Order, RunsOneBranchAfterTheOtherWhenThatNeedsLess) {
  const Program chosen = compile_text(kWideGraph);
  const Program given = compile_text(kWideGraph, {.choose_order = false});
  EXPECT_EQ(given.plan.unordered_bound_bytes, given.plan.segment(Segment::kWork).size_bytes);
  EXPECT_EQ(chosen.plan.unordered_bound_bytes, given.plan.unordered_bound_bytes);
  EXPECT_GT(given.plan.segment(Segment::kWork).size_bytes, 4 * 64 * 64 * 4);
  EXPECT_LT(chosen.plan.segment(Segment::kWork).size_bytes, 2 * 64 * 64 * 4);
}

TEST(Order, KeepsReadsAndWritesOfAStateInTheirOrder) {
  // The read before the update must see the old rows, in whatever order the rest runs.
  const std::string text = R"(graph "g" {
  %u = input "u" : f32[1, 1, 64]
  %s = state "s" : f32[1, 2, 64]
  %old = cumulative_sum(%s) axis=2 : f32[1, 2, 64]
  %big = cumulative_sum(%old) axis=2 : f32[1, 2, 64]
  %c = cache_append(%s, %u) row=1 : f32[1, 2, 64]
  %new = cumulative_sum(%s) axis=2 : f32[1, 2, 64]
  %r = reduce_sum(%big) axes=[1, 2] : f32[1]
  %q = reduce_sum(%new) axes=[1, 2] : f32[1]
  output "r" %r
  output "q" %q
}
)";
  const Program program = compile_text(text);
  int32_t old_read = -1, update = -1, new_read = -1;
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    const std::string& name = program.values[program.instructions[i].outputs[0]].name;
    if (name == "%old") old_read = static_cast<int32_t>(i);
    if (name == "%c") update = static_cast<int32_t>(i);
    if (name == "%new") new_read = static_cast<int32_t>(i);
  }
  EXPECT_LT(old_read, update);
  EXPECT_LT(update, new_read);
}

TEST(Blocks, SeveralGiveTheSameBitsAsOne) {
  std::vector<std::vector<float>> results;
  for (const int64_t max_block_bytes : {kUnlimitedBlockBytes, int64_t{5 * kPageBytes}}) {
    const cpu::TargetOptions target{.max_threads = 2, .max_block_bytes = max_block_bytes};
    auto program = std::make_shared<const Program>(
        compile(parse_graph(kWideGraph), cpu::CpuTarget(target), {.choose_order = false}).program);
    const auto work_blocks =
        std::count_if(program->plan.blocks.begin(), program->plan.blocks.end(),
                      [](const BlockPlan& block) { return block.segment == Segment::kWork; });
    EXPECT_EQ(work_blocks > 1, max_block_bytes != kUnlimitedBlockBytes);
    const auto session =
        cpu::make_session(program, nullptr, std::make_shared<ThreadPool>(2), target);
    std::vector<float> x(64);
    for (size_t i = 0; i < x.size(); ++i) x[i] = 0.1f * static_cast<float>(i) - 3.0f;
    session->arena().write<float>(program->inputs[0].value, x);
    ASSERT_TRUE(session->run().ok);
    results.emplace_back(256);
    session->arena().read<float>(program->outputs[0].value, results.back());
  }
  EXPECT_EQ(results[0], results[1]);
}

TEST(Lowering, ComputesThePartsOfAConcatenationAtTheirPlaces) {
  const Program program = compile_text(kWideGraph);
  for (const Instruction& instruction : program.instructions) {
    EXPECT_NE(instruction.op.name(), "concat");
    EXPECT_NE(instruction.op.name(), "copy");
  }
  const ProgramValue& whole = find(program, "c");
  EXPECT_EQ(find(program, "b1").offset_bytes, whole.offset_bytes);
  EXPECT_EQ(find(program, "b4").offset_bytes, whole.offset_bytes + 3 * 64 * 4);
  EXPECT_NO_THROW(check_slots(list_slots(program)));
}

TEST(Lowering, CopiesAPartThatCannotMove) {
  // The input lies in io and one value is listed twice.
  auto program = std::make_shared<const Program>(compile_text(R"(graph "g" {
  %x = input "x" : f32[16]
  %y = cumulative_sum(%x) : f32[16]
  %c = concat(%x, %y, %y) : f32[48]
  %e = concat(%c, %y) : f32[64]
  %d = cumulative_sum(%e) : f32[64]
  output "d" %d
  output "c" %c
}
)"));
  const auto session = cpu::make_session(program, nullptr, std::make_shared<ThreadPool>(1),
                                         {.max_threads = 2}, {.poison = true});
  const std::vector<float> x(16, 1.0f);
  session->arena().write<float>(program->inputs[0].value, x);
  for (int run = 0; run < 2; ++run) {
    const RunStatus status = session->run();
    ASSERT_TRUE(status.ok) << status.message;
    std::vector<float> d(64), c(48);
    session->arena().read<float>(program->outputs[0].value, d);
    session->arena().read<float>(program->outputs[1].value, c);
    EXPECT_EQ(c[15], 1.0f);
    EXPECT_EQ(c[31], 16.0f);
    EXPECT_EQ(c[47], 16.0f);
    EXPECT_EQ(d[63], 16.0f + 3 * 136.0f);
  }
}

}  // namespace
}  // namespace rlx
