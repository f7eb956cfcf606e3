// Applies the algebra that holds bit for bit, NaN, infinities and the sign of zero included: each
// rule stands in simplify_algebra.cpp with its formula. What only holds for real numbers is not
// done: x * 0 -> 0, x + 0 -> x and (x + c0) + c1 -> x + (c0 + c1) are for integers alone, since a
// float x may be NaN or -0, and a float sum rounds.
//
//   graph "g" {
//     %x = input "x" : f32[4]
//     %one = constant [1] : f32[]
//     %four = constant [4] : f32[]
//     %a = mul(%x, %one) : f32[4]
//     %y = div(%a, %four) : f32[4]
//     output "y" %y
//   }
// becomes
//   graph "g" {
//     %x = input "x" : f32[4]
//     %0 = constant [0.25] : f32[]
//     %y = mul(%x, %0) : f32[4]
//     output "y" %y
//   }
#pragma once

#include "passes/pass.h"

namespace rlx {

Graph simplify_algebra(const Graph& graph, const PassContext& context);

}  // namespace rlx
