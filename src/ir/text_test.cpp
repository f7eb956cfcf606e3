#include "ir/text.h"

#include <gmock/gmock.h>

#include "ir/ir_testing.h"

namespace rlx {
namespace {

using testing::HasSubstr;

void expect_round_trip(std::string_view text) { EXPECT_EQ(to_string(parse(text)), text); }

TEST(Text, PrintsWhatItReads) {
  expect_round_trip(R"(graph "decode" (tokens <= 512, 1 <= past <= 4096) {
  %ids = input "input_ids" : i64[1, tokens]
  %w = weight "token_embd.weight" : q8_0[64, 256]
  %s = state "cache" : f16[1, 4096, 8]
  %x0 = sum(%ids, %ids) : i64[1, tokens]  @"blk.0"
  %0, %n = split(%x0) : i64[1, tokens], i64[]
  output "hidden" %0
  output "count" %n
}
)");
}

TEST(Text, PrintsEveryKindOfAttribute) {
  expect_round_trip(R"(graph "g" (n <= 8) {
  %x = input "x" : f32[n]
  %y = mark(%x) flag=true count=-7 ratio=1e-05 label="a \"b\" c" dtype=q4_k extent=(2 * n + 1) shape=[1, n - 1, 2 * n] axes=[0, -1] formula="t0 = exp(i0); t0" mode=slow : f32[n]
  output "y" %y
}
)");
}

TEST(Text, LeavesOutAttributesAtTheirDefault) {
  const Graph graph = parse(R"(graph "g" {
    %x = input "x" : f32[4]
    %y = mark(%x) count=3 flag=false mode=fast : f32[4]
    output "y" %y
  })");
  EXPECT_THAT(to_string(graph), HasSubstr("%y = mark(%x) : f32[4]\n"));
}

TEST(Text, PrintsConstantsOfEachDType) {
  expect_round_trip(R"(graph "g" {
  %0 = constant [0.1, -0, 1e+30] : f32[3]
  %1 = constant [0.1] : f64[]
  %2 = constant [nan, inf, -inf] : f32[3]
  %3 = constant splat 0.5 : bf16[2, 4]
  %4 = constant [1, 0] : bool[2]
  %5 = constant [-9223372036854775808, 9223372036854775807] : i64[2]
  %6 = constant [18446744073709551615] : u64[]
  %7 = constant [] : f32[0]
  %8 = constant hex"0000000000000000000000000000000000ff" : q4_0[32]
  output "y" %0
}
)");
}

TEST(Text, NumbersValuesWithoutAName) {
  const Graph graph = parse(R"(graph "g" {
    %7 = input "x" : f32[4]  // a comment
    %named = sum(%7, %7) : f32[4]
    %3 = sum(%named, %7) : f32[4]
    output "y" %3
  })");
  EXPECT_EQ(to_string(graph), R"(graph "g" {
  %0 = input "x" : f32[4]
  %named = sum(%0, %0) : f32[4]
  %1 = sum(%named, %0) : f32[4]
  output "y" %1
}
)");
}

TEST(Text, KeepsQuotesBackslashesAndLinesInNames) {
  expect_round_trip(
      "graph \"a\\\"b\\\\c\\nd\" {\n"
      "  %x = input \"in \\\"put\" : f32[]  @\"x\\\\y\"\n"
      "  output \"o\\nut\" %x\n}\n");
}

struct BadText {
  std::string_view text;
  int line;
  std::string_view message;
};

