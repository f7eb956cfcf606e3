#include "backends/cpu/kernels/elementwise_program.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "base/thread_pool.h"

namespace rlx::cpu {
namespace {

constexpr int64_t kAlignment = 64;
// Below this many cheap steps a second thread costs more than it brings.
constexpr int64_t kMinCostToSplit = 16384;

int64_t round_up(int64_t value) { return (value + kAlignment - 1) / kAlignment * kAlignment; }

// Offsets of the parts of one thread's scratch: slot pointers, the inputs' strides over the
// collapsed dimensions, then the registers.
struct ScratchParts {
  int64_t strides, registers, total;
};
ScratchParts lay_out_scratch(const TileProgram& program) {
  ScratchParts parts;
  parts.strides = round_up(program.num_slots() * static_cast<int64_t>(sizeof(void*)));
  parts.registers = parts.strides + round_up(static_cast<int64_t>(program.inputs.size()) *
                                             kMaxRank * static_cast<int64_t>(sizeof(int64_t)));
  parts.total = parts.registers + program.num_registers * kTileBytes;
  return parts;
}

int64_t double_to_int64(double value) {
  if (std::isnan(value)) return 0;
  if (value >= 0x1p63) return std::numeric_limits<int64_t>::max();
  if (value <= -0x1p63) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(value);
}

uint64_t double_to_uint64(double value) {
  if (value >= 0x1p64) return std::numeric_limits<uint64_t>::max();
  if (value >= 0x1p63) return static_cast<uint64_t>(value);
  return static_cast<uint64_t>(double_to_int64(value));
}

uint64_t constant_bits(ComputeType type, double value) {
  switch (type) {
    case ComputeType::kF32:
      return std::bit_cast<uint32_t>(static_cast<float>(value));
    case ComputeType::kF64:
      return std::bit_cast<uint64_t>(value);
    case ComputeType::kI64:
      return static_cast<uint64_t>(double_to_int64(value));
    case ComputeType::kU64:
      break;
  }
  return double_to_uint64(value);
}

int64_t step_cost(FormulaOp op, ComputeType type) {
  switch (op) {
    case FormulaOp::exp:
    case FormulaOp::log:
    case FormulaOp::tanh:
    case FormulaOp::erf:
      return type == ComputeType::kF32 ? 4 : 40;
    case FormulaOp::sin:
    case FormulaOp::cos:
      return type == ComputeType::kF32 ? 12 : 40;
    case FormulaOp::tan:
    case FormulaOp::pow:
    case FormulaOp::rem:
      return 40;
    default:
      return type == ComputeType::kF32 ? 1 : 3;
  }
}

// The steps that the result depends on.
std::vector<bool> find_used_steps(const Formula& formula) {
  std::vector<bool> used(formula.steps().size(), false);
  used[formula.result()] = true;
  for (int32_t i = static_cast<int32_t>(used.size()) - 1; i >= 0; --i) {
    if (!used[i]) continue;
    const FormulaStep& step = formula.steps()[i];
    if (step.op == FormulaOp::input) continue;
    for (int32_t argument : {step.a, step.b, step.c}) {
      if (argument >= 0) used[argument] = true;
    }
  }
  return used;
}

// Gives every slot a register: inputs and constants their own, steps one that no later step reads.
void assign_registers(TileProgram& program) {
  program.registers.assign(program.inputs.size() + program.constants.size() + program.steps.size(),
                           -1);
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    if (program.inputs[i].load != nullptr) program.registers[i] = program.num_registers++;
  }
  for (const TileProgram::Constant& constant : program.constants) {
    program.registers[constant.slot] = program.num_registers++;
  }
  std::vector<size_t> last_use(program.registers.size(), 0);
  for (size_t i = 0; i < program.steps.size(); ++i) {
    const TileProgram::Step& step = program.steps[i];
    for (int32_t slot : {step.a, step.b, step.c}) {
      if (slot >= 0) last_use[slot] = i;
    }
  }
  std::vector<int32_t> free_registers;
  const int32_t first_step_slot =
      static_cast<int32_t>(program.inputs.size() + program.constants.size());
  for (size_t i = 0; i < program.steps.size(); ++i) {
    const TileProgram::Step& step = program.steps[i];
    // A tile function may write over its arguments, so theirs are free for its result.
    const int32_t arguments[] = {step.a, step.b, step.c};
    for (int k = 0; k < 3; ++k) {
      const int32_t slot = arguments[k];
      const bool seen = (k > 0 && slot == arguments[0]) || (k > 1 && slot == arguments[1]);
      if (slot >= first_step_slot && last_use[slot] == i && !seen) {
        free_registers.push_back(program.registers[slot]);
      }
    }
    if (free_registers.empty()) free_registers.push_back(program.num_registers++);
    program.registers[step.out] = free_registers.back();
    free_registers.pop_back();
  }
}

// The output's dimensions with extents of 1 dropped and neighbours merged where every input steps
// through them as through one.
struct Collapsed {
  int rank = 0;
  int64_t extents[kMaxRank];
  int64_t (*strides)[kMaxRank];  // by input
};

void collapse(const TileProgram& program, std::span<const TensorView* const> inputs,
              const TensorView& output, Collapsed& result) {
  const int num_inputs = static_cast<int>(program.inputs.size());
  for (int axis = 0; axis < output.rank; ++axis) {
    const int64_t extent = output.extents[axis];
    if (extent == 1) continue;
    const int at = result.rank;
    bool can_merge = at > 0;
    for (int i = 0; i < num_inputs; ++i) {
      if (program.inputs[i].load == nullptr) continue;
      const TensorView& view = *inputs[i];
      const int own_axis = axis - (output.rank - view.rank);
      const bool is_broadcast = own_axis < 0 || view.extents[own_axis] == 1;
      const int64_t stride = is_broadcast ? 0 : view.strides[own_axis];
      result.strides[i][at] = stride;
      if (at > 0 && result.strides[i][at - 1] != stride * extent) can_merge = false;
    }
    if (!can_merge) {
      result.extents[at] = extent;
      ++result.rank;
      continue;
    }
    result.extents[at - 1] *= extent;
    for (int i = 0; i < num_inputs; ++i) result.strides[i][at - 1] = result.strides[i][at];
  }
  if (result.rank == 0) {
    result.rank = 1;
    result.extents[0] = 1;
    for (int i = 0; i < num_inputs; ++i) result.strides[i][0] = 0;
  }
}

bool is_uniform(const Collapsed& dims, int input) {
  for (int axis = 0; axis < dims.rank; ++axis) {
    if (dims.strides[input][axis] != 0) return false;
  }
  return true;
}

// Fills `tile` with the n elements of one input from the place `coordinates` on, row by row.
void load_rows(TileLoad load, const Collapsed& dims, const int64_t* strides, const std::byte* data,
               int64_t input_bytes, int64_t tile_bytes, const int64_t* coordinates, std::byte* tile,
               int64_t n) {
  const int inner = dims.rank - 1;
  int64_t place[kMaxRank];
  int64_t offset = 0;
  for (int axis = 0; axis < dims.rank; ++axis) {
    place[axis] = coordinates[axis];
    offset += place[axis] * strides[axis];
  }
  while (true) {
    const int64_t run = std::min(n, dims.extents[inner] - place[inner]);
    load(data + offset * input_bytes, strides[inner], tile, run);
    n -= run;
    if (n == 0) return;
    tile += run * tile_bytes;
    offset -= place[inner] * strides[inner];
    place[inner] = 0;
    for (int axis = inner - 1; axis >= 0; --axis) {
      offset += strides[axis];
      if (++place[axis] < dims.extents[axis]) break;
      offset -= place[axis] * strides[axis];
      place[axis] = 0;
    }
  }
}

}  // namespace

