// The verifier: what every graph satisfies between passes. The pass runner calls it after each
// pass.
#pragma once

#include "ir/graph.h"

namespace rlx {

// Throws kInternal naming the node when: an input is not defined before its use (V1), a type
// differs from what the op infers (V2), the number of inputs is outside the op's arity (V3), two
// values share a name or two outputs do (V4), an output does not exist (V5), a dimension uses an
// undeclared symbol (V6), a constant's bytes do not fit its type (V7).
void verify(const Graph& graph);

}  // namespace rlx
