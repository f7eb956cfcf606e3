// Problems and answers for the tests of this folder: random problems of several kinds, the least
// height by trying every offset, which shares nothing with the planner, and the round of a fuzz run
// that compares the two.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "memory/check_placement.h"
#include "memory/lower_bound.h"
#include "memory/place.h"
#include "memory/problem.h"

namespace rlx::memory {

// A small generator whose numbers are the same everywhere (splitmix64).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    state_ += 0x9e3779b97f4a7c15u;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

  // In [low, high].
  int64_t between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(next() % static_cast<uint64_t>(high - low + 1));
  }

 private:
  uint64_t state_;
};

struct RandomProblemOptions {
  int num_units = 6;
  int64_t num_steps = 8;
  int64_t max_size = 6;
  bool has_pins = false;
  bool has_pieces = false;
  bool has_alignments = false;
  int64_t least_alignment = 1;  // of every unit; sizes and pieces stay multiples of 1
};

inline Problem make_random_problem(Random& random, const RandomProblemOptions& options) {
  Problem problem;
  int64_t next_pin = 0;
  for (int i = 0; i < options.num_units; ++i) {
    Unit unit;
    unit.size_bytes = random.between(1, options.max_size);
    unit.alignment = options.least_alignment;
    if (options.has_alignments) unit.alignment <<= random.between(0, 2);
    const int num_pieces = options.has_pieces ? static_cast<int>(random.between(1, 3)) : 1;
    for (int k = 0; k < num_pieces; ++k) {
      const int64_t start = random.between(0, options.num_steps - 1);
      const int64_t end = random.between(start + 1, options.num_steps);
      int64_t low = 0, high = unit.size_bytes;
      if (options.has_pieces && random.between(0, 1) == 1) {
        low = random.between(0, unit.size_bytes - 1);
        high = random.between(low + 1, unit.size_bytes);
      }
      unit.pieces.push_back({start, end, low, high});
    }
    if (options.has_pins && random.between(0, 3) == 0) {
      // Pins above one another never contradict.
      next_pin += random.between(0, 3);
      next_pin += (unit.alignment - next_pin % unit.alignment) % unit.alignment;
      unit.pinned_offset = next_pin;
      next_pin += unit.size_bytes;
    }
    problem.units.push_back(unit);
  }
  return problem;
}

// Problems whose live sizes sum to `height` at every step: each step ends some units and begins
// others of the same sum. Their least height is often above that sum, which is rare among other
// random problems, and it is what tests proofs.
inline Problem make_saturated_problem(Random& random, int num_units, int64_t height) {
  Problem problem;
  std::vector<size_t> alive;
  int64_t step = 0, free_bytes = height;
  while (static_cast<int>(problem.units.size()) < num_units) {
    while (free_bytes > 0) {
      const int64_t size = random.between(1, std::min<int64_t>(free_bytes, (height + 1) / 2));
      alive.push_back(problem.units.size());
      problem.units.push_back({size, 1, {{step, -1, 0, size}}});
      free_bytes -= size;
    }
    ++step;
    const int64_t num_ends = random.between(1, std::max<int64_t>(1, alive.size() / 2));
    for (int64_t k = 0; k < num_ends; ++k) {
      const size_t index = random.next() % alive.size();
      Unit& unit = problem.units[alive[index]];
      unit.pieces[0].end = step;
      free_bytes += unit.size_bytes;
      alive.erase(alive.begin() + index);
    }
  }
  for (size_t unit : alive) problem.units[unit].pieces[0].end = step;
  return problem;
}

// Finds the least height of a small problem by trying all offsets below the best height so far.
class BruteForce {
 public:
  explicit BruteForce(const Problem& problem) : problem_(problem) {
    granule_ = INT64_MAX;
    for (const Unit& unit : problem.units) granule_ = std::min(granule_, unit.alignment);
    offsets_.assign(problem.units.size(), 0);
    order_.resize(problem.units.size());
    std::iota(order_.begin(), order_.end(), 0);
    std::stable_sort(order_.begin(), order_.end(), [&](size_t a, size_t b) {
      return problem.units[a].size_bytes > problem.units[b].size_bytes;
    });
  }

  // `limit` is a height that is known to be possible.
  int64_t find_least_height(int64_t limit) {
    best_ = limit;
    if (best_ > find_most_alive()) descend(0, 0);
    return best_;
  }