int64_t TileProgram::scratch_bytes_per_thread() const { return lay_out_scratch(*this).total; }

ComputeType choose_compute_type(std::span<const DType> inputs, DType output) {
  bool has_float = false, has_f64 = false, has_u64 = false, has_signed = false, has_wide = false;
  for (DType dtype : inputs) {
    has_float |= is_float(dtype);
    has_f64 |= dtype == DType::kF64;
    has_u64 |= dtype == DType::kU64;
    has_signed |= dtype >= DType::kI64 && dtype <= DType::kI8;
    // Integers that f32 does not hold.
    has_wide |= dtype == DType::kI64 || dtype == DType::kI32 || dtype == DType::kU64 ||
                dtype == DType::kU32;
  }
  if (has_float) {
    return has_f64 || has_wide || output == DType::kF64 ? ComputeType::kF64 : ComputeType::kF32;
  }
  return has_u64 && !has_signed ? ComputeType::kU64 : ComputeType::kI64;
}

std::shared_ptr<const TileProgram> make_tile_program(const Formula& formula,
                                                     std::span<const DType> inputs, DType output,
                                                     ComputeType type) {
  auto program = std::make_shared<TileProgram>();
  program->type = type;
  program->output = output;
  program->store = find_tile_store(type, output);
  program->inputs.resize(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) program->inputs[i].dtype = inputs[i];

  const std::span<const FormulaStep> steps = formula.steps();
  const std::vector<bool> used = find_used_steps(formula);
  std::vector<int32_t> slots(steps.size(), -1);
  int32_t next_slot = static_cast<int32_t>(inputs.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    if (!used[i]) continue;
    if (steps[i].op == FormulaOp::input) {
      const int32_t input = steps[i].a;
      RLX_CHECK(input < static_cast<int32_t>(inputs.size()));
      slots[i] = input;
      program->inputs[input].load = find_tile_load(inputs[input], type);
    } else if (steps[i].op == FormulaOp::constant) {
      slots[i] = next_slot++;
      program->constants.push_back({slots[i], constant_bits(type, steps[i].value)});
    }
  }
  for (size_t i = 0; i < steps.size(); ++i) {
    const FormulaStep& from = steps[i];
    const int arguments = count_arguments(from.op);
    if (!used[i] || arguments == 0) continue;
    TileProgram::Step step;
    step.a = slots[from.a];
    if (arguments > 1) step.b = slots[from.b];
    if (arguments > 2) step.c = slots[from.c];
    FormulaOp op = from.op;
    // x^2 -> x * x: the general power is slow
    if (op == FormulaOp::pow && steps[from.b].op == FormulaOp::constant &&
        steps[from.b].value == 2) {
      op = FormulaOp::mul;
      step.b = step.a;
    }
    step.run = find_tile_function(type, op);
    if (step.run == nullptr) {
      throw_error(ErrorCode::kUnsupported,
                  "The formula '{}' uses '{}', which has no meaning on {}.", to_string(formula),
                  to_string(op), to_string(storage_dtype(type)));
    }
    step.out = slots[i] = next_slot++;
    program->steps.push_back(step);
    program->cost += step_cost(op, type);
  }
  program->result = slots[formula.result()];
  program->writes_output_in_place = !program->steps.empty() && output == storage_dtype(type);
  assign_registers(*program);
  return program;
}

