// Pieces of one unit without overlaps: what the planner and the bound count with, since a byte that
// two values of a unit share counts once.
#pragma once

#include <span>
#include <vector>

#include "memory/problem.h"

namespace rlx::memory {

// Returns pieces that cover the same bytes at the same steps, of which no two overlap, sorted by
// start, then low. Empty pieces disappear; pieces that continue one another become one.
std::vector<Piece> flatten_pieces(std::span<const Piece> pieces);

}  // namespace rlx::memory
