// Joins elementwise ops that feed each other into one `fused` op, where the target claims it, so
// that what lies between never goes to memory. A region grows from its last node to producers all
// of whose uses lie inside, so nothing is computed twice and no output of the graph is swallowed.
//   - All that lies between is f32 or bool, or all of it i64 or bool: a fused op computes in one
//     precision, so joining other dtypes would change the rounding. A cast of f16, bf16 or bool to
//     f32, or of bool to i64, may join.
//   - All nodes of a region have the shape of its result: a smaller one is cheaper on its own.
//   - At most kMaxFusedInputs inputs and kMaxFusedSteps steps; constants of one element are steps.
//
//   graph "g" {
//     %x = input "x" : f32[4]
//     %z = input "z" : f32[4]
//     %0 = exp(%x) : f32[4]
//     %1 = mul(%0, %z) : f32[4]
//     %y = neg(%1) : f32[4]
//     output "y" %y
//   }
// becomes
//   graph "g" {
//     %x = input "x" : f32[4]
//     %z = input "z" : f32[4]
//     %y = fused(%x, %z) formula="t0 = exp(i0); t1 = mul(t0, i1); t2 = neg(t1); t2" : f32[4]
//     output "y" %y
//   }
#pragma once

#include "passes/pass.h"

namespace rlx {

inline constexpr int kMaxFusedInputs = 12;
inline constexpr int kMaxFusedSteps = 64;

Graph fuse_elementwise(const Graph& graph, const PassContext& context);

}  // namespace rlx
