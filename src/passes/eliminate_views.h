// Takes away views that change nothing, and joins views of views: identity reshapes, transposes,
// broadcasts, slices, copies and casts; reshape of reshape, transpose of transpose, broadcast of
// broadcast, slice of slice; a broadcast that its elementwise user does anyway; a swap of the last
// two axes that matmul does anyway. A view of a state stays when the state is written after it.
//
//   graph "g" {
//     %x = input "x" : f32[2, 3, 4]
//     %a = transpose(%x) permutation=[1, 0, 2] : f32[3, 2, 4]
//     %b = transpose(%a) permutation=[1, 0, 2] : f32[2, 3, 4]
//     %c = reshape(%b) shape=[6, 4] : f32[6, 4]
//     %y = reshape(%c) shape=[24] : f32[24]
//     output "y" %y
//   }
// becomes
//   graph "g" {
//     %x = input "x" : f32[2, 3, 4]
//     %y = reshape(%x) shape=[24] : f32[24]
//     output "y" %y
//   }
#pragma once

#include "passes/pass.h"

namespace rlx {

Graph eliminate_views(const Graph& graph, const PassContext& context);

}  // namespace rlx
