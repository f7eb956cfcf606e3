// Recognises normalisation over the last axis in its usual spellings and writes it as one op, where
// the target claims that op:
//   x * rsqrt(mean(x^2) + eps) * w                 -> rms_norm(x, w)
//   (x - mean(x)) * rsqrt(variance + eps) * w + b  -> layer_norm(x, w, b)
//   s = x + y; rms_norm(s, w), s also used         -> add_rms_norm(x, y, w)
// The square may be pow or mul, the root rsqrt, 1 / sqrt, pow or a division by sqrt, and the mean a
// sum divided by the extent; f16 and bf16 may be computed through casts to f32. A part that
// something else uses stays, and so does the whole.
//
//   graph "g" {
//     %x = input "x" : f32[2, 8]
//     %w = weight "w" : f32[8]
//     %eps = constant [1e-05] : f32[]
//     %0 = mul(%x, %x) : f32[2, 8]
//     %1 = reduce_mean(%0) axes=[-1] keep_dims=true : f32[2, 1]
//     %2 = add(%1, %eps) : f32[2, 1]
//     %3 = rsqrt(%2) : f32[2, 1]
//     %4 = mul(%x, %3) : f32[2, 8]
//     %y = mul(%4, %w) : f32[2, 8]
//     output "y" %y
//   }
// becomes
//   graph "g" {
//     %x = input "x" : f32[2, 8]
//     %w = weight "w" : f32[8]
//     %y = rms_norm(%x, %w) eps=1e-05 : f32[2, 8]
//     output "y" %y
//   }
#pragma once

#include "passes/pass.h"

namespace rlx {

Graph fuse_norm(const Graph& graph, const PassContext& context);

}  // namespace rlx
