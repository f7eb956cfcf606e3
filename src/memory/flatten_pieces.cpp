#include "memory/flatten_pieces.h"

#include <algorithm>
#include <tuple>

namespace rlx::memory {
namespace {

bool is_before(const Piece& a, const Piece& b) {
  return std::tie(a.start, a.low, a.end, a.high) < std::tie(b.start, b.low, b.end, b.high);
}

// The bytes that `active` covers, as disjoint intervals in rising order that do not touch.
void merge_bytes(std::vector<Piece>& active, std::vector<std::pair<int64_t, int64_t>>& merged) {
  std::sort(active.begin(), active.end(),
            [](const Piece& a, const Piece& b) { return a.low < b.low; });
  merged.clear();
  for (const Piece& piece : active) {
    if (!merged.empty() && piece.low <= merged.back().second) {
      merged.back().second = std::max(merged.back().second, piece.high);
    } else {
      merged.emplace_back(piece.low, piece.high);
    }
  }
}

}  // namespace

std::vector<Piece> flatten_pieces(std::span<const Piece> pieces) {
  std::vector<Piece> sorted;
  for (const Piece& piece : pieces) {
    if (piece.start < piece.end && piece.low < piece.high) sorted.push_back(piece);
  }
  if (sorted.size() <= 1) return sorted;
  std::sort(sorted.begin(), sorted.end(), is_before);
  std::vector<int64_t> steps;
  for (const Piece& piece : sorted) {
    steps.push_back(piece.start);
    steps.push_back(piece.end);
  }
  std::sort(steps.begin(), steps.end());
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());

  std::vector<Piece> result, open, still_open, active;
  std::vector<std::pair<int64_t, int64_t>> merged;
  size_t next = 0;
  for (size_t i = 0; i + 1 < steps.size(); ++i) {
    const int64_t start = steps[i], end = steps[i + 1];
    std::erase_if(active, [&](const Piece& piece) { return piece.end <= start; });
    while (next < sorted.size() && sorted[next].start == start) active.push_back(sorted[next++]);
    merge_bytes(active, merged);
    // An open piece with the same bytes goes on; the others end here. Both lists rise by `low`.
    still_open.clear();
    size_t o = 0;
    for (const auto& [low, high] : merged) {
      while (o < open.size() && open[o].low < low) result.push_back(open[o++]);
      if (o < open.size() && open[o].low == low && open[o].high == high) {
        still_open.push_back(open[o++]);
        still_open.back().end = end;
      } else {
        still_open.push_back({start, end, low, high});
      }
    }
    while (o < open.size()) result.push_back(open[o++]);
    open.swap(still_open);
  }
  result.insert(result.end(), open.begin(), open.end());
  std::sort(result.begin(), result.end(), is_before);
  return result;
}

}  // namespace rlx::memory