TEST(Text, NamesTheLineAndWhatIsExpected) {
  const BadText kCases[] = {
      {"grph", 1, "'graph' is expected"},
      {"graph g {}", 1, "A quoted string is expected"},
      {"graph \"g\" (n) {}", 1, "'<=' is expected"},
      {"graph \"g\" (n <= x) {}", 1, "A whole number is expected"},
      {"graph \"g\" {", 1, "A node, an output or '}' is expected"},
      {"graph \"g\" {\n} more", 2, "The end of the text is expected"},
      {"graph \"g\" {\n  node\n}", 2, "A node, an output or '}' is expected"},
      {"graph \"g\" {\n  %x = input \"x\"\n}", 3, "':' is expected"},
      {"graph \"g\" {\n  %x = input \"x\" : f32\n}", 2, "'[' is expected"},
      {"graph \"g\" {\n  %x = input \"x\" : f33[4]\n}", 2, "is not a tensor type"},
      {"graph \"g\" {\n  %x = input \"x\" : f32[4\n}", 3, "A closing bracket is expected"},
      {"graph \"g\" {\n  %x = input \"x : f32[4]\n}", 3, "A closing quote is expected"},
      {"graph \"g\" {\n\n  %y = sum(%x, %x) : f32[4]\n}", 3, "%x is not defined before its use"},
      {"graph \"g\" {\n  %y = twist() : f32[4]\n}", 2, "There is no op named 'twist'"},
      {"graph \"g\" {\n  %x = input \"x\" : f32[4]\n  %y = sum(%x) : f32[4]\n}", 3,
       "1 inputs are given"},
      {"graph \"g\" {\n  %x = input \"x\" : f32[4]\n  %y = sum(%x, %x) : f32[5]\n}", 3,
       "The written type of %y differs from the inferred type f32[4]"},
      {"graph \"g\" {\n  %x = input \"x\" : f32[4]\n  %y = mark(%x) size=1 : f32[4]\n}", 3,
       "The op has no attribute of this name"},
      {"graph \"g\" {\n  %x = input \"x\" : f32[4]\n  %y = mark(%x) count=one : f32[4]\n}", 3,
       "'one' is not a number"},
      {"graph \"g\" {\n  %x = input \"x\" : f32[4]\n  %y = mark(%x) mode=idle : f32[4]\n}", 3,
       "'idle' is not one of: fast, slow"},
      {"graph \"g\" {\n  %x = input \"x\" : f32[4]\n  %x = mark(%x) : f32[4]\n}", 3,
       "%x is defined twice"},
      {"graph \"g\" {\n  %x = input \"x\" : f32[4]\n  %y = split(%x) : f32[4], i64[]\n}", 3,
       "has 2 outputs, but 1 are named"},
      {"graph \"g\" {\n  %c = constant [1, 2] : f32[3]\n}", 2, "2 numbers are given"},
      {"graph \"g\" {\n  %c = constant [a] : f32[1]\n}", 2, "'a' is not a number of f32"},
      {"graph \"g\" {\n  %c = constant [1.5] : i32[1]\n}", 2, "'1.5' is not a number of i32"},
      {"graph \"g\" {\n  %c = constant hex\"00\" : q4_0[32]\n}", 2, "1 bytes are given"},
      {"graph \"g\" {\n  %c = constant hex\"zz\" : q4_0[32]\n}", 2, "Hexadecimal bytes"},
      {"graph \"g\" {\n  %x = input \"x\" : f32[]\n  output \"y\" %x\n  output \"y\" %x\n}", 4,
       "already has an output 'y'"},
  };
  for (const BadText& bad : kCases) {
    const std::string error = error_of([&] { parse(bad.text); });
    EXPECT_THAT(error, HasSubstr(bad.message)) << bad.text;
    EXPECT_THAT(error, HasSubstr(fmt::format("line {}", bad.line))) << bad.text;
  }
}

TEST(Text, SurvivesEveryTruncation) {
  const std::string text = R"(graph "g" (n <= 8) {
  %x = input "x" : f32[n]
  %c = constant [1, 2] : f32[2]
  %y = mark(%x) label="a\"b" shape=[1, n] formula="t0 = exp(i0); t0" : f32[n]  @"here"
  %a, %b = split(%y) : f32[n], i64[]
  output "y" %a
})";
  EXPECT_NO_THROW(parse(text));
  for (size_t size = 0; size < text.size(); ++size) {
    EXPECT_THROW(parse(text.substr(0, size)), Error) << size;
  }
}

}  // namespace
}  // namespace rlx
