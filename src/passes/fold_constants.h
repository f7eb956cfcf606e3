// Computes what depends on constants only, by the reference meaning of the ops, rounded to the
// dtype of the result. Left as they are: results larger than PassContext::max_folded_bytes, views
// that would only repeat bytes that are there already, and nodes whose evaluation fails (the run
// reports the failure).
//
//   graph "g" {
//     %x = input "x" : f32[2]
//     %a = constant [1, 2] : f32[2]
//     %b = constant [0.5] : f32[]
//     %c = mul(%a, %b) : f32[2]
//     %y = add(%x, %c) : f32[2]
//     output "y" %y
//   }
// becomes
//   graph "g" {
//     %x = input "x" : f32[2]
//     %c = constant [0.5, 1] : f32[2]
//     %y = add(%x, %c) : f32[2]
//     output "y" %y
//   }
#pragma once

#include "passes/pass.h"

namespace rlx {

Graph fold_constants(const Graph& graph, const PassContext& context);

}  // namespace rlx
