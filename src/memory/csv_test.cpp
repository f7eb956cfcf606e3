#include "memory/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "memory/check_placement.h"
#include "memory/lower_bound.h"
#include "rlx/error.h"

namespace rlx::memory {
namespace {

using ::testing::HasSubstr;

std::string error_of(const std::string& text) {
  try {
    parse_csv(text, "plan.csv");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Csv, ReadsColumnsInAnyOrder) {
  const CsvProblem csv =
      parse_csv("size,id,upper,lower,alignment\r\n8,a,3,1,4\r\n\r\n5,\"b,\"\"c\",9,2,1", "x");
  ASSERT_EQ(csv.problem.units.size(), 2u);
  EXPECT_EQ(csv.ids[1], "b,\"c");
  EXPECT_EQ(csv.problem.units[0].size_bytes, 8);
  EXPECT_EQ(csv.problem.units[0].alignment, 4);
  EXPECT_EQ(csv.problem.units[0].pieces[0].start, 1);
  EXPECT_EQ(csv.problem.units[0].pieces[0].end, 3);
  EXPECT_TRUE(csv.offsets.empty());
}

TEST(Csv, WritesWhatItReadsBack) {
  const CsvProblem csv = parse_csv("id,lower,upper,size\na,0,2,10\n\"b,1\",1,3,20\n", "x");
  const Placement placement = place(csv.problem);
  const std::string text = write_csv(csv, placement);
  const CsvProblem again = parse_csv(text, "y");
  EXPECT_EQ(again.ids, csv.ids);
  EXPECT_EQ(again.offsets, placement.offsets);
  EXPECT_EQ(write_csv(again, placement), text);
}

TEST(Csv, NamesFileAndLineOfAnError) {
  EXPECT_THAT(error_of(""), HasSubstr("plan.csv is empty"));
  EXPECT_THAT(error_of("id,lower,upper\n"), HasSubstr("plan.csv:1: The column 'size' is missing"));
  EXPECT_THAT(error_of("id,lower,upper,size,color\n"), HasSubstr("column 'color' is not known"));
  EXPECT_THAT(error_of("id,lower,upper,size,id\n"), HasSubstr("'id' is named twice"));
  const std::string header = "id,lower,upper,size,alignment\n";
  EXPECT_THAT(error_of(header + "a,1,2,3\n"), HasSubstr("plan.csv:2: The line has 4 fields"));
  EXPECT_THAT(error_of(header + "\na,1,2x,3,1\n"), HasSubstr("plan.csv:3: The upper is '2x'"));
  EXPECT_THAT(error_of(header + "a,1,2,,1\n"), HasSubstr("The size is ''"));
  EXPECT_THAT(error_of(header + "a,3,2,3,1\n"), HasSubstr("from step 3 to step 2"));
  EXPECT_THAT(error_of(header + "a,1,2,-3,1\n"), HasSubstr("The size is -3"));
  EXPECT_THAT(error_of(header + "a,1,2,3,12\n"), HasSubstr("The alignment is 12"));
  EXPECT_THAT(error_of(header + "a,1,2,99999999999999999999,1\n"), HasSubstr("64 bits"));
  EXPECT_THAT(error_of(header + "\"a,1,2,3,1\n"), HasSubstr("no closing quote"));
  EXPECT_THAT(error_of(header + "\"a\"b,1,2,3,1\n"), HasSubstr("follows the closing quote"));
}

TEST(Csv, NamesAFileThatIsNotThere) {
  EXPECT_THROW(read_csv("tests/data/memory/absent.csv"), Error);
}

struct Instance {
  const char* file;
  int64_t bound_bytes;
  bool is_optimal;
};

class PublishedInstance : public ::testing::TestWithParam<Instance> {};

// Heights may only fall.
TEST_P(PublishedInstance, IsPlannedAtItsBound) {
  const Instance& instance = GetParam();
  const CsvProblem csv = read_csv(std::string("tests/data/memory/") + instance.file);
  PlaceOptions options;
  options.capacity_bytes = instance.bound_bytes;
  const Placement placement = place(csv.problem, options);
  check_placement(csv.problem, placement);
  EXPECT_LE(placement.height_bytes, instance.bound_bytes);
  EXPECT_EQ(placement.optimal, instance.is_optimal);
}

INSTANTIATE_TEST_SUITE_P(Csv, PublishedInstance,
                         ::testing::Values(Instance{"minimalloc.A.csv", 1048576, true},
                                           Instance{"minimalloc.C.csv", 1039360, true},
                                           Instance{"minimalloc.E.csv", 1048576, true},
                                           Instance{"minimalloc.I.csv", 1048576, true},
                                           Instance{"minimalloc.K.csv", 1048576, true},
                                           Instance{"minimalloc.input.12.csv", 12, true},
                                           Instance{"idealloc.G_1.csv", 3030937746, true},
                                           Instance{"network.densenet121.csv", 8429568, true},
                                           Instance{"network.randwire.csv", 22806528, true},
                                           Instance{"network.gpt2_train.csv", 6806601792, true}));

}  // namespace
}  // namespace rlx::memory
