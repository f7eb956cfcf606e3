// Ops that mean a decomposition, written once more as plain loops from their published definitions.
// They share nothing with the decompositions, so an error in either shows.
#pragma once

#include <vector>

#include "ir/op.h"
#include "ir/reference_tensor.h"

namespace rlx {

// True when the op has plain loops here.
bool has_plain_loops(const Op& op);

// The outputs, in double, not rounded.
std::vector<ReferenceTensor> compute_plainly(const Op& op,
                                             const std::vector<ReferenceTensor>& inputs);

}  // namespace rlx
