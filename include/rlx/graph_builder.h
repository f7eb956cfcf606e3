// Graphs by hand: name the inputs, add ops, compile, run. Ops and attributes are spelled as in the
// text form ("matmul", "transpose_b=true"); docs/ops.md lists them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/dtype.h"
#include "rlx/error.h"
#include "rlx/plan.h"

namespace rlx {

// A tensor in the caller's memory: row-major, without gaps.
struct Array {
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes;

  static Array from_floats(std::vector<int64_t> shape, std::span<const float> values);
  static Array from_ints(std::vector<int64_t> shape, std::span<const int64_t> values);
  // The elements; throws kInvalidArgument when the dtype is another.
  std::span<const float> floats() const;
  std::span<const int64_t> ints() const;
};

struct ExecutableOptions {
  int threads = 0;  // 0: as many as this process may use
};

// A compiled graph. Movable; one caller at a time.
class Executable {
 public:
  Executable(Executable&&) noexcept;
  Executable& operator=(Executable&&) noexcept;
  ~Executable();

  // Runs with the given inputs, all of them; symbols take their values from the shapes. Throws
  // rlx::Error naming the input whose dtype or shape does not fit. States keep their content.
  std::map<std::string, Array> run(const std::map<std::string, Array>& inputs);

  const PlanReport& plan_report() const;
  // Steps, kernels and places, as text.
  std::string listing() const;

  struct Parts;  // internal

 private:
  friend class GraphBuilder;
  explicit Executable(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

class GraphBuilder {
 public:
  // A value of the graph that is being built.
  struct Ref {
    int32_t index = -1;
  };

  explicit GraphBuilder(const std::string& name = "graph");
  // From the text form. Throws kInvalidArgument with the line.
  static GraphBuilder parse(std::string_view text);
  GraphBuilder(GraphBuilder&&) noexcept;
  GraphBuilder& operator=(GraphBuilder&&) noexcept;
  ~GraphBuilder();

  // A named extent, lower <= value <= upper, to be used in types: "f32[batch, 4]".
  void symbol(const std::string& name, int64_t upper, int64_t lower = 1);
  Ref input(const std::string& name, std::string_view type);
  Ref state(const std::string& name, std::string_view type);
  Ref constant(const Array& array);
  // Adds an op with one output. `attributes` as in the text form: "axis=1 keep_dims=true".
  Ref op(std::string_view name, const std::vector<Ref>& inputs, std::string_view attributes = "");
  // Adds an op and returns all its outputs.
  std::vector<Ref> ops(std::string_view name, const std::vector<Ref>& inputs,
                       std::string_view attributes = "");
  void output(const std::string& name, Ref value);

  // The text form; it parses back to the same graph.
  std::string to_text() const;
  // Throws kUnsupported listing every op without a kernel.
  Executable compile(const ExecutableOptions& options = {}) const;

  struct Parts;  // internal

 private:
  explicit GraphBuilder(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace rlx
