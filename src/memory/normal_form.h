// A problem made small before anything is searched: bytes in blocks, steps in sections, split into
// parts that do not touch one another, without what lives all the time.
#pragma once

#include <cstdint>
#include <vector>

#include "memory/problem.h"

namespace rlx::memory {

// Blocks [low, high), counted from the item's offset, are occupied during sections [first, last).
struct Slab {
  int32_t first, last;
  int64_t low, high;
};

// A unit with at least one piece. Its slabs do not overlap one another.
struct Item {
  int64_t size = 0;       // blocks
  int64_t alignment = 1;  // blocks
  int64_t pin = -1;       // blocks from the base of the part; -1: free
  int32_t first = 0, last = 0;
  int64_t num_steps = 0;                 // from the first start to the last end
  int32_t slab_begin = 0, slab_end = 0;  // into Part::slabs
  int32_t unit = 0;
  bool is_exact = true;  // see Part
};

// Items that share no section with items of other parts. A section is a set of items alive together
// that lies inside no larger such set: two items overlap in time exactly when they share a section.
struct Part {
  std::vector<Item> items;
  std::vector<Slab> slabs;
  int32_t num_sections = 0;
  int64_t base = 0;  // blocks below the part that residents take
  // Whether every piece begins with a whole block. A piece that does not is counted from the block
  // that it begins in, so what cannot be done in blocks might be done in bytes.
  bool is_exact = true;
};

struct NormalForm {
  int64_t block_bytes = 1;
  std::vector<Part> parts;
  std::vector<int64_t> offsets;  // blocks, per unit: those known already, 0 for the rest
};

// Whether an item fills all its bytes at every section of its life.
bool is_rectangle(const Part& part, const Item& item);

// The sum of the items alive in each section, in blocks.
std::vector<int64_t> find_section_totals(const Part& part);

// Residents (items that live in all sections of a part) are stacked at the bottom, and what remains
// is split again; this loses nothing where all items are free rectangles, and only there it is
// done. Throws rlx::Error when sizes do not fit in 64 bits. Precondition: check_problem passes.
NormalForm make_normal_form(const Problem& problem);

}  // namespace rlx::memory
