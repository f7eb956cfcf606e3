// bench_kernels: matrix products of every weight format beside what the machine can do. For each
// shape it prints the best time of many runs, spread over a few seconds, as GB/s of weights and
// GFLOP/s, and their shares of the read bandwidth and the f32 multiply-add peak measured between
// the same runs.
//
//   bench_kernels [--formats f16,q4_k] [--shapes 4096x1024,...] [--rows 1,16,512] [--threads 1,2]
//                 [--seconds 0.5] [--small-pages] [--processor-time]
//
// A shape is columns x depth. Weights lie in a buffer larger than the last-level cache, and each
// run takes the next one, as a model does. --small-pages leaves that buffer in 4 KiB pages, as a
// mapped file has them. --processor-time counts only the time that the calling thread runs, which
// makes one thread's figures usable on a busy machine.
#include <fmt/format.h>
#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/machine_peak.h"
#include "base/error.h"
#include "ops/matmul.h"
#include "tensor/storage.h"

namespace rlx::bench {
namespace {

struct Options {
  std::vector<std::string> formats{"f32",  "f16",    "bf16",   "q8_0", "q4_0", "q4_1",
                                   "q5_0", "q5_1",   "q2_k",   "q3_k", "q4_k", "q5_k",
                                   "q6_k", "iq4_nl", "iq4_xs", "mxfp4"};
  std::vector<std::string> shapes{"1024x1024", "4096x1024", "8192x4096"};
  std::vector<std::string> rows{"1", "16", "512"};
  std::vector<std::string> threads{"1", "2"};
  double seconds = 0.5;
  bool small_pages = false;
  bool processor_time = false;
};

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double processor_seconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (const char letter : text) {
    if (letter == separator) {
      parts.emplace_back();
    } else {
      parts.back() += letter;
    }
  }
  return parts;
}

Options parse_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--small-pages" || name == "--processor-time") {
      (name == "--small-pages" ? options.small_pages : options.processor_time) = true;
      continue;
    }
    if (i + 1 == argc) {
      throw_error(ErrorCode::kInvalidArgument, "Option '{}' has no value or is unknown.", name);
    }
    const std::string value = argv[++i];
    if (name == "--formats") {
      options.formats = split(value, ',');
    } else if (name == "--shapes") {
      options.shapes = split(value, ',');
    } else if (name == "--rows") {
      options.rows = split(value, ',');
    } else if (name == "--threads") {
      options.threads = split(value, ',');
    } else if (name == "--seconds") {
      options.seconds = std::stod(value);
    } else {
      throw_error(ErrorCode::kInvalidArgument, "Option '{}' is unknown.", name);
    }
  }
  return options;
}

// 256 MiB, every byte 0x11: in all formats a small normal number.
class WeightBuffer {
 public:
  explicit WeightBuffer(bool small_pages) {
    void* address =
        mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (address == MAP_FAILED) throw_error(ErrorCode::kIo, "Cannot map {} bytes.", kSize);
    data_ = static_cast<std::byte*>(address);
    madvise(address, kSize, small_pages ? MADV_NOHUGEPAGE : MADV_HUGEPAGE);
    std::memset(address, 0x11, kSize);
  }
  ~WeightBuffer() { munmap(data_, kSize); }
  WeightBuffer(const WeightBuffer&) = delete;
  WeightBuffer& operator=(const WeightBuffer&) = delete;
  std::span<const std::byte> bytes() const { return {data_, kSize}; }
  std::byte* data() const { return data_; }

 private:
  static constexpr size_t kSize = size_t{256} << 20;
  std::byte* data_;
};

TensorView make_view(DType dtype, std::byte* data, int64_t rows, int64_t columns) {
  TensorView view;
  view.dtype = dtype;
  view.data = data;
  view.rank = 2;
  view.extents = {rows, columns};
  view.strides = {columns, 1};
  return view;
}

