#include "runtime/arena.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/error.h"

namespace rlx {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A program without instructions: values at places of our choosing.
class ProgramMaker {
 public:
  int32_t add(const std::string& name, DType dtype, Shape shape, Segment segment,
              int64_t slot_bytes = -1) {
    ProgramValue value;
    value.name = "%" + name;
    value.type = {dtype, std::move(shape)};
    value.layout = make_contiguous_layout(value.type.shape);
    value.segment = segment;
    int64_t& end = program_->plan.segment(segment).size_bytes;
    value.offset_bytes = end;
    value.size_bytes =
        slot_bytes >= 0 ? slot_bytes : upper_bound_bytes(value.type, program_->symbols);
    end += (value.size_bytes + 63) / 64 * 64;
    program_->values.push_back(std::move(value));
    return static_cast<int32_t>(program_->values.size()) - 1;
  }
  Program& program() { return *program_; }
  std::unique_ptr<Arena> make() {
    int64_t end = 0;
    for (Segment segment : {Segment::kState, Segment::kIo, Segment::kWork}) {
      program_->plan.base_bytes[static_cast<int>(segment)] = end;
      end += program_->plan.segment(segment).size_bytes;
    }
    program_->plan.arena_bytes = end;
    return std::make_unique<Arena>(program_, nullptr);
  }

