#include "backends/cpu/poison.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "tensor/storage.h"

namespace rlx::cpu {
namespace {

// As floats of any width both are NaN with a payload; as integers, large and different.
constexpr std::byte kFirstPattern{0xFB};
constexpr std::byte kSecondPattern{0xFF};

}  // namespace

PoisonChecker::PoisonChecker(Arena& arena) : program_(arena.program()), arena_(arena) {
  defined_.resize(static_cast<size_t>(arena.size_bytes()));
  dying_.resize(program_.instructions.size());
  for (size_t i = 0; i < program_.values.size(); ++i) {
    const ProgramValue& value = program_.values[i];
    if (value.segment == Segment::kWork && value.last_step >= 0) {
      dying_[value.last_step].push_back(static_cast<int32_t>(i));
    }
  }
}

// Of a segment within the arena.
int64_t PoisonChecker::segment_start(Segment segment) const {
  return program_.plan.base_bytes[static_cast<int>(segment)];
}

bool PoisonChecker::lies_in_arena(int32_t value) const {
  return program_.values[value].segment != Segment::kWeights;
}

void PoisonChecker::visit_bytes(int32_t value,
                                const std::function<void(int64_t, int64_t)>& visit) const {
  const TensorView& view = arena_.view(value);
  const int64_t elements = view.num_elements();
  if (elements == 0 || !lies_in_arena(value)) return;
  const int64_t start = view.data - arena_.bytes().data();
  if (view.is_contiguous()) {
    visit(start, start + storage_bytes(view.dtype, elements));
    return;
  }
  const int64_t width = bytes_per_block(view.dtype);  // only scalars are ever strided in the arena
  std::array<int64_t, kMaxRank> index{};
  for (int64_t i = 0; i < elements; ++i) {
    int64_t offset = 0;
    for (int axis = 0; axis < view.rank; ++axis) offset += index[axis] * view.strides[axis];
    visit(start + offset * width, start + (offset + 1) * width);
    for (int axis = view.rank - 1; axis >= 0 && ++index[axis] == view.extents[axis]; --axis) {
      index[axis] = 0;
    }
  }
}

void PoisonChecker::mark(int32_t value, bool defined) {
  visit_bytes(value, [&](int64_t first, int64_t last) {
    std::fill(defined_.begin() + first, defined_.begin() + last, defined);
  });
}

void PoisonChecker::fill_undefined(std::byte pattern) {
  const std::span<std::byte> bytes = arena_.bytes();
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (!defined_[i]) bytes[i] = pattern;
  }
}

void PoisonChecker::begin_run() {
  std::fill(defined_.begin(), defined_.end(), false);
  for (const NamedValue& input : program_.inputs) mark(input.value, true);
  const int64_t state_bytes = static_cast<int64_t>(arena_.segment(Segment::kState).size());
  std::fill(defined_.begin(), defined_.begin() + state_bytes, true);
}

std::string PoisonChecker::describe_byte(int64_t offset, int32_t step) const {
  std::string owners;
  for (size_t i = 0; i < program_.values.size(); ++i) {
    const ProgramValue& value = program_.values[i];
    if (!lies_in_arena(static_cast<int32_t>(i))) continue;
    const bool alive =
        value.segment != Segment::kWork || (value.first_step <= step && step <= value.last_step);
    const int64_t start = segment_start(value.segment) + value.offset_bytes;
    if (alive && start <= offset && offset < start + value.size_bytes) {
      owners += (owners.empty() ? "" : ", ") + value.name;
    }
  }
  return fmt::format("arena byte {} ({})", offset, owners.empty() ? "between values" : owners);
}

RunStatus PoisonChecker::fail(int32_t step, const std::string& message) const {
  const Instruction& instruction = program_.instructions[step];
  return {false, ErrorCode::kInternal,
          fmt::format("Kernel '{}' at step {}{} {}", instruction.kernel, step,
                      instruction.source.empty() ? "" : " (" + instruction.source + ")", message)};
}

RunStatus PoisonChecker::check_step(int32_t step, const std::function<void()>& execute) {
  const Instruction& instruction = program_.instructions[step];
  const std::span<std::byte> bytes = arena_.bytes();
  for (int32_t input : instruction.inputs) {
    int64_t missing = -1;
    visit_bytes(input, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last && missing < 0; ++i) {
        if (!defined_[i]) missing = i;
      }
    });
    if (missing >= 0) {
      return fail(step, fmt::format("is given {}, whose {} nothing has written.",
                                    program_.values[input].name, describe_byte(missing, step)));
    }
  }

  std::vector<bool> may_write(defined_.size(), false);
  for (int32_t output : instruction.outputs) {
    visit_bytes(output, [&](int64_t first, int64_t last) {
      std::fill(may_write.begin() + first, may_write.begin() + last, true);
    });
  }
  const int64_t scratch = segment_start(Segment::kWork) + instruction.scratch_offset_bytes;
  std::fill(may_write.begin() + scratch, may_write.begin() + scratch + instruction.scratch_bytes,
            true);

  const auto run_with = [&](std::byte pattern) {
    fill_undefined(pattern);
    before_.assign(bytes.begin(), bytes.end());
    execute();
  };
  run_with(kFirstPattern);
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (!may_write[i] && bytes[i] != before_[i]) {
      return fail(step, fmt::format("writes outside its outputs: {}.",
                                    describe_byte(static_cast<int64_t>(i), step)));
    }
  }
  first_.assign(bytes.begin(), bytes.end());
  std::copy(before_.begin(), before_.end(), bytes.begin());
  run_with(kSecondPattern);
  for (int32_t output : instruction.outputs) {
    int64_t differs = -1;
    visit_bytes(output, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end && differs < 0; ++i) {
        if (bytes[i] != first_[i]) differs = i;
      }
    });
    if (differs >= 0) {
      return fail(step, fmt::format("reads bytes that nothing wrote: its result {} depends on them "
                                    "at {}.",
                                    program_.values[output].name, describe_byte(differs, step)));
    }
  }

  for (int32_t output : instruction.outputs) mark(output, true);
  for (int32_t value : dying_[step]) {
    const ProgramValue& dead = program_.values[value];
    const int64_t start = segment_start(Segment::kWork) + dead.offset_bytes;
    std::fill(defined_.begin() + start, defined_.begin() + start + dead.size_bytes, false);
  }
  return {};
}

}  // namespace rlx::cpu
