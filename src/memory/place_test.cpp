#include "memory/place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "memory/check_placement.h"
#include "memory/lower_bound.h"
#include "memory/random_problem.h"
#include "rlx/error.h"

namespace rlx::memory {
namespace {

Problem make_problem(const std::vector<std::vector<int64_t>>& rows) {
  Problem problem;
  for (const auto& row : rows) problem.units.push_back({row[2], 1, {{row[0], row[1], 0, row[2]}}});
  return problem;
}

TEST(Place, OfNothingIsNothing) {
  const Placement placement = place(Problem{});
  EXPECT_EQ(placement.height_bytes, 0);
  EXPECT_EQ(placement.lower_bound_bytes, 0);
  EXPECT_TRUE(placement.optimal);
}

TEST(Place, ReachesTheBoundOnAChain) {
  const Problem problem = make_problem({{0, 2, 10}, {1, 3, 20}, {2, 4, 10}, {3, 5, 20}});
  const Placement placement = place(problem);
  check_placement(problem, placement);
  EXPECT_EQ(placement.height_bytes, 30);
  EXPECT_EQ(placement.peak_step, 1);
  EXPECT_TRUE(placement.optimal);
}

TEST(Place, PutsUnitsOfZeroBytesAtZero) {
  Problem problem = make_problem({{0, 2, 10}, {0, 2, 0}, {0, 2, 4}});
  problem.units.push_back({0, 64, {}, 128});
  const Placement placement = place(problem);
  check_placement(problem, placement);
  EXPECT_EQ(placement.offsets[1], 0);
  EXPECT_EQ(placement.offsets[3], 128);
  EXPECT_EQ(placement.height_bytes, 14);
}

TEST(Place, KeepsUnitsWithoutPiecesInsideThePlan) {
  Problem problem;
  problem.units = {{100, 1, {}}, {10, 1, {{0, 1, 0, 10}}}};
  const Placement placement = place(problem);
  check_placement(problem, placement);
  EXPECT_EQ(placement.height_bytes, 100);
  EXPECT_TRUE(placement.optimal);
}

TEST(Place, RoundsTheHeightToTheSmallestAlignment) {
  Problem problem;
  problem.units = {{100, 64, {{0, 1, 0, 100}}}, {30, 64, {{0, 1, 0, 30}}}};
  const Placement placement = place(problem);
  check_placement(problem, placement);
  EXPECT_EQ(placement.height_bytes, 192);
  EXPECT_TRUE(placement.optimal);
}

TEST(Place, KeepsPins) {
  Problem problem = make_problem({{0, 4, 10}, {0, 4, 5}, {2, 6, 10}});
  problem.units[0].pinned_offset = 7;
  const Placement placement = place(problem);
  check_placement(problem, placement);
  EXPECT_EQ(placement.offsets[0], 7);
  EXPECT_EQ(placement.height_bytes, 27);
}

TEST(Place, NamesPinsThatOverlap) {
  Problem problem = make_problem({{0, 4, 10}, {3, 6, 5}});
  problem.units[0].pinned_offset = 7;
  problem.units[1].pinned_offset = 16;
  EXPECT_THROW(place(problem), Error);
  problem.units[1].pieces[0].start = 4;
  check_placement(problem, place(problem));
}

TEST(Place, UsesHolesOfAUnit) {
  // Bytes 10 to 20 of the first unit are written at step 4 only.
  Problem problem;
  problem.units = {{30, 1, {{0, 6, 0, 10}, {0, 6, 20, 30}, {4, 6, 10, 20}}},
                   {10, 1, {{1, 3, 0, 10}}}};
  const Placement placement = place(problem);
  check_placement(problem, placement);
  EXPECT_EQ(placement.height_bytes, 30);
}

TEST(Place, StopsBeforeSumsOverflow) {
  Problem problem = make_problem({{0, 1, INT64_MAX / 3}, {2, 3, INT64_MAX / 3}});
  EXPECT_THROW(place(problem), Error);
}

// Plans random problems and compares with the least height by brute force. Returns how many had
// their optimum above the largest sum alive, which are the ones that test proofs.
int compare_with_brute_force(const RandomProblemOptions& base, int num_rounds, uint64_t seed) {
  Random random(seed);
  int num_above_bound = 0;
  for (int round = 0; round < num_rounds; ++round) {
    RandomProblemOptions options = base;
    options.num_units = static_cast<int>(random.between(2, base.num_units));
    options.num_steps = random.between(3, base.num_steps);
    options.max_size = random.between(2, base.max_size);
    const Problem problem = make_random_problem(random, options);
    const Placement placement = place(problem);
    check_placement(problem, placement);
    const int64_t least = BruteForce(problem).find_least_height(placement.height_bytes);
    EXPECT_EQ(placement.height_bytes, least) << "round " << round;
    EXPECT_LE(placement.lower_bound_bytes, least) << "round " << round;
    num_above_bound += least > find_lower_bound(problem).bytes;
  }
  return num_above_bound;
}

TEST(Place, IsAsLowAsBruteForceForRectangles) {
  RandomProblemOptions options;
  options.num_units = 8;
  compare_with_brute_force(options, 400, 21);
}

TEST(Place, ProvesHeightsAboveTheSumAlive) {
  Random random(31);
  int num_above_bound = 0;
  for (int round = 0; round < 4000; ++round) {
    const Problem problem = make_saturated_problem(random, static_cast<int>(random.between(8, 13)),
                                                   random.between(4, 9));
    const Placement placement = place(problem);
    check_placement(problem, placement);
    EXPECT_TRUE(placement.optimal);
    EXPECT_EQ(BruteForce(problem).find_least_height(placement.height_bytes),
              placement.height_bytes);
    num_above_bound += placement.height_bytes > find_lower_bound(problem).bytes;
  }
  EXPECT_GT(num_above_bound, 1);
}

TEST(Place, IsAsLowAsBruteForceWithAlignments) {
  RandomProblemOptions options;
  options.num_units = 7;
  options.has_alignments = true;
  EXPECT_GT(compare_with_brute_force(options, 1000, 22), 100);
}

TEST(Place, IsAsLowAsBruteForceWithPins) {
  RandomProblemOptions options;
  options.num_units = 7;
  options.has_pins = true;
  EXPECT_GT(compare_with_brute_force(options, 1000, 23), 100);
  options.has_alignments = true;
  EXPECT_GT(compare_with_brute_force(options, 1000, 24), 100);
}

TEST(Place, IsProvenAndAsLowAsBruteForceOnEveryKindOfSmallProblem) {
  Random random(7);
  int num_above_bound = 0;
  for (int round = 0; round < 8000; ++round) {
    bool is_above_bound = false;
    ASSERT_EQ(run_fuzz_round(random, is_above_bound), "") << "round " << round;
    num_above_bound += is_above_bound;
  }
  EXPECT_GT(num_above_bound, 1000);
}

// A unit that ends inside its last block and a piece that begins in the same block, behind it.
Problem make_shared_block() {
  Problem problem;
  problem.units = {{60, 64, {{0, 2, 0, 60}}}, {64, 64, {{0, 2, 61, 64}}}};
  return problem;
}

TEST(Place, LetsAPieceBeginInsideABlock) {
  const Problem problem = make_shared_block();
  const Placement placement = place(problem);
  check_placement(problem, placement);
  EXPECT_EQ(placement.height_bytes, 64);
  EXPECT_TRUE(placement.optimal);
}

TEST(Place, CallsNoPlanOptimalThatBytesCouldBeat) {
  Problem problem = make_shared_block();
  for (int64_t i = 0; i < 10; ++i) problem.units.push_back({10, 64, {{i + 2, i + 3, 0, 10}}});
  const Placement placement = place(problem);
  check_placement(problem, placement);
  EXPECT_EQ(placement.lower_bound_bytes, 64);
  EXPECT_EQ(placement.optimal, placement.height_bytes == 64);
}

TEST(Place, ProvesUnitsThatInterlock) {
  // Each unit lies under the other at one step; twelve units, so that nothing is planned to the
  // byte.
  Problem problem;
  problem.units = {{20, 1, {{0, 1, 0, 10}, {1, 2, 10, 20}}},
                   {20, 1, {{0, 1, 10, 20}, {1, 2, 0, 10}}}};
  for (int64_t i = 0; i < 10; ++i) problem.units.push_back({5, 1, {{0, 2, 0, 5}}});
  const Placement placement = place(problem);
  check_placement(problem, placement);
  EXPECT_EQ(placement.height_bytes, 70);
  EXPECT_TRUE(placement.optimal);
}

TEST(Place, RandomProblemsPassTheChecker) {
  Random random(3);
  for (int round = 0; round < 4000; ++round) {
    RandomProblemOptions options;
    options.num_units = static_cast<int>(random.between(1, 30));
    options.num_steps = random.between(1, 30);
    options.max_size = random.between(1, 40);
    options.has_pins = random.between(0, 2) == 0;
    options.has_pieces = random.between(0, 2) == 0;
    options.has_alignments = random.between(0, 2) == 0;
    const Problem problem = make_random_problem(random, options);
    PlaceOptions place_options;
    place_options.effort_nodes = 200;
    const Placement placement = place(problem, place_options);
    check_placement(problem, placement);
    EXPECT_GE(placement.height_bytes, find_lower_bound(problem).bytes);
    EXPECT_LE(placement.lower_bound_bytes, placement.height_bytes);
  }
}

}  // namespace
}  // namespace rlx::memory
