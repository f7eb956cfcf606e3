#include "rlx/profile.h"

#include <algorithm>

#include "api/language_model_parts.h"
#include "ops/count_work.h"
#include "runtime/arena.h"
#include "runtime/step_times.h"

namespace rlx {
namespace {

// The bytes and operations of one instruction at the extents of the last run.
ProfiledStep profile_step(const Program& program, const Instruction& instruction,
                          const Arena& arena) {
  ProfiledStep step{.op = std::string(instruction.op.name()),
                    .kernel = instruction.kernel,
                    .source = instruction.source};
  std::vector<const TensorView*> inputs, outputs;
  for (const int32_t value : instruction.inputs) inputs.push_back(&arena.view(value));
  for (const int32_t value : instruction.outputs) outputs.push_back(&arena.view(value));
  const OpWork work = count_work(instruction.op, inputs, outputs);
  step.flops = work.flops;
  int64_t largest_bytes = 0;
  const auto add = [&](int32_t id, int64_t bytes) {
    const ProgramValue& value = program.values[static_cast<size_t>(id)];
    if (value.segment == Segment::kState) {
      step.state_bytes += bytes;
    } else if (value.segment == Segment::kWeights || !value.weight.empty()) {
      step.weight_bytes += bytes;
      if (bytes > largest_bytes) step.weight_dtype = to_string(value.type.dtype);
      largest_bytes = std::max(largest_bytes, bytes);
    } else {
      step.work_bytes += bytes;
    }
  };
  for (size_t i = 0; i < inputs.size(); ++i) add(instruction.inputs[i], work.read_bytes[i]);
  for (size_t i = 0; i < outputs.size(); ++i) add(instruction.outputs[i], work.written_bytes[i]);
  return step;
}

}  // namespace

std::vector<ProfiledStep> LanguageModel::profile_last_run() const {
  const Parts& p = *parts_;
  std::vector<ProfiledStep> steps;
  if (!p.has_run) return steps;
  const Program& program = *p.model.program;
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    steps.push_back(profile_step(program, program.instructions[i], p.session->arena()));
    if (p.step_times == nullptr) continue;
    for (int thread = 0; thread < p.pool->num_threads(); ++thread) {
      const auto& interval = p.step_times->at(static_cast<int64_t>(i), thread);
      steps.back().threads.push_back({interval.begin_ns, interval.end_ns});
    }
  }
  return steps;
}

void LanguageModel::set_profiling(bool on) {
  Parts& p = *parts_;
  p.has_run = p.has_run && !on;  // the last run was not timed
  if (!on) {
    p.session->set_step_times(nullptr);
    p.step_times = nullptr;
  } else if (p.step_times == nullptr) {
    p.step_times = std::make_unique<StepTimes>(
        static_cast<int64_t>(p.model.program->instructions.size()), p.pool->num_threads());
    p.session->set_step_times(p.step_times.get());
  }
}

}  // namespace rlx
