#include "backends/cpu/session.h"

#include <chrono>
#include <cstring>
#include <limits>

#include "backends/cpu/poison.h"
#include "base/checked.h"
#include "runtime/arena.h"
#include "runtime/extents.h"
#include "runtime/step_times.h"

namespace rlx::cpu {
namespace {

constexpr int32_t kNever = std::numeric_limits<int32_t>::max();

int64_t now_ns() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class CpuSession final : public Session {
 public:
  CpuSession(std::shared_ptr<const Program> program, std::shared_ptr<const WeightStore> weights,
             std::shared_ptr<ThreadPool> pool, const TargetOptions& target,
             const SessionOptions& options)
      : program_(std::move(program)),
        pool_(std::move(pool)),
        arena_(program_, std::move(weights)),
        dim_evaluator_(program_->symbols) {
    if (pool_->num_threads() > target.max_threads) {
      throw_error(ErrorCode::kInvalidArgument,
                  "The pool has {} threads, but the program is compiled for at most {}.",
                  pool_->num_threads(), target.max_threads);
    }
    bind_instructions(target);
    std::vector<int64_t> values;
    for (const Symbol& symbol : program_->symbols.symbols()) values.push_back(symbol.upper);
    set_extents(values).throw_if_failed();
    if (options.poison) poison_ = std::make_unique<PoisonChecker>(arena_);
  }

  const Program& program() const override { return *program_; }

  RunStatus set_extents(std::span<const int64_t> values) override {
    const auto symbols = program_->symbols.symbols();
    if (values.size() != symbols.size()) {
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("{} extents are given, but the program has {} symbols.",
                              values.size(), symbols.size()));
    }
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i] < symbols[i].lower || values[i] > symbols[i].upper) {
        return fail(ErrorCode::kOutOfRange,
                    fmt::format("Extent '{}' is {}, but {} to {} is planned for.", symbols[i].name,
                                values[i], symbols[i].lower, symbols[i].upper));
      }
    }
    arena_.set_extents(values);
    dim_evaluator_.evaluate(values);
    return {};
  }

  TensorView input(int index) override { return arena_.view(program_->inputs[index].value); }
  TensorView output(int index) override { return arena_.view(program_->outputs[index].value); }

  TensorView state(int index) override { return arena_.view(program_->states[index].value); }

  RunStatus run() override {
    if (!arena_.begin_run()) {
      return fail(ErrorCode::kInvalidArgument, "The session is already running in another thread.");
    }
    RunStatus status = poison_ != nullptr ? run_poisoned() : run_steps();
    arena_.end_run();
    return status;
  }

  Arena& arena() override { return arena_; }

  RunStatus run_steps() {
    stop_before_.store(kNever, std::memory_order_relaxed);
    if (step_times_ == nullptr) {
      pool_->run([this](int thread) { run_thread<false>(thread); });
    } else {
      pool_->run([this](int thread) { run_thread<true>(thread); });
    }
    if (stop_before_.load(std::memory_order_relaxed) != kNever) {
      return fail(ErrorCode::kCancelled, "The run was cancelled.");
    }
    return find_error();
  }

  void reset_state() override {
    const std::span<std::byte> state = arena_.segment(Segment::kState);
    if (!state.empty()) std::memset(state.data(), 0, state.size());
  }

  void set_cancel_flag(const std::atomic<bool>* flag) override { cancel_ = flag; }

  void set_step_times(StepTimes* times) override { step_times_ = times; }

 private:
  static RunStatus fail(ErrorCode code, std::string message) {
    return {false, code, std::move(message)};
  }

  void bind_instructions(const TargetOptions& target) {
    const size_t count = program_->instructions.size();
    errors_ = std::make_unique<std::atomic<KernelError>[]>(count);
    size_t num_operands = 0, num_dims = 0;
    for (const Instruction& instruction : program_->instructions) {
      num_operands += instruction.inputs.size() + instruction.outputs.size();
      num_dims += instruction.op.list_dims().size();
    }
    operands_.reserve(num_operands);
    dims_.resize(num_dims);
    size_t next_dim = 0;
    for (size_t i = 0; i < count; ++i) {
      const Instruction& instruction = program_->instructions[i];
      const Kernel* kernel = find_kernel(instruction.kernel);
      if (kernel == nullptr) {
        throw_error(ErrorCode::kUnsupported, "This build has no kernel named '{}'.",
                    instruction.kernel);
      }
      kernels_.push_back(kernel->run);
      KernelCall call{};
      call.attributes = instruction.op.attributes();
      call.inputs = bind_operands(instruction.inputs);
      call.outputs = bind_operands(instruction.outputs);
      const std::vector<Dim> dims = instruction.op.list_dims();
      call.dims = {dims_.data() + next_dim, dims.size()};
      for (const Dim& dim : dims) dim_evaluator_.add(dim, &dims_[next_dim++]);
      call.scratch = arena_.segment(Segment::kWork).data() + instruction.scratch_offset_bytes;
      call.num_threads = pool_->num_threads();
      call.pool = pool_.get();
      errors_[i].store(KernelError::kNone);
      call.error = &errors_[i];
      if (kernel->prepare != nullptr) {
        prepared_.push_back(prepare(*kernel, instruction, target));
        call.prepared = prepared_.back().get();
      }
      calls_.push_back(call);
    }
  }

  std::span<const TensorView* const> bind_operands(const std::vector<int32_t>& values) {
    const size_t first = operands_.size();
    for (int32_t value : values) operands_.push_back(&arena_.view(value));
    return {operands_.data() + first, values.size()};
  }

  std::shared_ptr<const void> prepare(const Kernel& kernel, const Instruction& instruction,
                                      const TargetOptions& target) const {
    std::vector<TensorType> inputs, outputs;
    std::vector<Layout> layouts;
    for (int32_t input : instruction.inputs) {
      inputs.push_back(program_->values[input].type);
      layouts.push_back(program_->values[input].layout);
    }
    for (int32_t output : instruction.outputs) outputs.push_back(program_->values[output].type);
    return kernel.prepare({instruction.op, inputs, layouts, outputs, program_->symbols,
                           target.max_threads, target.quantize_activations});
  }

  template <bool kTimed>
  void run_thread(int thread) {
    const int32_t count = static_cast<int32_t>(calls_.size());
    for (int32_t step = 0; step < count; ++step) {
      if (program_->instructions[step].needs_barrier) {
        // A stop is announced before a barrier and obeyed after it, by every thread at this step.
        if (thread == 0 && cancel_ != nullptr && cancel_->load(std::memory_order_relaxed) &&
            stop_before_.load(std::memory_order_relaxed) == kNever) {
          stop_before_.store(step, std::memory_order_relaxed);
        }
        pool_->barrier();
      }
      if (step >= stop_before_.load(std::memory_order_relaxed)) return;
      KernelCall call = calls_[step];
      call.thread = thread;
      if constexpr (kTimed) step_times_->at(step, thread).begin_ns = now_ns();
      kernels_[step](call);
      if constexpr (kTimed) step_times_->at(step, thread).end_ns = now_ns();
    }
  }

  RunStatus run_poisoned() {
    poison_->begin_run();
    for (int32_t step = 0; step < static_cast<int32_t>(calls_.size()); ++step) {
      const RunStatus status = poison_->check_step(step, [&] {
        pool_->run([&](int thread) {
          KernelCall call = calls_[step];
          call.thread = thread;
          kernels_[step](call);
        });
      });
      if (!status.ok) return status;
    }
    return find_error();
  }

  RunStatus find_error() {
    for (size_t i = 0; i < calls_.size(); ++i) {
      if (errors_[i].load(std::memory_order_relaxed) != KernelError::kNone) return report(i);
    }
    return {};
  }

  RunStatus report(size_t step) {
    const Instruction& instruction = program_->instructions[step];
    const KernelError error = errors_[step].exchange(KernelError::kNone);
    for (size_t i = step + 1; i < calls_.size(); ++i) errors_[i].store(KernelError::kNone);
    const std::string where =
        fmt::format("Op '{}'{}", instruction.op.name(),
                    instruction.source.empty() ? "" : " of '" + instruction.source + "'");
    if (error == KernelError::kCacheFull) {
      // Attention reads a cache that is its second input.
      const size_t cache = instruction.op.kind().in_place_input == 0 ? 0 : 1;
      return fail(ErrorCode::kOutOfRange,
                  fmt::format("{} goes past the end of {}, which holds {} rows.", where,
                              program_->values[instruction.inputs[cache]].name,
                              arena_.view(instruction.inputs[cache]).extents[1]));
    }
    return fail(ErrorCode::kOutOfRange,
                fmt::format("{} was given an index outside its table {}.", where,
                            to_string(program_->values[instruction.inputs[0]].type)));
  }

  const std::shared_ptr<const Program> program_;
  const std::shared_ptr<ThreadPool> pool_;
  Arena arena_;
  ExtentEvaluator dim_evaluator_;  // of the ops' own dims
  std::vector<const TensorView*> operands_;
  std::vector<int64_t> dims_;
  std::vector<void (*)(const KernelCall&)> kernels_;
  std::vector<KernelCall> calls_;
  std::vector<std::shared_ptr<const void>> prepared_;
  std::unique_ptr<std::atomic<KernelError>[]> errors_;
  std::unique_ptr<PoisonChecker> poison_;  // null unless asked for
  const std::atomic<bool>* cancel_ = nullptr;
  StepTimes* step_times_ = nullptr;  // null: not timed
  // The step before which every thread stops; see run_thread.
  std::atomic<int32_t> stop_before_{kNever};
};

}  // namespace

std::unique_ptr<Session> make_session(std::shared_ptr<const Program> program,
                                      std::shared_ptr<const WeightStore> weights,
                                      std::shared_ptr<ThreadPool> pool, const TargetOptions& target,
                                      const SessionOptions& options) {
  return std::make_unique<CpuSession>(std::move(program), std::move(weights), std::move(pool),
                                      target, options);
}

}  // namespace rlx::cpu
