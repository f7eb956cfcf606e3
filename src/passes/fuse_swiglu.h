// Joins an activation and the product with what it gates, where the target claims the gated op:
//   silu(gate) * up -> swiglu(gate, up), also as gate * sigmoid(gate) * up
//   gelu(gate) * up -> geglu(gate, up)
//   relu(gate) * up -> reglu(gate, up)
// The activation must have no other use.
//
//   graph "g" {
//     %gate = input "gate" : f32[2, 8]
//     %up = input "up" : f32[2, 8]
//     %0 = sigmoid(%gate) : f32[2, 8]
//     %1 = mul(%gate, %0) : f32[2, 8]
//     %y = mul(%1, %up) : f32[2, 8]
//     output "y" %y
//   }
// becomes
//   graph "g" {
//     %gate = input "gate" : f32[2, 8]
//     %up = input "up" : f32[2, 8]
//     %y = swiglu(%gate, %up) : f32[2, 8]
//     output "y" %y
//   }
#pragma once

#include "passes/pass.h"

namespace rlx {

Graph fuse_swiglu(const Graph& graph, const PassContext& context);

}  // namespace rlx
