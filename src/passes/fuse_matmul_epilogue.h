// Joins a product with a weight and what follows it, where the target claims linear for it:
//   activation(matmul(x, w^T) [+ bias]) [+ residual] -> linear(x, w, [bias], [residual])
// The weight is [n, k], the bias a vector of n elements, the residual of the result's type. What
// lies between has one use and is no output of the graph. Where the target does not claim the
// whole, the longest part that it claims is taken.
//
//   graph "g" {
//     %x = input "x" : f32[2, 8]
//     %r = input "r" : f32[2, 4]
//     %w = weight "w" : f32[4, 8]
//     %b = weight "b" : f32[4]
//     %0 = matmul(%x, %w) transpose_b=true : f32[2, 4]
//     %1 = add(%0, %b) : f32[2, 4]
//     %2 = silu(%1) : f32[2, 4]
//     %y = add(%r, %2) : f32[2, 4]
//     output "y" %y
//   }
// becomes
//   graph "g" {
//     %x = input "x" : f32[2, 8]
//     %r = input "r" : f32[2, 4]
//     %w = weight "w" : f32[4, 8]
//     %b = weight "b" : f32[4]
//     %y = linear(%x, %w, %b, %r) bias=true residual=true activation=silu : f32[2, 4]
//     output "y" %y
//   }
#pragma once

#include "passes/pass.h"

namespace rlx {

Graph fuse_matmul_epilogue(const Graph& graph, const PassContext& context);

}  // namespace rlx