 private:
  // The bytes alive together, one by one: less than this is not worth trying.
  int64_t find_most_alive() const {
    int64_t most = 0;
    for (const Unit& at : problem_.units) {
      for (const Piece& piece : at.pieces) {
        int64_t alive = 0;
        for (const Unit& unit : problem_.units) {
          for (int64_t byte = 0; byte < unit.size_bytes; ++byte) {
            alive += std::any_of(unit.pieces.begin(), unit.pieces.end(), [&](const Piece& p) {
              return p.start <= piece.start && piece.start < p.end && p.low <= byte &&
                     byte < p.high;
            });
          }
        }
        most = std::max(most, alive);
      }
    }
    return most;
  }

  bool conflicts(size_t a, size_t b) const {
    for (const Piece& p : problem_.units[a].pieces) {
      for (const Piece& q : problem_.units[b].pieces) {
        if (p.start < q.end && q.start < p.end && offsets_[a] + p.low < offsets_[b] + q.high &&
            offsets_[b] + q.low < offsets_[a] + p.high) {
          return true;
        }
      }
    }
    return false;
  }

  void descend(size_t depth, int64_t height) {
    if (depth == order_.size()) {
      best_ = std::min(best_, height);
      return;
    }
    const size_t index = order_[depth];
    const Unit& unit = problem_.units[index];
    const int64_t first = std::max<int64_t>(unit.pinned_offset, 0);
    for (int64_t offset = first;; offset += unit.alignment) {
      const int64_t end = (offset + unit.size_bytes + granule_ - 1) / granule_ * granule_;
      if (end >= best_) break;
      offsets_[index] = offset;
      bool is_free = true;
      for (size_t d = 0; d < depth && is_free; ++d) is_free = !conflicts(index, order_[d]);
      if (is_free) descend(depth + 1, std::max(height, end));
      if (unit.pinned_offset >= 0) break;
    }
  }

  const Problem& problem_;
  int64_t granule_;
  int64_t best_ = 0;
  std::vector<int64_t> offsets_;
  std::vector<size_t> order_;
};

inline std::string describe(const Problem& problem) {
  std::string text;
  for (const Unit& unit : problem.units) {
    text += fmt::format("\n  size {} alignment {} pin {}:", unit.size_bytes, unit.alignment,
                        unit.pinned_offset);
    for (const Piece& piece : unit.pieces) {
      text += fmt::format(" [{}, {}) x [{}, {})", piece.start, piece.end, piece.low, piece.high);
    }
  }
  return text;
}

// Plans one random problem of up to eight units with full effort and with little, checks both
// plans, and compares with the least height. Returns an empty text, or what is wrong.
inline std::string run_fuzz_round(Random& random, bool& is_above_bound) {
  Problem problem;
  const int kind = static_cast<int>(random.between(0, 9));
  if (kind == 0) {
    problem = make_saturated_problem(random, static_cast<int>(random.between(4, 8)),
                                     random.between(4, 9));
    // Ends of others may have made a few units more.
    if (problem.units.size() > 8) problem.units.resize(8);
    for (Unit& unit : problem.units) unit.pieces[0].end = std::max<int64_t>(unit.pieces[0].end, 1);
  } else {
    RandomProblemOptions options;
    options.num_units = static_cast<int>(random.between(1, 8));
    options.num_steps = random.between(1, 8);
    options.max_size = random.between(1, 8);
    options.has_pins = random.between(0, 2) == 0;
    options.has_pieces = random.between(0, 1) == 0;
    options.has_alignments = random.between(0, 1) == 0;
    options.least_alignment = int64_t{1} << (kind < 7 ? 0 : random.between(1, 3));
    problem = make_random_problem(random, options);
  }
  const Placement placement = place(problem);
  check_placement(problem, placement);
  PlaceOptions little;
  little.effort_nodes = random.between(0, 20);
  const Placement quick = place(problem, little);
  check_placement(problem, quick);
  const int64_t least = BruteForce(problem).find_least_height(placement.height_bytes);
  is_above_bound = least > find_lower_bound(problem).bytes;
  if (least < placement.height_bytes) {
    return fmt::format("The plan has {} bytes, but {} are possible ({}, bound {}).{}",
                       placement.height_bytes, least, placement.method, placement.lower_bound_bytes,
                       describe(problem));
  }
  if (!placement.optimal) {
    return fmt::format("The plan of {} bytes is the least, but only {} are proven.{}", least,
                       placement.lower_bound_bytes, describe(problem));
  }
  if (quick.lower_bound_bytes > least) {
    return fmt::format("With {} nodes {} bytes are called a bound, but {} are possible.{}",
                       little.effort_nodes, quick.lower_bound_bytes, least, describe(problem));
  }
  return "";
}

}  // namespace rlx::memory
