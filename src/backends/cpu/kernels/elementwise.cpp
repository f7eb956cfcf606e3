// Kernels of every op whose meaning is a scalar formula, and of cast: all are one engine, the tile
// program.
#include "ops/elementwise.h"

#include <deque>
#include <string>
#include <vector>

#include "backends/cpu/kernels/elementwise_program.h"
#include "backends/cpu/kernels/kernels.h"
#include "ops/registry.h"

namespace rlx::cpu {
namespace {

std::vector<DType> list_dtypes(std::span<const TensorType> types) {
  std::vector<DType> dtypes;
  for (const TensorType& type : types) dtypes.push_back(type.dtype);
  return dtypes;
}

Formula make_identity() {
  Formula formula;
  formula.set_result(formula.add({FormulaOp::input, 0}));
  return formula;
}

std::shared_ptr<const TileProgram> make_program(const KernelQuery& query) {
  const std::vector<DType> inputs = list_dtypes(query.inputs);
  const DType output = query.outputs[0].dtype;
  if (query.op.is<Cast>()) {
    // The input is held exactly, and the store rounds once.
    return make_tile_program(make_identity(), inputs, output, exact_compute_type(inputs[0]));
  }
  const Formula formula = query.op.formula(static_cast<int>(inputs.size()));
  return make_tile_program(formula, inputs, output, choose_compute_type(inputs, output));
}

std::string reject(const KernelQuery& query) {
  for (size_t i = 0; i < query.inputs.size(); ++i) {
    if (!is_tile_dtype(query.inputs[i].dtype)) {
      return fmt::format("input {} is {}, which elementwise kernels do not read", i,
                         to_string(query.inputs[i].dtype));
    }
  }
  if (!is_tile_dtype(query.outputs[0].dtype)) {
    return fmt::format("the output is {}, which elementwise kernels do not write",
                       to_string(query.outputs[0].dtype));
  }
  if (query.outputs[0].rank() > kMaxRank) {
    return fmt::format("the output has rank {}, more than {}", query.outputs[0].rank(), kMaxRank);
  }
  try {
    make_program(query);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

int64_t scratch_bytes(const KernelQuery& query) {
  return make_program(query)->scratch_bytes_per_thread() * query.max_threads;
}

std::shared_ptr<const void> prepare(const KernelQuery& query) { return make_program(query); }

void run(const KernelCall& call) {
  run_tile_program(*static_cast<const TileProgram*>(call.prepared), call.inputs, call.output(0),
                   call.scratch, call.thread, call.num_threads);
}

// Names and kernels of all scalar ops.
struct KernelList {
  std::deque<std::string> names;
  std::vector<Kernel> kernels;

  void add(std::string_view op) {
    names.push_back(fmt::format("elementwise.{}", op));
    kernels.push_back({.name = names.back(),
                       .op = op,
                       .reject = reject,
                       .scratch_bytes = scratch_bytes,
                       .run = run,
                       .may_alias_inputs = ~0u,
                       .prepare = prepare});
  }
};

}  // namespace

std::span<const Kernel> elementwise_kernels() {
  static const KernelList list = [] {
    KernelList made;
    for (const OpKind* kind : all_ops().kinds()) {
      if (kind->meaning == Meaning::kScalar) made.add(kind->name);
    }
    made.add(Cast::kName);
    return made;
  }();
  return list.kernels;
}

}  // namespace rlx::cpu