void run_tile_program(const TileProgram& program, std::span<const TensorView* const> inputs,
                      const TensorView& output, std::byte* scratch, int thread, int num_threads) {
  const int64_t total = output.num_elements();
  if (total == 0) return;
  const int64_t tile = elements_per_tile(program.type);
  if (total * program.cost < kMinCostToSplit) num_threads = 1;
  if (thread >= num_threads) return;
  const Range range = split_range(total, thread, num_threads, tile);
  if (range.begin >= range.end) return;

  const ScratchParts parts = lay_out_scratch(program);
  scratch += thread * parts.total;
  void** slots = reinterpret_cast<void**>(scratch);
  std::byte* registers = scratch + parts.registers;
  for (int64_t i = 0; i < program.num_slots(); ++i) {
    slots[i] = program.registers[i] < 0 ? nullptr : registers + program.registers[i] * kTileBytes;
  }
  Collapsed dims;
  dims.strides = reinterpret_cast<int64_t(*)[kMaxRank]>(scratch + parts.strides);
  collapse(program, inputs, output, dims);

  const DType tile_dtype = storage_dtype(program.type);
  const TileLoad splat = find_tile_load(tile_dtype, program.type);
  const int64_t longest = std::min(tile, range.end - range.begin);
  for (const TileProgram::Constant& constant : program.constants) {
    splat(&constant.bits, 0, slots[constant.slot], longest);
  }
  const int num_inputs = static_cast<int>(program.inputs.size());
  for (int i = 0; i < num_inputs; ++i) {
    const TileProgram::Input& input = program.inputs[i];
    if (input.load != nullptr && is_uniform(dims, i)) {
      input.load(inputs[i]->data, 0, slots[i], longest);
    }
  }

  const int inner = dims.rank - 1;
  const int64_t tile_bytes = element_bytes(program.type);
  const int64_t output_bytes = bytes_per_block(output.dtype);
  for (int64_t at = range.begin; at < range.end; at += tile) {
    const int64_t n = std::min(tile, range.end - at);
    int64_t coordinates[kMaxRank];
    int64_t rest = at;
    for (int axis = inner; axis > 0; --axis) {
      coordinates[axis] = rest % dims.extents[axis];
      rest /= dims.extents[axis];
    }
    coordinates[0] = rest;
    const bool is_one_run = coordinates[inner] + n <= dims.extents[inner];
    for (int i = 0; i < num_inputs; ++i) {
      const TileProgram::Input& input = program.inputs[i];
      if (input.load == nullptr || is_uniform(dims, i)) continue;
      const int64_t* strides = dims.strides[i];
      const int64_t input_bytes = bytes_per_block(input.dtype);
      std::byte* data = inputs[i]->data;
      std::byte* own_register = registers + program.registers[i] * kTileBytes;
      if (is_one_run && strides[inner] == 1 && input.dtype == tile_dtype) {
        int64_t offset = 0;
        for (int axis = 0; axis < dims.rank; ++axis) offset += coordinates[axis] * strides[axis];
        slots[i] = data + offset * input_bytes;
      } else {
        slots[i] = own_register;
        load_rows(input.load, dims, strides, data, input_bytes, tile_bytes, coordinates,
                  own_register, n);
      }
    }
    std::byte* out = output.data + at * output_bytes;
    if (program.writes_output_in_place) slots[program.result] = out;
    for (const TileProgram::Step& step : program.steps) {
      step.run(slots[step.a], step.b < 0 ? nullptr : slots[step.b],
               step.c < 0 ? nullptr : slots[step.c], slots[step.out], n);
    }
    if (!program.writes_output_in_place) program.store(slots[program.result], out, n);
  }
}

}  // namespace rlx::cpu
