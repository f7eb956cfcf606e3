// What a CPU kernel is: a function that all threads of the pool call together on one step of a
// program. It gets typed views of its operands with the run's actual extents, computes its share,
// and returns. Kernels allocate nothing, throw nothing, and never let the number of threads or the
// order in which they arrive change a bit of the result: work is split over independent outputs,
// and a reduction that is split is combined in a fixed order over parts whose size does not depend
// on the thread count.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/thread_pool.h"
#include "ir/op.h"
#include "tensor/shape.h"

namespace rlx::cpu {

// What a kernel can report; checked once after the run.
enum class KernelError : uint8_t {
  kNone,
  kIndexOutOfRange,  // gather, scatter, grouped_matmul: an index outside the table
  kCacheFull,        // cache_append: row + rows exceeds the cache's capacity
};

// One step of a program at run time. Inputs and outputs have their actual extents.
struct KernelCall {
  const void* attributes;  // the op's struct
  const void* prepared;    // what Kernel::prepare made for this step, or null
  std::span<const TensorView* const> inputs;
  std::span<const TensorView* const> outputs;
  std::span<const int64_t> dims;  // Op::list_dims() of this step, evaluated for this run
  std::byte* scratch;  // Kernel::scratch_bytes() bytes, aligned to 64, contents undefined
  int thread;          // this thread, in [0, num_threads)
  int num_threads;
  ThreadPool* pool;                 // for barrier(); every thread must then reach it
  std::atomic<KernelError>* error;  // set instead of throwing

  template <typename T>
  const T& op() const {
    return *static_cast<const T*>(attributes);
  }
  const TensorView& input(int i) const { return *inputs[i]; }
  const TensorView& output(int i) const { return *outputs[i]; }
  void barrier() const { pool->barrier(); }
};

// What a kernel may look at when the compiler asks whether it can do a node: everything known
// before a run. Extents may be symbolic; `layouts` are the inputs' strides as planned (outputs are
// contiguous).
struct KernelQuery {
  const Op& op;
  std::span<const TensorType> inputs;
  std::span<const Layout> layouts;
  std::span<const TensorType> outputs;
  const SymbolTable& symbols;
  int max_threads;
  // Multiply packed weights by activations quantised to int8 (the default), or by float
  // activations.
  bool quantize_activations = true;

  // True when input i is row-major without gaps.
  bool is_contiguous(int i) const { return rlx::is_contiguous(inputs[i].shape, layouts[i]); }
  // True when the last dimension of input i has stride 1 (or extent 1).
  bool has_unit_inner_stride(int i) const {
    return inputs[i].shape.empty() || inputs[i].shape.back().is(1) ||
           layouts[i].strides.back().is(1);
  }
};

// One way to run an op. Each kernels/*.cpp file defines a few and lists them in kernels/kernels.h;
// the compiler takes the first in the list that accepts.
struct Kernel {
  std::string_view name;  // "matmul.packed", unique
  std::string_view op;    // the op's name
  // Empty when the kernel can do the node, else the reason why not ("input 0 is not contiguous").
  std::string (*reject)(const KernelQuery& query);
  // Bytes of scratch at the symbols' upper bounds, for max_threads threads; null means none.
  int64_t (*scratch_bytes)(const KernelQuery& query);
  void (*run)(const KernelCall& call);
  // Output 0 may share the bytes of this input when it dies here, is contiguous, and has the same
  // shape and element size, because the kernel reads each element before it writes it; bit i stands
  // for input i.
  uint32_t may_alias_inputs = 0;
  // Makes once, when the program is loaded, what all runs of the step share and a run must not
  // allocate (a formula compiled for tiles, say); it arrives in KernelCall::prepared and is only
  // read. Null means none.
  std::shared_ptr<const void> (*prepare)(const KernelQuery& query) = nullptr;
};

}  // namespace rlx::cpu
