#include "memory/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "memory/svg.h"
#include "rlx/error.h"

namespace rlx::memory {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Report, SummarizesAPlan) {
  Placement placement;
  placement.height_bytes = 1100;
  placement.lower_bound_bytes = 1000;
  placement.peak_step = 7;
  placement.method = "skyline";
  EXPECT_EQ(format_summary(placement, 0.25),
            "height       1,100 B\n"
            "lower bound  1,000 B\n"
            "gap          10.000 %\n"
            "optimal      not proven\n"
            "peak step    7\n"
            "method       skyline\n"
            "seconds      0.2500\n");
  placement.optimal = true;
  EXPECT_THAT(format_summary(placement, -1), HasSubstr("optimal      yes"));
  EXPECT_THAT(format_summary(placement, -1), Not(HasSubstr("seconds")));
}

PictureInput make_picture() {
  PictureInput input;
  input.title = "tiny <net>";
  input.num_steps = 6;
  input.peak_step = 3;
  input.bands = {{"work", 3000, 2500}, {"io", 100, -1}};
  input.values = {{"x&y", "add", "f32[4]", 0, 0, 1000, 0, 4},
                  {"z", "mul", "f32[8]", 0, 1000, 2000, 2, 6},
                  {"none", "", "", 1, 0, 0, 0, 6}};
  return input;
}

TEST(Svg, NamesEveryValueUnderThePointer) {
  const std::string svg = render_svg(make_picture());
  EXPECT_THAT(svg, HasSubstr("<title>x&amp;y\nadd\nf32[4]\n1,000 B at 0 B\nsteps 0 to 4</title>"));
  EXPECT_THAT(svg, HasSubstr("tiny &lt;net&gt;"));
  EXPECT_THAT(svg, HasSubstr("lower bound 2,500 B"));
  EXPECT_THAT(svg, HasSubstr("peak at step 3"));
  EXPECT_THAT(svg, Not(HasSubstr("<title>none")));
}

TEST(Svg, RejectsAValueOutsideTheBands) {
  PictureInput input = make_picture();
  input.values[0].band = 2;
  EXPECT_THROW(render_svg(input), Error);
}

TEST(Svg, OfNothingIsStillADocument) {
  EXPECT_THAT(render_svg(PictureInput{}), HasSubstr("</svg>"));
  EXPECT_THAT(render_html(PictureInput{}), HasSubstr("</html>"));
}

TEST(Html, ListsWhatIsAliveAtThePeak) {
  const std::string html = render_html(make_picture());
  EXPECT_THAT(html, HasSubstr("Alive at the peak, step 3"));
  EXPECT_THAT(html, HasSubstr("<tr><td>z<td>mul<td>f32[8]<td>work<td class=\"n\">2,000 B"));
  EXPECT_THAT(html, HasSubstr("20.000 %"));
}

}  // namespace
}  // namespace rlx::memory
