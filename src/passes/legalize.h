// Replaces each op that the target does not claim by the ops it is built from, and those in turn,
// until every op is claimed, a view, a source, or has nothing smaller. What is left over is not an
// error here: check_legal reports all of it at once.
//
// On a target that claims exp, sub, div and the reductions, but no softmax:
//   graph "g" {
//     %x = input "x" : f32[2, 3]
//     %y = softmax(%x) : f32[2, 3]
//     output "y" %y
//   }
// becomes
//   graph "g" {
//     %x = input "x" : f32[2, 3]
//     %0 = reduce_max(%x) axes=[-1] keep_dims=true : f32[2, 1]
//     %1 = sub(%x, %0) : f32[2, 3]
//     %2 = exp(%1) : f32[2, 3]
//     %3 = reduce_sum(%2) axes=[-1] keep_dims=true : f32[2, 1]
//     %y = div(%2, %3) : f32[2, 3]
//     output "y" %y
//   }
#pragma once

#include "passes/pass.h"

namespace rlx {

Graph legalize(const Graph& graph, const PassContext& context);

// Throws kUnsupported when an op that is neither a view nor a source is not claimed by the target;
// the message lists every such op once, with where it comes from and its input types.
void check_legal(const Graph& graph, const PassContext& context);

}  // namespace rlx
