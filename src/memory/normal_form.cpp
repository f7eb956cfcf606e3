#include "memory/normal_form.h"

#include <algorithm>
#include <numeric>

#include "base/checked.h"
#include "memory/flatten_pieces.h"
#include "memory/lower_bound.h"

namespace rlx::memory {
bool is_rectangle(const Part& part, const Item& item) {
  return item.slab_end - item.slab_begin == 1 && part.slabs[item.slab_begin].low == 0 &&
         part.slabs[item.slab_begin].high == item.size;
}

namespace {

// A unit in blocks, its lifetime still in steps.
struct Draft {
  int64_t size, alignment, pin;
  int32_t unit;
  bool is_exact;
  std::vector<Piece> pieces;
};

// So few units are planned to the byte.
constexpr size_t kMaxFineUnits = 8;

// The largest block, at most `block`, that every piece begins with.
int64_t find_fine_block(const Problem& problem, int64_t block) {
  for (const Unit& unit : problem.units) {
    for (const Piece& piece : unit.pieces) {
      while (piece.low % block != 0) block /= 2;
    }
  }
  return block;
}

std::vector<Draft> draft_units(const Problem& problem, int64_t block) {
  const int64_t granule = find_block_bytes(problem);
  std::vector<Draft> drafts;
  int64_t sum = 0;
  for (size_t i = 0; i < problem.units.size(); ++i) {
    const Unit& unit = problem.units[i];
    std::vector<Piece> pieces = flatten_pieces(unit.pieces);
    if (pieces.empty()) continue;
    Draft draft;
    draft.size = align_up(unit.size_bytes, granule) / block;
    draft.alignment = std::max<int64_t>(unit.alignment / block, 1);
    draft.pin = unit.pinned_offset < 0 ? -1 : unit.pinned_offset / block;
    draft.unit = static_cast<int32_t>(i);
    draft.is_exact = true;
    for (Piece& piece : pieces) {
      draft.is_exact &= piece.low % block == 0;
      piece.low /= block;
      piece.high = align_up(piece.high, block) / block;
    }
    // Rounding may have made pieces touch.
    draft.pieces = block == 1 ? std::move(pieces) : flatten_pieces(pieces);
    // No rule places anything higher than the sum of everything, aligned, over the highest pin.
    sum = checked_add(sum, checked_mul(checked_add(draft.size, draft.alignment), block));
    sum = checked_add(sum, std::max<int64_t>(unit.pinned_offset, 0));
    drafts.push_back(std::move(draft));
  }
  checked_mul(sum, 4);
  return drafts;
}

// Divides everything by what all numbers have in common. Alignments of 1 need no say: offsets are
// sums of sizes and stay multiples.
int64_t divide_by_common_factor(std::vector<Draft>& drafts) {
  int64_t factor = 0;
  for (const Draft& draft : drafts) {
    factor = std::gcd(factor, draft.size);
    if (draft.alignment > 1) factor = std::gcd(factor, draft.alignment);
    if (draft.pin > 0) factor = std::gcd(factor, draft.pin);
    for (const Piece& piece : draft.pieces) {
      factor = std::gcd(factor, std::gcd(piece.low, piece.high));
    }
  }
  if (factor <= 1) return 1;
  for (Draft& draft : drafts) {
    draft.size /= factor;
    draft.alignment = std::max<int64_t>(draft.alignment / factor, 1);
    if (draft.pin > 0) draft.pin /= factor;
    for (Piece& piece : draft.pieces) {
      piece.low /= factor;
      piece.high /= factor;
    }
  }
  return factor;
}

// Writes sections for steps. A new section begins only where a start follows an end: up to there
// the set of live pieces has only grown, and its last state stands for all before.
int32_t assign_sections(const std::vector<int64_t>& starts, const std::vector<int64_t>& ends,
                        std::vector<int32_t>& first, std::vector<int32_t>& last) {
  struct Event {
    int64_t step;
    int32_t is_start;
    int32_t index;
  };
  std::vector<Event> events;
  events.reserve(2 * starts.size());
  for (size_t i = 0; i < starts.size(); ++i) {
    events.push_back({starts[i], 1, static_cast<int32_t>(i)});
    events.push_back({ends[i], 0, static_cast<int32_t>(i)});
  }
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    if (a.step != b.step) return a.step < b.step;
    return a.is_start != b.is_start ? a.is_start < b.is_start : a.index < b.index;
  });
  first.assign(starts.size(), 0);
  last.assign(starts.size(), 0);
  int32_t section = 0;
  bool has_ended = false;
  for (const Event& event : events) {
    if (event.is_start) {
      if (has_ended) ++section;
      has_ended = false;
      first[event.index] = section;
    } else {
      has_ended = true;
      last[event.index] = section + 1;
    }
  }
  return starts.empty() ? 0 : section + 1;
}

struct SlabTimes {
  std::vector<int64_t> starts, ends;
  std::vector<int32_t> first, last;
};

// Renumbers the sections of a part after items have gone.
void compact_sections(Part& part) {
  SlabTimes times;
  for (const Slab& slab : part.slabs) {
    times.starts.push_back(slab.first);
    times.ends.push_back(slab.last);
  }
  part.num_sections = assign_sections(times.starts, times.ends, times.first, times.last);
  for (size_t i = 0; i < part.slabs.size(); ++i) {
    part.slabs[i].first = times.first[i];
    part.slabs[i].last = times.last[i];
  }
  for (Item& item : part.items) {
    item.first = part.num_sections;
    item.last = 0;
    for (int32_t s = item.slab_begin; s < item.slab_end; ++s) {
      item.first = std::min(item.first, part.slabs[s].first);
      item.last = std::max(item.last, part.slabs[s].last);
    }
  }
}

