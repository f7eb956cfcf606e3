// Recognises attention written out, where the target claims the op for it:
//   softmax(q . k^T * scale [+ mask]) . v -> attention(q, k, v, [mask])
// with q, k and v of rank 4 as [batch, heads, tokens, dim], the layout in which it is usually
// written. Attention takes [batch, tokens, heads, dim], so transposes are put around it, which
// cancel with the ones that models have there. Heads of k and v that are repeated by a broadcast
// are passed once. The mask is added, or -inf is selected where it is false; a softmax in f32
// between casts is seen through, since attention computes in f32. A part that something else uses
// stays, and so does the whole.
//
//   graph "g" {
//     %q = input "q" : f32[1, 2, 3, 8]
//     %k = input "k" : f32[1, 2, 5, 8]
//     %v = input "v" : f32[1, 2, 5, 8]
//     %scale = constant [0.5] : f32[]
//     %0 = matmul(%q, %k) transpose_b=true : f32[1, 2, 3, 5]
//     %1 = mul(%0, %scale) : f32[1, 2, 3, 5]
//     %2 = softmax(%1) : f32[1, 2, 3, 5]
//     %y = matmul(%2, %v) : f32[1, 2, 3, 8]
//     output "y" %y
//   }
// becomes
//   graph "g" {
//     %q = input "q" : f32[1, 2, 3, 8]
//     %k = input "k" : f32[1, 2, 5, 8]
//     %v = input "v" : f32[1, 2, 5, 8]
//     %0 = transpose(%q) permutation=[0, 2, 1, 3] : f32[1, 3, 2, 8]
//     %1 = transpose(%k) permutation=[0, 2, 1, 3] : f32[1, 5, 2, 8]
//     %2 = transpose(%v) permutation=[0, 2, 1, 3] : f32[1, 5, 2, 8]
//     %3 = attention(%0, %1, %2) scale=0.5 causal=false : f32[1, 3, 2, 8]
//     %y = transpose(%3) permutation=[0, 2, 1, 3] : f32[1, 2, 3, 8]
//     output "y" %y
//   }
#pragma once

#include "passes/pass.h"

namespace rlx {

Graph fuse_attention(const Graph& graph, const PassContext& context);

}  // namespace rlx
