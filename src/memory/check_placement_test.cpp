#include "memory/check_placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "memory/random_problem.h"
#include "rlx/error.h"

namespace rlx::memory {
namespace {

using ::testing::HasSubstr;

Problem two_units() {
  Problem problem;
  problem.units = {{10, 1, {{0, 3, 0, 10}}}, {6, 2, {{2, 5, 0, 6}}}};
  return problem;
}

Placement make_placement(std::vector<int64_t> offsets, int64_t height) {
  Placement placement;
  placement.offsets = std::move(offsets);
  placement.height_bytes = height;
  return placement;
}

std::string error_of(const Problem& problem, const Placement& placement) {
  try {
    check_placement(problem, placement);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(CheckPlacement, AcceptsAValidPlan) {
  EXPECT_EQ(error_of(two_units(), make_placement({0, 10}, 16)), "no error");
  EXPECT_EQ(error_of(Problem{}, make_placement({}, 0)), "no error");
}

TEST(CheckPlacement, AcceptsUnitsThatOnlyTouchInTime) {
  Problem problem = two_units();
  problem.units[1].pieces[0].start = 3;
  EXPECT_EQ(error_of(problem, make_placement({0, 0}, 10)), "no error");
}

TEST(CheckPlacement, NamesUnitsBytesAndStepsOfAnOverlap) {
  const std::string error = error_of(two_units(), make_placement({0, 8}, 14));
  EXPECT_THAT(error, HasSubstr("Units 0 and 1 overlap"));
  EXPECT_THAT(error, HasSubstr("unit 0 occupies bytes 0 to 10 during steps 0 to 3"));
  EXPECT_THAT(error, HasSubstr("unit 1 occupies bytes 8 to 14 during steps 2 to 5"));
}

TEST(CheckPlacement, RejectsAWrongNumberOfOffsets) {
  EXPECT_THAT(error_of(two_units(), make_placement({0}, 16)), HasSubstr("1 offsets"));
}

TEST(CheckPlacement, RejectsANegativeOffset) {
  EXPECT_THAT(error_of(two_units(), make_placement({-1, 10}, 16)), HasSubstr("offset -1"));
}

TEST(CheckPlacement, RejectsAMisalignedOffset) {
  EXPECT_THAT(error_of(two_units(), make_placement({0, 11}, 17)), HasSubstr("alignment 2"));
}

TEST(CheckPlacement, RejectsAPinThatMoved) {
  Problem problem = two_units();
  problem.units[0].pinned_offset = 1;
  EXPECT_THAT(error_of(problem, make_placement({0, 10}, 16)), HasSubstr("pinned at 1"));
}

TEST(CheckPlacement, RejectsAHeightThatIsTooLowOrTooHigh) {
  EXPECT_THAT(error_of(two_units(), make_placement({0, 10}, 15)), HasSubstr("height"));
  EXPECT_THAT(error_of(two_units(), make_placement({0, 10}, 17)), HasSubstr("height"));
  EXPECT_THAT(error_of(Problem{}, make_placement({}, 1)), HasSubstr("height"));
}

TEST(CheckPlacement, RejectsAnEndBeyond64Bits) {
  EXPECT_THAT(error_of(two_units(), make_placement({INT64_MAX - 3, 0}, 16)), HasSubstr("64 bits"));
}

TEST(CheckPlacement, SeesAnOverlapUnderPiecesOfTheSameUnit) {
  Problem problem;
  problem.units = {{100, 1, {{0, 9, 0, 100}, {1, 4, 10, 20}}}, {10, 1, {{3, 5, 0, 10}}}};
  EXPECT_THAT(error_of(problem, make_placement({0, 50}, 100)), HasSubstr("overlap"));
  EXPECT_EQ(error_of(problem, make_placement({0, 100}, 110)), "no error");
  problem.units[0].pieces[0].end = 3;
  EXPECT_EQ(error_of(problem, make_placement({0, 50}, 100)), "no error");
  EXPECT_THAT(error_of(problem, make_placement({0, 15}, 100)), HasSubstr("overlap"));
}

TEST(CheckPlacement, AgreesWithAComparisonOfAllPairs) {
  Random random(11);
  int num_valid = 0, num_invalid = 0;
  for (int round = 0; round < 3000; ++round) {
    RandomProblemOptions options;
    options.num_units = static_cast<int>(random.between(1, 4));
    options.has_pieces = true;
    const Problem problem = make_random_problem(random, options);
    Placement placement;
    for (const Unit& unit : problem.units) {
      placement.offsets.push_back(random.between(0, 12));
      placement.height_bytes =
          std::max(placement.height_bytes, placement.offsets.back() + unit.size_bytes);
    }
    bool overlaps = false;
    for (size_t a = 0; a < problem.units.size(); ++a) {
      for (size_t b = a + 1; b < problem.units.size(); ++b) {
        for (const Piece& p : problem.units[a].pieces) {
          for (const Piece& q : problem.units[b].pieces) {
            overlaps |= p.start < q.end && q.start < p.end &&
                        placement.offsets[a] + p.low < placement.offsets[b] + q.high &&
                        placement.offsets[b] + q.low < placement.offsets[a] + p.high;
          }
        }
      }
    }
    EXPECT_EQ(error_of(problem, placement) != "no error", overlaps);
    ++(overlaps ? num_invalid : num_valid);
  }
  EXPECT_GT(num_valid, 300);
  EXPECT_GT(num_invalid, 300);
}

}  // namespace
}  // namespace rlx::memory
