// The order of nodes. A graph lists its nodes in one of many orders that give the same results;
// which one decides how many bytes are alive at once, and so how small any plan can be. The search
// here looks for an order that keeps fewer bytes alive at the peak.
#pragma once

#include <cstdint>
#include <optional>

#include "ir/graph.h"

namespace rlx {

// The same nodes in an order with a lower peak of bytes alive, or nullopt when none was found. The
// peak is estimated from sizes at the symbols' upper bounds, each a multiple of `alignment_bytes`:
// scratch is left out, and an elementwise node is taken to write over an input that dies there.
// Whether the order pays is therefore for the caller to prove, by lowering both. Reads and writes
// of a state keep their order. The search looks at no more than about `effort_nodes` choices, and
// gives the same order on every machine.
std::optional<Graph> find_leaner_order(const Graph& graph, int64_t alignment_bytes,
                                       int64_t effort_nodes);

}  // namespace rlx
