// Random small graphs for tests: elementwise ops with broadcasting, reductions, products, views,
// several outputs, a cache, and the patterns that the fusions look for, spelled out. Values stay
// small and ops are continuous where values are, so that two evaluations can be compared.
#pragma once

#include "ir/graph.h"

namespace rlx {

// The same graph for the same seed. Inputs "x0" .. "x2" are f32[2, 4, 8], "v" is f32[8]; the weight
// "w" is f32[8, 8] and "n" f32[8]; the state "s" is f32[2, 6, 8].
Graph make_random_graph(uint32_t seed);

}  // namespace rlx
