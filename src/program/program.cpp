#include "program/program.h"

#include <fmt/format.h>

namespace rlx {

std::string_view to_string(Segment segment) {
  constexpr std::string_view kNames[] = {"weights", "state", "io", "work"};
  return kNames[static_cast<int>(segment)];
}

namespace {

std::string print_operand(const Program& program, int32_t index) {
  const ProgramValue& value = program.values[index];
  std::string place = value.weight.empty()
                          ? fmt::format("{}+{}", to_string(value.segment), value.offset_bytes)
                          : fmt::format("weights:{}", value.weight);
  return fmt::format("{} {} @{}", value.name, to_string(value.type), place);
}

std::string print_operands(const Program& program, std::span<const int32_t> operands) {
  std::string text;
  for (int32_t operand : operands) {
    if (!text.empty()) text += ", ";
    text += print_operand(program, operand);
  }
  return text;
}

}  // namespace

std::string to_string(const Program& program) {
  std::string text = fmt::format("program \"{}\"", program.name);
  for (const Symbol& symbol : program.symbols.symbols()) {
    text += fmt::format(" ({} <= {} <= {})", symbol.lower, symbol.name, symbol.upper);
  }
  text += "\n";
  for (int i = 0; i < kNumSegments; ++i) {
    const SegmentPlan& segment = program.plan.segments[i];
    text +=
        fmt::format("  segment {} {} B\n", to_string(static_cast<Segment>(i)), segment.size_bytes);
  }
  for (size_t step = 0; step < program.instructions.size(); ++step) {
    const Instruction& instruction = program.instructions[step];
    text += fmt::format(
        "{}{:4} {} [{}{}{}]({}) -> {}", instruction.needs_barrier ? "-" : " ", step,
        instruction.kernel, instruction.op.name(),
        print_attributes(instruction.op).empty() ? "" : " ", print_attributes(instruction.op),
        print_operands(program, instruction.inputs), print_operands(program, instruction.outputs));
    if (instruction.scratch_bytes > 0) {
      text += fmt::format(" scratch work+{} {} B", instruction.scratch_offset_bytes,
                          instruction.scratch_bytes);
    }
    if (!instruction.source.empty()) text += "  // " + instruction.source;
    text += "\n";
  }
  return text;
}

}  // namespace rlx
