// What the tests of passes share: graphs as text in, graphs as text out, compared whole.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <set>
#include <string>
#include <string_view>

#include "ir/text.h"
#include "ir/verify.h"
#include "ops/registry.h"
#include "passes/pass.h"

namespace rlx {

// A target with a kernel for every op.
inline PassContext claim_all() {
  return {
      .claims = [](const Op&, std::span<const TensorType>, const SymbolTable&) { return true; }};
}

// A target with kernels for every op but those that are made of others, by a decomposition or by a
// pass.
inline PassContext claim_simple() {
  return {.claims = [](const Op& op, std::span<const TensorType>, const SymbolTable&) {
    return op.kind().meaning != Meaning::kDecompose && op.name() != "fused" &&
           op.name() != "swiglu" && op.name() != "geglu" && op.name() != "reglu";
  }};
}

// A target with kernels for these ops alone.
inline PassContext claim_only(std::initializer_list<std::string_view> names) {
  return {.claims = [names = std::set<std::string, std::less<>>(names.begin(), names.end())](
                        const Op& op, std::span<const TensorType>, const SymbolTable&) {
    return names.contains(op.name());
  }};
}

inline std::string run_pass(PassFunction pass, std::string_view before,
                            const PassContext& context) {
  const Graph result = pass(parse_graph(before), context);
  verify(result);
  return to_string(result);
}

inline void expect_changed(PassFunction pass, std::string_view before, std::string_view after,
                           const PassContext& context = claim_all()) {
  EXPECT_EQ(run_pass(pass, before, context), after);
}

inline void expect_unchanged(PassFunction pass, std::string_view text,
                             const PassContext& context = claim_all()) {
  EXPECT_EQ(run_pass(pass, text, context), text);
}

// A graph on f32 inputs x, z [2, 4] and w [4], bools b [2, 4] and integers i, j [4], of which the
// body's nodes use some and whose output is %y. Saves most tests from writing the frame.
inline std::string frame(std::string_view body) {
  return "graph \"g\" {\n"
         "  %x = input \"x\" : f32[2, 4]\n"
         "  %z = input \"z\" : f32[2, 4]\n"
         "  %w = input \"w\" : f32[4]\n"
         "  %b = input \"b\" : bool[2, 4]\n"
         "  %i = input \"i\" : i64[4]\n"
         "  %j = input \"j\" : i64[4]\n" +
         std::string(body) + "  output \"y\" %y\n}\n";
}

inline void expect_changed_in_frame(PassFunction pass, std::string_view before,
                                    std::string_view after,
                                    const PassContext& context = claim_all()) {
  expect_changed(pass, frame(before), frame(after), context);
}

inline void expect_unchanged_in_frame(PassFunction pass, std::string_view body,
                                      const PassContext& context = claim_all()) {
  expect_unchanged(pass, frame(body), context);
}

}  // namespace rlx