// One product, ready to run on a pool.
struct Product {
  Product(DType dtype, int64_t columns, int64_t depth, int64_t rows, int threads)
      : x(static_cast<size_t>(rows * depth)),
        out(static_cast<size_t>(rows * columns)),
        x_view(make_view(DType::kF32, reinterpret_cast<std::byte*>(x.data()), rows, depth)),
        w_view(make_view(dtype, nullptr, columns, depth)),
        out_view(make_view(DType::kF32, reinterpret_cast<std::byte*>(out.data()), rows, columns)),
        op(Matmul{.transpose_b = true}) {
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 17) - 8;
    const TensorType inputs[] = {{DType::kF32, {rows, depth}}, {dtype, {columns, depth}}};
    const TensorType outputs[] = {{DType::kF32, {rows, columns}}};
    const Layout layouts[] = {make_contiguous_layout(inputs[0].shape),
                              make_contiguous_layout(inputs[1].shape)};
    const SymbolTable symbols;
    const cpu::KernelQuery query{op, inputs, layouts, outputs, symbols, threads};
    for (const cpu::Kernel& candidate : cpu::matmul_kernels()) {
      if (candidate.op == op.name() && candidate.reject(query).empty()) {
        kernel = &candidate;
        break;
      }
    }
    if (kernel == nullptr) {
      throw_error(ErrorCode::kUnsupported, "No kernel multiplies by {}.", to_string(dtype));
    }
    const int64_t bytes = kernel->scratch_bytes != nullptr ? kernel->scratch_bytes(query) : 0;
    scratch.resize(static_cast<size_t>(bytes + 64));
  }

  void run(ThreadPool& pool, std::byte* weights) {
    w_view.data = weights;
    const TensorView* inputs[] = {&x_view, &w_view};
    const TensorView* outputs[] = {&out_view};
    std::byte* aligned = scratch.data() + (-reinterpret_cast<uintptr_t>(scratch.data()) & 63);
    std::atomic<cpu::KernelError> error{cpu::KernelError::kNone};
    pool.run([&](int thread) {
      kernel->run({.attributes = op.attributes(),
                   .prepared = nullptr,
                   .inputs = inputs,
                   .outputs = outputs,
                   .dims = {},
                   .scratch = aligned,
                   .thread = thread,
                   .num_threads = pool.num_threads(),
                   .pool = &pool,
                   .error = &error});
    });
  }

  std::vector<float> x, out;
  TensorView x_view, w_view, out_view;
  Op op;
  const cpu::Kernel* kernel = nullptr;
  std::vector<std::byte> scratch;
};

struct Machine {
  double read_gb_s = 0, gflop_s = 0;

  // Keeps the best of all calls.
  void measure(ThreadPool& pool, const WeightBuffer& buffer, double (*now)()) {
    const std::span<const std::byte> bytes = buffer.bytes().first(size_t{64} << 20);
    volatile float keep;
    double start = now();
    pool.run([&](int thread) {
      const Range range =
          split_range(static_cast<int64_t>(bytes.size()), thread, pool.num_threads(), 4096);
      keep = cpu::read_all(bytes.subspan(static_cast<size_t>(range.begin),
                                         static_cast<size_t>(range.end - range.begin)));
    });
    read_gb_s = std::max(read_gb_s, static_cast<double>(bytes.size()) / (now() - start) * 1e-9);
    std::atomic<int64_t> operations{0};
    start = now();
    pool.run([&](int) { operations += cpu::run_multiply_adds(200000); });
    gflop_s = std::max(gflop_s, static_cast<double>(operations) / (now() - start) * 1e-9);
  }
};

void run_benchmark(const Options& options) {
  const WeightBuffer buffer(options.small_pages);
  double (*const now)() = options.processor_time ? processor_seconds : wall_seconds;
  fmt::print("{:>7} {:>11} {:>5} {:>3} {:>10} {:>7} {:>6} {:>6} {:>8} {:>6} {:>6}  {}\n", "format",
             "shape", "rows", "thr", "us", "GB/s", "read", "share", "GFLOP/s", "peak", "share",
             "kernel");
  for (const std::string& thread_text : options.threads) {
    ThreadPool pool(std::stoi(thread_text));
    for (const std::string& row_text : options.rows) {
      for (const std::string& shape : options.shapes) {
        for (const std::string& format : options.formats) {
          DType dtype;
          if (!parse_dtype(format, dtype)) {
            throw_error(ErrorCode::kInvalidArgument, "There is no dtype '{}'.", format);
          }
          const std::vector<std::string> sides = split(shape, 'x');
          const int64_t columns = std::stoll(sides.at(0)), depth = std::stoll(sides.at(1));
          const int64_t rows = std::stoll(row_text);
          Product product(dtype, columns, depth, rows, pool.num_threads());
          const int64_t size = storage_bytes(dtype, columns * depth);
          const int64_t places =
              std::max<int64_t>(1, static_cast<int64_t>(buffer.bytes().size()) / size);
          Machine machine;
          double best = 1e9;
          const double end = now() + options.seconds;
          for (int64_t i = 0; now() < end || i < 3; ++i) {
            if (i % 8 == 0) machine.measure(pool, buffer, now);
            const double start = now();
            product.run(pool, buffer.data() + i % places * size);
            best = std::min(best, now() - start);
          }
          const double gb_s = static_cast<double>(size) / best * 1e-9;
          const double gflop_s = 2e-9 * static_cast<double>(rows * columns * depth) / best;
          fmt::print(
              "{:>7} {:>11} {:>5} {:>3} {:>10.1f} {:>7.2f} {:>6.1f} {:>5.0f}% {:>8.1f} {:>6.1f} "
              "{:>5.0f}%  {}\n",
              format, shape, rows, pool.num_threads(), best * 1e6, gb_s, machine.read_gb_s,
              100 * gb_s / machine.read_gb_s, gflop_s, machine.gflop_s,
              100 * gflop_s / machine.gflop_s, product.kernel->name);
          std::fflush(stdout);
        }
      }
    }
  }
}

}  // namespace
}  // namespace rlx::bench

int main(int argc, char** argv) {
  try {
    rlx::bench::run_benchmark(rlx::bench::parse_options(argc, argv));
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}
