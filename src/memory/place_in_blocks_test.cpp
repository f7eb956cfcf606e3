#include "memory/place_in_blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "memory/check_placement.h"
#include "memory/random_problem.h"
#include "rlx/error.h"

namespace rlx::memory {
namespace {

TEST(PlaceInBlocks, MovesAUnitThatWouldCrossABoundary) {
  Problem problem;
  for (int i = 0; i < 3; ++i) problem.units.push_back({60, 1, {{0, 1, 0, 60}}});
  const Placement placement = place_in_blocks(problem, 100);
  check_placement(problem, placement);
  EXPECT_THAT(placement.offsets, testing::ElementsAre(0, 100, 200));
  EXPECT_EQ(placement.height_bytes, 260);
  EXPECT_EQ(placement.lower_bound_bytes, 180);
  EXPECT_FALSE(placement.optimal);
}

TEST(PlaceInBlocks, KeepsAPlanThatFitsOneBlock) {
  Problem problem;
  for (int i = 0; i < 3; ++i) problem.units.push_back({60, 1, {{i, i + 2, 0, 60}}});
  const Placement placement = place_in_blocks(problem, 128);
  EXPECT_EQ(placement.height_bytes, 120);
  EXPECT_TRUE(placement.optimal);
}

TEST(PlaceInBlocks, NamesAUnitThatIsLargerThanABlock) {
  Problem problem;
  problem.units.push_back({101, 1, {{0, 1, 0, 101}}});
  try {
    place_in_blocks(problem, 100);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory);
    EXPECT_THAT(error.what(), testing::HasSubstr("101"));
  }
}

TEST(PlaceInBlocks, IsValidOnRandomProblems) {
  Random random(7);
  for (int round = 0; round < 300; ++round) {
    Problem problem;
    const int64_t count = random.between(1, 40);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t alignment = int64_t{1} << random.between(0, 3);
      const int64_t size = random.between(0, 64);
      const int64_t start = random.between(0, 20);
      problem.units.push_back({size, alignment, {{start, start + random.between(1, 10), 0, size}}});
    }
    const Placement placement = place_in_blocks(problem, 64, {.effort_nodes = 0});
    check_placement(problem, placement);
    EXPECT_NO_THROW(check_blocks(problem, placement, 64));
  }
}

TEST(CheckBlocks, NamesAUnitThatCrosses) {
  Problem problem;
  problem.units.push_back({60, 1, {{0, 1, 0, 60}}});
  Placement placement = place(problem);
  placement.offsets[0] = 50;
  EXPECT_THROW(check_blocks(problem, placement, 100), Error);
}

}  // namespace
}  // namespace rlx::memory
