// Merges nodes that compute the same: equal op and attributes on the same inputs (in either order
// for sums and the like), and constants and weights that are equal. Never merged are writes in
// place, and reads of a state between which it is written.
//
//   graph "g" {
//     %x = input "x" : f32[4]
//     %a = exp(%x) : f32[4]
//     %b = exp(%x) : f32[4]
//     %y = add(%a, %b) : f32[4]
//     output "y" %y
//   }
// becomes
//   graph "g" {
//     %x = input "x" : f32[4]
//     %a = exp(%x) : f32[4]
//     %y = add(%a, %a) : f32[4]
//     output "y" %y
//   }
#pragma once

#include "passes/pass.h"

namespace rlx {

Graph eliminate_common_subexpressions(const Graph& graph, const PassContext& context);

}  // namespace rlx