 private:
  std::shared_ptr<Program> program_ = std::make_shared<Program>();
};

template <typename Body>
std::string message_of(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Arena, CountsElementsByShapeAndNotBySlot) {
  ProgramMaker maker;
  const int32_t padded = maker.add("x", DType::kF16, {3}, Segment::kWork, 4096);
  const auto arena = maker.make();
  EXPECT_EQ(arena->num_elements(padded), 3);
  EXPECT_EQ(arena->value_bytes(padded), 6);
}

TEST(Arena, GivesAValueOfZeroElementsASlotOfZeroBytes) {
  ProgramMaker maker;
  const int32_t empty = maker.add("x", DType::kF32, {0, 4}, Segment::kWork);
  const auto arena = maker.make();
  EXPECT_EQ(arena->value_bytes(empty), 0);
  EXPECT_TRUE(arena->span<float>(empty).empty());
  arena->write<float>(empty, std::span<const float>());
}

TEST(Arena, RefusesToShowOneTypeAsAnother) {
  ProgramMaker maker;
  const int32_t ids = maker.add("ids", DType::kI64, {2}, Segment::kIo);
  const auto arena = maker.make();
  EXPECT_THAT(message_of([&] { arena->span<float>(ids); }),
              HasSubstr("%ids (i64[2]) is asked for as f32"));
  EXPECT_EQ(arena->span<int64_t>(ids).size(), 2u);
}

TEST(Arena, KeepsIntegersThatNoFloatHolds) {
  ProgramMaker maker;
  const int32_t ids = maker.add("ids", DType::kI64, {2}, Segment::kIo);
  const auto arena = maker.make();
  const int64_t big = (int64_t{1} << 53) + 1;
  arena->write<int64_t>(ids, std::vector<int64_t>{big, -big});
  std::vector<int64_t> back(2);
  arena->read<int64_t>(ids, back);
  EXPECT_THAT(back, ElementsAre(big, -big));
}

TEST(Arena, ConvertsOnReadAndWriteAndNamesWhatDoesNotFit) {
  ProgramMaker maker;
  const int32_t half = maker.add("h", DType::kF16, {3}, Segment::kWork);
  const int32_t small = maker.add("s", DType::kI8, {2}, Segment::kWork);
  const auto arena = maker.make();
  arena->write<float>(half, std::vector<float>{1.5f, -2.0f, 65504.0f});
  std::vector<double> wide(3);
  arena->read<double>(half, wide);
  EXPECT_THAT(wide, ElementsAre(1.5, -2.0, 65504.0));
  EXPECT_THAT(message_of([&] {
                arena->write<int64_t>(small, std::vector<int64_t>{1, 200});
              }),
              HasSubstr("200"));
  arena->write<int64_t>(small, std::vector<int64_t>{1, 200}, {.saturate = true});
  EXPECT_THAT(arena->span<int8_t>(small), ElementsAre(1, 127));
}

TEST(Arena, RefusesAnotherLengthAndWritesNothing) {
  ProgramMaker maker;
  const int32_t x = maker.add("x", DType::kF32, {4}, Segment::kWork);
  const auto arena = maker.make();
  for (size_t length : {0u, 3u, 5u}) {
    EXPECT_THAT(message_of([&] { arena->write<float>(x, std::vector<float>(length, 7)); }),
                HasSubstr(fmt::format("{} elements are given for 4 elements", length)));
  }
  EXPECT_THAT(arena->span<float>(x), ElementsAre(0, 0, 0, 0));
}

TEST(Arena, WritesRowsOfACacheAndRefusesOnePastTheEnd) {
  ProgramMaker maker;
  const int32_t cache = maker.add("cache", DType::kF16, {1, 4, 1, 2}, Segment::kState);
  const auto arena = maker.make();
  arena->write_rows<float>(cache, 2, 1, std::vector<float>{5, 6});
  std::vector<float> all(8);
  arena->read<float>(cache, all);
  EXPECT_THAT(all, ElementsAre(0, 0, 0, 0, 5, 6, 0, 0));
  EXPECT_THAT(message_of([&] {
                arena->write_rows<float>(cache, 4, 1, std::vector<float>{5, 6});
              }),
              HasSubstr("it has 4 rows"));
  EXPECT_THAT(message_of([&] {
                arena->write_rows<float>(cache, std::numeric_limits<int64_t>::max(), 1,
                                         std::vector<float>{5, 6});
              }),
              HasSubstr("it has 4 rows"));
}

TEST(Arena, CopiesOverlappingRowsSafely) {
  ProgramMaker maker;
  const int32_t x = maker.add("x", DType::kI32, {4, 1}, Segment::kState);
  const auto arena = maker.make();
  arena->write<int32_t>(x, std::vector<int32_t>{1, 2, 3, 4});
  arena->copy_rows(x, 0, x, 1, 3);
  EXPECT_THAT(arena->span<int32_t>(x), ElementsAre(1, 1, 2, 3));
  EXPECT_THAT(message_of([&] { arena->copy_rows(x, 2, x, 0, 3); }), HasSubstr("it has 4 rows"));
}

TEST(Arena, CopiesTheFirstElementsAtTheSizeOfTheDtype) {
  ProgramMaker maker;
  const int32_t a = maker.add("a", DType::kF16, {4}, Segment::kWork);
  const int32_t b = maker.add("b", DType::kF16, {8}, Segment::kWork);
  const int32_t c = maker.add("c", DType::kF32, {4}, Segment::kWork);
  const auto arena = maker.make();
  arena->write<float>(a, std::vector<float>{1, 2, 3, 4});
  arena->write<float>(b, std::vector<float>(8, 9));
  arena->copy_first(a, b, 3);
  std::vector<float> result(8);
  arena->read<float>(b, result);
  EXPECT_THAT(result, ElementsAre(1, 2, 3, 9, 9, 9, 9, 9));
  EXPECT_THAT(message_of([&] { arena->copy_first(a, b, 5); }), HasSubstr("5 elements"));
  EXPECT_THAT(message_of([&] { arena->copy(a, c); }), HasSubstr("element types differ"));
  EXPECT_THAT(message_of([&] { arena->copy(a, b); }), HasSubstr("element counts differ"));
}

TEST(Arena, ChecksByteRangesWithoutOverflow) {
  ProgramMaker maker;
  const int32_t bank = maker.add("bank", DType::kQ8_0, {2, 32}, Segment::kState);
  const auto arena = maker.make();
  const std::vector<std::byte> slot(34, std::byte{1});
  arena->write_bytes(bank, 34, slot);
  std::vector<std::byte> back(68);
  arena->read_bytes(bank, 0, back);
  EXPECT_EQ(back[33], std::byte{0});
  EXPECT_EQ(back[34], std::byte{1});
  for (int64_t offset :
       {int64_t{-1}, int64_t{35}, int64_t{69}, std::numeric_limits<int64_t>::max()}) {
    EXPECT_THAT(message_of([&] { arena->write_bytes(bank, offset, slot); }),
                HasSubstr("has 68 bytes"));
  }
}

TEST(Arena, DecodesPackedValuesAndEncodesWhereItCan) {
  ProgramMaker maker;
  const int32_t packed = maker.add("p", DType::kQ8_0, {1, 32}, Segment::kState);
  const int32_t other = maker.add("o", DType::kQ6_K, {1, 256}, Segment::kState);
  const auto arena = maker.make();
  std::vector<float> values(32);
  for (int i = 0; i < 32; ++i) values[i] = static_cast<float>(i - 16);
  arena->write<float>(packed, values);
  std::vector<float> back(32);
  arena->read<float>(packed, back);
  for (int i = 0; i < 32; ++i) EXPECT_NEAR(back[i], values[i], 0.07);
  EXPECT_THAT(message_of([&] { arena->write<float>(other, std::vector<float>(256)); }),
              HasSubstr("q6_k"));
}

TEST(Arena, FollowsTheExtentsOfTheRun) {
  ProgramMaker maker;
  maker.program().symbols.declare({"tokens", 1, 8});
  const int32_t x = maker.add("x", DType::kF32, {1, Dim::symbol("tokens"), 2}, Segment::kIo);
  const auto arena = maker.make();
  EXPECT_EQ(arena->num_elements(x), 16);
  const int64_t tokens[] = {3};
  arena->set_extents(tokens);
  EXPECT_THAT(arena->shape(x), ElementsAre(1, 3, 2));
  EXPECT_EQ(arena->span<float>(x).size(), 6u);
}

TEST(Arena, FindsValuesByNameAndListsWhoElseLiesThere) {
  ProgramMaker maker;
  const int32_t a = maker.add("a", DType::kF32, {4}, Segment::kWork);
  const int32_t b = maker.add("b", DType::kF32, {2}, Segment::kWork);
  const int32_t c = maker.add("c", DType::kF32, {4}, Segment::kWork);
  maker.program().values[b].offset_bytes = 8;  // over the second half of a
  maker.program().values[a].first_step = 0;
  maker.program().values[b].first_step = 5;
  maker.program().values[b].last_step = 7;
  const auto arena = maker.make();
  EXPECT_EQ(arena->find_value("c"), c);
  EXPECT_EQ(arena->find_value("%c"), c);
  EXPECT_THAT(message_of([&] { arena->find_value("z"); }), HasSubstr("no value named 'z'"));
  const std::vector<Occupant> occupants = arena->list_occupants(a);
  ASSERT_EQ(occupants.size(), 1u);
  EXPECT_EQ(occupants[0].value, b);
  EXPECT_EQ(occupants[0].first_step, 5);
  EXPECT_EQ(occupants[0].last_step, 7);
}

TEST(Arena, CopiesBetweenArenasOfOneShape) {
  ProgramMaker one, two;
  const int32_t x = one.add("x", DType::kF32, {2, 2}, Segment::kState);
  two.add("pad", DType::kF32, {100}, Segment::kState);
  const int32_t y = two.add("y", DType::kF32, {2, 2}, Segment::kState);
  const int32_t z = two.add("z", DType::kF32, {4}, Segment::kState);
  const auto first = one.make();
  const auto second = two.make();
  first->write<float>(x, std::vector<float>{1, 2, 3, 4});
  second->copy_from(*first, x, y);
  EXPECT_THAT(second->span<float>(y), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(message_of([&] { second->copy_from(*first, x, z); }), HasSubstr("shapes differ"));
}

TEST(Arena, RefusesAccessDuringARun) {
  ProgramMaker maker;
  const int32_t x = maker.add("x", DType::kF32, {1}, Segment::kIo);
  const auto arena = maker.make();
  ASSERT_TRUE(arena->begin_run());
  EXPECT_FALSE(arena->begin_run());
  EXPECT_THAT(message_of([&] { arena->write<float>(x, std::vector<float>{1}); }),
              HasSubstr("used by a run"));
  EXPECT_THAT(message_of([&] { arena->span<float>(x); }), HasSubstr("used by a run"));
  arena->end_run();
  arena->write<float>(x, std::vector<float>{1});
}

TEST(Arena, HoldsAValueOverFourGibibytes) {
  ProgramMaker maker;
  const int64_t rows = (int64_t{5} << 30) / 1024;
  const int32_t big = maker.add("big", DType::kU8, {rows, 1024}, Segment::kState);
  const int32_t after = maker.add("after", DType::kF32, {1}, Segment::kWork);
  const auto arena = maker.make();
  const std::vector<uint8_t> row(1024, 7);
  arena->write_rows<uint8_t>(big, rows - 1, 1, row);
  std::vector<uint8_t> back(1024);
  arena->read_rows<uint8_t>(big, rows - 1, 1, back);
  EXPECT_EQ(back, row);
  arena->read_rows<uint8_t>(big, rows - 2, 1, back);
  EXPECT_EQ(back, std::vector<uint8_t>(1024, 0));
  arena->write<float>(after, std::vector<float>{3});
  EXPECT_GT(arena->size_bytes(), int64_t{5} << 30);
  std::vector<std::byte> last(1);
  arena->read_bytes(big, rows * 1024 - 1, last);
  EXPECT_EQ(last[0], std::byte{7});
}

}  // namespace
}  // namespace rlx
