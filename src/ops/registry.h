// The table of all ops, made from ops.def, and reading of graph texts that may use any of them.
#pragma once

#include <string_view>

#include "ir/graph.h"
#include "ir/op.h"

namespace rlx {

// Every op of ops.def, in that order. Made at the first call; safe from any thread.
const OpRegistry& all_ops();

// Reads the text form (see ir/text.h) with all ops known.
Graph parse_graph(std::string_view text);

}  // namespace rlx