// Copies the items `indices` of `from` into a part of their own.
Part extract(const Part& from, const std::vector<int32_t>& indices) {
  Part part;
  part.base = from.base;
  for (int32_t index : indices) {
    Item item = from.items[index];
    const int32_t begin = static_cast<int32_t>(part.slabs.size());
    part.slabs.insert(part.slabs.end(), from.slabs.begin() + item.slab_begin,
                      from.slabs.begin() + item.slab_end);
    item.slab_begin = begin;
    item.slab_end = static_cast<int32_t>(part.slabs.size());
    part.items.push_back(item);
  }
  compact_sections(part);
  for (const Item& item : part.items) part.is_exact &= item.is_exact;
  return part;
}

// Splits where no item is alive on both sides.
std::vector<Part> split(const Part& whole) {
  std::vector<int32_t> order(whole.items.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    const Item &x = whole.items[a], &y = whole.items[b];
    return x.first != y.first ? x.first < y.first : a < b;
  });
  std::vector<Part> parts;
  std::vector<int32_t> indices;
  int32_t end = 0;
  for (int32_t index : order) {
    if (!indices.empty() && whole.items[index].first >= end) {
      parts.push_back(extract(whole, indices));
      indices.clear();
    }
    indices.push_back(index);
    end = std::max(end, whole.items[index].last);
  }
  if (!indices.empty()) parts.push_back(extract(whole, indices));
  return parts;
}

// Stacks the residents of `part` and returns whether there were any. Nothing is taken from parts
// with items of several pieces: one of those may reach around a resident, or leave room for it.
bool remove_residents(Part& part, std::vector<int64_t>& offsets) {
  for (const Item& item : part.items) {
    if (item.alignment != 1 || item.pin >= 0 || !is_rectangle(part, item)) return false;
  }
  std::vector<int32_t> others;
  int64_t base = part.base;
  for (size_t i = 0; i < part.items.size(); ++i) {
    const Item& item = part.items[i];
    if (item.last - item.first == part.num_sections) {
      offsets[item.unit] = base;
      base += item.size;
    } else {
      others.push_back(static_cast<int32_t>(i));
    }
  }
  if (others.size() == part.items.size()) return false;
  Part rest = extract(part, others);
  rest.base = base;
  part = std::move(rest);
  return true;
}

}  // namespace

std::vector<int64_t> find_section_totals(const Part& part) {
  std::vector<int64_t> totals(part.num_sections + 1, 0);
  for (const Slab& slab : part.slabs) {
    totals[slab.first] += slab.high - slab.low;
    totals[slab.last] -= slab.high - slab.low;
  }
  totals.pop_back();
  std::partial_sum(totals.begin(), totals.end(), totals.begin());
  return totals;
}

NormalForm make_normal_form(const Problem& problem) {
  NormalForm form;
  form.block_bytes = find_block_bytes(problem);
  if (problem.units.size() <= kMaxFineUnits) {
    form.block_bytes = find_fine_block(problem, form.block_bytes);
  }
  form.offsets.assign(problem.units.size(), 0);
  std::vector<Draft> drafts = draft_units(problem, form.block_bytes);
  form.block_bytes = checked_mul(form.block_bytes, divide_by_common_factor(drafts));

  SlabTimes times;
  for (const Draft& draft : drafts) {
    for (const Piece& piece : draft.pieces) {
      times.starts.push_back(piece.start);
      times.ends.push_back(piece.end);
    }
  }
  Part whole;
  whole.num_sections = assign_sections(times.starts, times.ends, times.first, times.last);
  size_t next = 0;
  for (const Draft& draft : drafts) {
    Item item;
    item.size = draft.size;
    item.alignment = draft.alignment;
    item.pin = draft.pin;
    item.unit = draft.unit;
    item.is_exact = draft.is_exact;
    item.first = whole.num_sections;
    item.slab_begin = static_cast<int32_t>(next);
    int64_t end = draft.pieces[0].end;
    for (const Piece& piece : draft.pieces) end = std::max(end, piece.end);
    item.num_steps = static_cast<int64_t>(std::min<uint64_t>(
        static_cast<uint64_t>(end) - static_cast<uint64_t>(draft.pieces[0].start), INT64_MAX));
    for (const Piece& piece : draft.pieces) {
      whole.slabs.push_back({times.first[next], times.last[next], piece.low, piece.high});
      item.first = std::min(item.first, times.first[next]);
      item.last = std::max(item.last, times.last[next]);
      ++next;
    }
    item.slab_end = static_cast<int32_t>(next);
    whole.items.push_back(item);
  }

  std::vector<Part> pending = split(whole);
  std::reverse(pending.begin(), pending.end());
  while (!pending.empty()) {
    Part part = std::move(pending.back());
    pending.pop_back();
    if (!remove_residents(part, form.offsets)) {
      form.parts.push_back(std::move(part));
      continue;
    }
    if (part.items.empty()) continue;
    std::vector<Part> rest = split(part);
    while (!rest.empty()) {
      pending.push_back(std::move(rest.back()));
      rest.pop_back();
    }
  }
  return form;
}

}  // namespace rlx::memory
