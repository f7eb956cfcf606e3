#include "perfect_cut.h"

#include <algorithm>
#include <vector>

namespace rlx::memory {
namespace {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u) {}

  // In [low, high] (splitmix64).
  int64_t between(int64_t low, int64_t high) {
    state_ += 0x9e3779b97f4a7c15u;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return low + static_cast<int64_t>(z % static_cast<uint64_t>(high - low + 1));
  }

 private:
  uint64_t state_;
};

struct Box {
  int64_t start, end, low, high;
  int64_t width() const { return end - start; }
  int64_t height() const { return high - low; }
};

class Cutter {
 public:
  explicit Cutter(const PerfectCut& options) : options_(options), random_(options.seed) {
    boxes_.push_back({0, options.num_steps, 0, options.height_bytes});
  }

  std::vector<Box> cut() {
    const size_t wanted = static_cast<size_t>(options_.num_units);
    for (int64_t tries = 0; boxes_.size() < wanted && tries < 1000 * int64_t{options_.num_units};
         ++tries) {
      const size_t index = pick();
      if (options_.kind == CutKind::kPinwheel && boxes_.size() + 4 <= wanted) {
        cut_pinwheel(index);
      } else {
        cut_straight(index);
      }
    }
    return boxes_;
  }

 private:
  // The largest of three, so that boxes stay of comparable size.
  size_t pick() {
    size_t best = 0;
    double best_area = -1;
    for (int k = 0; k < 3; ++k) {
      const size_t index = static_cast<size_t>(random_.between(0, boxes_.size() - 1));
      const Box& box = boxes_[index];
      const double area = static_cast<double>(box.width()) * static_cast<double>(box.height());
      if (area > best_area) {
        best_area = area;
        best = index;
      }
    }
    return best;
  }

  void cut_straight(size_t index) {
    Box box = boxes_[index];
    Box rest = box;
    const bool cuts_time = random_.between(0, 1) == 0;
    if ((cuts_time ? box.width() : box.height()) < 2) return;
    if (cuts_time) {
      box.end = rest.start = random_.between(box.start + 1, box.end - 1);
    } else {
      box.high = rest.low = random_.between(box.low + 1, box.high - 1);
    }
    boxes_[index] = box;
    boxes_.push_back(rest);
  }

  // Four boxes around a fifth, turning either way.
  void cut_pinwheel(size_t index) {
    const Box box = boxes_[index];
    if (box.width() < 3 || box.height() < 3) return;
    const int64_t t1 = random_.between(box.start + 1, box.end - 2);
    const int64_t t2 = random_.between(t1 + 1, box.end - 1);
    const int64_t b1 = random_.between(box.low + 1, box.high - 2);
    const int64_t b2 = random_.between(b1 + 1, box.high - 1);
    if (random_.between(0, 1) == 0) {
      boxes_[index] = {box.start, t2, box.low, b1};
      boxes_.push_back({t2, box.end, box.low, b2});
      boxes_.push_back({t1, box.end, b2, box.high});
      boxes_.push_back({box.start, t1, b1, box.high});
    } else {
      boxes_[index] = {t1, box.end, box.low, b1};
      boxes_.push_back({t2, box.end, b1, box.high});
      boxes_.push_back({box.start, t2, b2, box.high});
      boxes_.push_back({box.start, t1, box.low, b2});
    }
    boxes_.push_back({t1, t2, b1, b2});
  }

  const PerfectCut& options_;
  Random random_;
  std::vector<Box> boxes_;
};

}  // namespace

Problem make_perfect_cut(const PerfectCut& options) {
  Problem problem;
  for (const Box& box : Cutter(options).cut()) {
    problem.units.push_back({box.height(), 1, {{box.start, box.end, 0, box.height()}}});
  }
  return problem;
}

Problem make_synthetic_network(const SyntheticNetwork& options) {
  Random random(options.seed);
  Problem problem;
  for (int32_t i = 0; i < options.num_units; ++i) {
    int64_t length = random.between(1, 4);
    if (random.between(0, 9) == 0) length = random.between(5, 60);
    if (random.between(0, 99) == 0) length = random.between(60, 1000);
    const int64_t size = 64 * random.between(1, 1 << random.between(2, 14));
    problem.units.push_back({size, 64, {{i, i + 1 + length, 0, size}}});
  }
  return problem;
}

}  // namespace rlx::memory
