// A few ops for the tests of the graph itself, which must not depend on the real ones.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "ir/graph.h"
#include "ir/op_kind.h"
#include "ir/text.h"

namespace rlx {

enum class TestMode : uint8_t { kFast, kSlow };
inline std::span<const std::string_view> enum_names(TestMode) {
  static constexpr std::string_view kNames[] = {"fast", "slow"};
  return kNames;
}

// One input, passed through; an attribute of every kind.
struct TestMark {
  static constexpr std::string_view kName = "mark";
  static constexpr Arity kArity{1, 1};
  bool flag = false;
  int64_t count = 3;
  double ratio = 0.5;
  std::string label;
  DType dtype = DType::kF32;
  Dim extent = 1;
  Shape shape;
  std::vector<int64_t> axes;
  Formula formula;
  TestMode mode = TestMode::kFast;
  template <typename F>
  void fields(F&& field) {
    field("flag", flag);
    field("count", count);
    field("ratio", ratio);
    field("label", label);
    field("dtype", dtype);
    field("extent", extent);
    field("shape", shape);
    field("axes", axes);
    field("formula", formula);
    field("mode", mode);
  }
  std::vector<TensorType> infer(const InferContext& context) const { return {context.input(0)}; }
  void reference(const ReferenceContext&) const {}
};

// Two inputs of one type.
struct TestSum {
  static constexpr std::string_view kName = "sum";
  static constexpr Arity kArity{2, 2};
  static constexpr Domain kDomain = Domain::kNumber;
  template <typename S>
  S scalar(const S* x) const {
    return fn::add(x[0], x[1]);
  }
  std::vector<TensorType> infer(const InferContext& context) const {
    if (context.input(0) != context.input(1)) {
      context.fail("The inputs are {} and {}, but one type is expected.",
                   to_string(context.input(0)), to_string(context.input(1)));
    }
    return {context.input(0)};
  }
};

// Two outputs: the input, and its number of elements along the first axis as i64[].
struct TestSplit {
  static constexpr std::string_view kName = "split";
  static constexpr Arity kArity{1, 1};
  std::vector<TensorType> infer(const InferContext& context) const {
    return {context.input(0), {DType::kI64, {}}};
  }
  void reference(const ReferenceContext&) const {}
};

inline const OpRegistry& test_ops() {
  static const OpRegistry registry(
      {&op_kind<TestMark>(), &op_kind<TestSum>(), &op_kind<TestSplit>()});
  return registry;
}

inline Graph parse(std::string_view text) { return parse_graph(text, test_ops()); }

// The message of the Error that `body` throws, context included.
template <typename Body>
std::string error_of(Body body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing is thrown";
}

}  // namespace rlx
