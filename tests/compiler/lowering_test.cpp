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

}  // namespace
}  // namespace rlx
