// Removes what no output depends on: nodes, weights, constants and states. Inputs stay, since
// callers pass them. A write into a state stays although nothing uses its result: the next run
// reads it.
//
//   graph "g" {
//     %x = input "x" : f32[4]
//     %unused = input "unused" : f32[4]
//     %w = weight "w" : f32[4]
//     %dead = mul(%x, %w) : f32[4]
//     %y = neg(%x) : f32[4]
//     output "y" %y
//   }
// becomes
//   graph "g" {
//     %x = input "x" : f32[4]
//     %unused = input "unused" : f32[4]
//     %y = neg(%x) : f32[4]
//     output "y" %y
//   }
#pragma once

#include "passes/pass.h"

namespace rlx {

Graph remove_dead_code(const Graph& graph, const PassContext& context);

}  // namespace rlx
