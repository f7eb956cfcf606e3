#include "memory/problem.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "memory/flatten_pieces.h"
#include "memory/lower_bound.h"
#include "memory/random_problem.h"
#include "rlx/error.h"

namespace rlx::memory {
namespace {

using ::testing::HasSubstr;

std::string error_of(const std::vector<Value>& values) {
  try {
    join_aliases(values);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

Value make_value(int64_t size, int64_t start, int64_t end, int64_t alias_of = -1,
                 int64_t delta = 0) {
  Value value;
  value.size_bytes = size;
  value.start = start;
  value.end = end;
  value.alias_of = alias_of;
  value.alias_delta_bytes = delta;
  return value;
}

TEST(JoinAliases, GivesEveryPlainValueItsOwnUnit) {
  const Joined joined =
      join_aliases(std::vector<Value>{make_value(100, 0, 2), make_value(50, 1, 3)});
  ASSERT_EQ(joined.problem.units.size(), 2u);
  EXPECT_EQ(joined.unit_of_value, (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(joined.delta_of_value, (std::vector<int64_t>{0, 0}));
  EXPECT_EQ(joined.problem.units[0].size_bytes, 100);
  EXPECT_EQ(joined.problem.units[0].alignment, 64);
  ASSERT_EQ(joined.problem.units[1].pieces.size(), 1u);
  EXPECT_EQ(joined.problem.units[1].pieces[0].start, 1);
  EXPECT_EQ(joined.problem.units[1].pieces[0].end, 3);
}

TEST(JoinAliases, MergesAnInPlaceChainIntoOneRectangle) {
  const Joined joined = join_aliases(
      std::vector<Value>{make_value(64, 0, 3), make_value(64, 2, 5, 0), make_value(64, 4, 9, 1)});
  ASSERT_EQ(joined.problem.units.size(), 1u);
  ASSERT_EQ(joined.problem.units[0].pieces.size(), 1u);
  EXPECT_EQ(joined.problem.units[0].pieces[0].start, 0);
  EXPECT_EQ(joined.problem.units[0].pieces[0].end, 9);
}

TEST(JoinAliases, PutsPartsOfAConcatenationAtTheirDeltas) {
  // The whole is value 2 and lives from step 4; its parts are written at steps 0 and 2.
  const Joined joined = join_aliases(std::vector<Value>{
      make_value(64, 0, 5, 2, 0), make_value(128, 2, 5, 2, 64), make_value(192, 4, 8)});
  ASSERT_EQ(joined.problem.units.size(), 1u);
  EXPECT_EQ(joined.delta_of_value, (std::vector<int64_t>{0, 64, 0}));
  EXPECT_EQ(joined.problem.units[0].size_bytes, 192);
  const LowerBound bound = find_lower_bound(joined.problem);
  EXPECT_EQ(bound.bytes, 192);
  EXPECT_EQ(bound.step, 2);
  ASSERT_EQ(joined.problem.units[0].pieces.size(), 2u);
  EXPECT_EQ(joined.problem.units[0].pieces[0].high, 64);
  EXPECT_EQ(joined.problem.units[0].pieces[1].high, 192);
}

TEST(JoinAliases, KeepsOnlyTheBytesOfAViewThatOutlivesItsSource) {
  const Joined joined =
      join_aliases(std::vector<Value>{make_value(1024, 0, 2), make_value(64, 1, 9, 0, 256)});
  const Unit& unit = joined.problem.units[0];
  ASSERT_EQ(unit.pieces.size(), 2u);
  EXPECT_EQ(unit.pieces[1].start, 2);
  EXPECT_EQ(unit.pieces[1].low, 256);
  EXPECT_EQ(unit.pieces[1].high, 320);
}

TEST(JoinAliases, KeepsTheOwnerAlignedWhenAnAliasBeginsBeforeIt) {
  const Joined joined =
      join_aliases(std::vector<Value>{make_value(100, 0, 2), make_value(100, 0, 2, 0, -10)});
  EXPECT_EQ(joined.delta_of_value, (std::vector<int64_t>{64, 54}));
  EXPECT_EQ(joined.problem.units[0].size_bytes, 164);
}

TEST(JoinAliases, GivesAValueOfZeroBytesAUnitOfZeroBytes) {
  const Joined joined = join_aliases(std::vector<Value>{
      make_value(64, 0, 2), make_value(0, 0, 9, 0, 8), make_value(32, 1, 3, 1, 8)});
  ASSERT_EQ(joined.problem.units.size(), 2u);
  EXPECT_EQ(joined.problem.units[joined.unit_of_value[1]].size_bytes, 0);
  EXPECT_EQ(joined.unit_of_value[0], joined.unit_of_value[2]);
  EXPECT_EQ(joined.delta_of_value[2], 16);
}

TEST(JoinAliases, AcceptsACycleWhoseDeltasAgree) {
  const Joined joined =
      join_aliases(std::vector<Value>{make_value(64, 0, 2, 1, 32), make_value(64, 0, 2, 0, -32)});
  EXPECT_EQ(joined.problem.units.size(), 1u);
  EXPECT_EQ(joined.delta_of_value[0] - joined.delta_of_value[1], 32);
}

TEST(JoinAliases, MovesAPinToTheUnit) {
  std::vector<Value> values{make_value(256, 0, 2), make_value(64, 1, 4, 0, 128)};
  values[1].pinned_offset = 640;
  EXPECT_EQ(join_aliases(values).problem.units[0].pinned_offset, 512);
}

TEST(JoinAliases, RejectsWhatContradictsItself) {
  EXPECT_THAT(error_of({make_value(8, 0, 1, 1)}), HasSubstr("alias of value 1"));
  EXPECT_THAT(error_of({make_value(8, 0, 1, -2)}), HasSubstr("alias of value -2"));
  EXPECT_THAT(error_of({make_value(8, 0, 1, 0, 8)}), HasSubstr("said to begin 8 bytes"));
  EXPECT_THAT(error_of({make_value(8, 0, 1, 1, 8), make_value(8, 0, 1, 0, 8)}),
              HasSubstr("said to begin"));
  EXPECT_THAT(error_of({make_value(-8, 0, 1)}), HasSubstr("-8 bytes"));
  EXPECT_THAT(error_of({make_value(8, 2, 1)}), HasSubstr("from step 2 to step 1"));
  EXPECT_THAT(error_of({make_value(INT64_MAX, 0, 1)}), HasSubstr("64 bits"));
  EXPECT_THAT(error_of({make_value(8, 0, 1), make_value(8, 0, 1, 0, INT64_MAX),
                        make_value(8, 0, 1, 1, INT64_MAX)}),
              HasSubstr("64 bits"));
  Value odd = make_value(8, 0, 1);
  odd.alignment = 48;
  EXPECT_THAT(error_of({odd}), HasSubstr("alignment 48"));
  std::vector<Value> pins{make_value(128, 0, 1), make_value(64, 0, 1, 0, 64)};
  pins[0].pinned_offset = 64;
  pins[1].pinned_offset = 64;
  EXPECT_THAT(error_of(pins), HasSubstr("contradict their aliases"));
  pins[0].pinned_offset = -1;
  pins[1].pinned_offset = 32;
  EXPECT_THAT(error_of(pins), HasSubstr("offset -32"));
}

TEST(FlattenPieces, CoversTheSameBytesOnce) {
  Random random(7);
  for (int round = 0; round < 300; ++round) {
    std::vector<Piece> pieces;
    const int count = static_cast<int>(random.between(0, 6));
    for (int i = 0; i < count; ++i) {
      const int64_t start = random.between(0, 6), low = random.between(0, 6);
      pieces.push_back({start, random.between(start, 7), low, random.between(low, 7)});
    }
    std::set<std::pair<int64_t, int64_t>> covered;
    for (const Piece& piece : pieces) {
      for (int64_t t = piece.start; t < piece.end; ++t) {
        for (int64_t b = piece.low; b < piece.high; ++b) covered.insert({t, b});
      }
    }
    std::set<std::pair<int64_t, int64_t>> flat;
    for (const Piece& piece : flatten_pieces(pieces)) {
      for (int64_t t = piece.start; t < piece.end; ++t) {
        for (int64_t b = piece.low; b < piece.high; ++b) EXPECT_TRUE(flat.insert({t, b}).second);
      }
    }
    EXPECT_EQ(flat, covered);
  }
}

TEST(LowerBound, CountsTheBytesAliveTogetherAtTheFirstSuchStep) {
  Problem problem;
  problem.units = {{10, 1, {{0, 3, 0, 10}}}, {5, 1, {{3, 6, 0, 5}}}, {6, 1, {{2, 4, 0, 6}}}};
  const LowerBound bound = find_lower_bound(problem);
  EXPECT_EQ(bound.bytes, 16);
  EXPECT_EQ(bound.step, 2);
}

TEST(LowerBound, CountsWholeBlocksOfTheSmallestAlignment) {
  Problem problem;
  problem.units = {{100, 64, {{0, 3, 0, 100}}}, {5, 64, {{0, 6, 0, 5}}}};
  EXPECT_EQ(find_lower_bound(problem).bytes, 192);
  problem.units[1].alignment = 4;
  EXPECT_EQ(find_lower_bound(problem).bytes, 108);
}

TEST(LowerBound, OfNothingIsZero) {
  EXPECT_EQ(find_lower_bound(Problem{}).bytes, 0);
  Problem problem;
  problem.units = {{0, 64, {}}, {0, 64, {{1, 3, 0, 0}}}};
  EXPECT_EQ(find_lower_bound(problem).bytes, 0);
}

TEST(LowerBound, ReportsASumThatDoesNotFit) {
  Problem problem;
  const int64_t huge = INT64_MAX / 2;
  problem.units.assign(3, {huge, 1, {{0, 1, 0, huge}}});
  EXPECT_THROW(find_lower_bound(problem), Error);
}

TEST(CheckProblem, NamesTheUnit) {
  Problem problem;
  problem.units = {{8, 1, {{0, 1, 0, 8}}}, {8, 1, {{0, 1, 0, 9}}}};
  try {
    check_problem(problem);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("unit 1 covers bytes 0 to 9"));
  }
  problem.units[1] = {8, 8, {}, 4};
  EXPECT_THROW(check_problem(problem), Error);
  problem.units[1] = {8, 8, {}, -3};
  EXPECT_THROW(check_problem(problem), Error);
  problem.units[1] = {8, 3, {}};
  EXPECT_THROW(check_problem(problem), Error);
  problem.units[1] = {-8, 1, {}};
  EXPECT_THROW(check_problem(problem), Error);
}

}  // namespace
}  // namespace rlx::memory
