#include "report/html/chart.h"

#include <gtest/gtest.h>

#include "golden.h"
#include "support/json.h"

namespace pruner {
namespace {

size_t count(std::string_view text, std::string_view part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

Chart chart_of(std::vector<ChartPoint> points) {
  return {.id = "a", .title = "A", .x_name = "x", .y_name = "y", .series = {{"one", {}, points}}};
}

/// The data of a figure.
Json island(const std::string& figure) {
  const std::string_view begin = "<script type=\"application/json\">";
  const size_t at = figure.find(begin) + begin.size();
  return *parse_json(figure.substr(at, figure.find("</script>", at) - at));
}

TEST(Chart, IsDrawnTabledAndToldToTheScript) {
  Chart chart{.id = "curve", .title = "Latency", .x_name = "trials", .y_name = "ms", .log_y = true};
  chart.series = {{"a <run>", ChartForm::kStairs, {{10, 8}, {20, 2}, {40, 1}}},
                  {"b", ChartForm::kDots, {{15, 4, "tile & co"}}},
                  {"ceiling", ChartForm::kGuide, {{10, 1}, {40, 1}}}};
  EXPECT_GOLDEN("report/html/figure.html", figure(chart));
}

TEST(Chart, AxesHoldEveryPoint) {
  const ChartAxes axes = axes_of(chart_of({{3, -5}, {900, 70}}));
  EXPECT_LT(axes.x.least, 3);
  EXPECT_GT(axes.x.most, 900);
  EXPECT_LT(axes.y.least, -5);
  EXPECT_GT(axes.x.log_above, axes.x.most) << "it is linear";
  const ChartAxes one = axes_of(chart_of({{7, 0}}));
  EXPECT_LT(one.x.least, 7);
  EXPECT_GT(one.x.most, 7);
  EXPECT_LT(one.y.least, one.y.most);
  const ChartAxes none = axes_of(chart_of({}));
  EXPECT_EQ(none.x.least, 0 - 0.04);
}

TEST(Chart, LogarithmicAxesHaveTicksInEveryRange) {
  for (const auto& [least, most] : {std::pair(1.0, 1.4), {0.02, 30.0}, {1e-9, 1e9}, {3.0, 4e5}}) {
    const std::vector<double> ticks = SvgAxis{least, most, 0, 1, least}.ticks();
    EXPECT_GE(ticks.size(), 3u) << least << " to " << most;
    EXPECT_LE(ticks.size(), 10u) << least << " to " << most;
    for (const double tick : ticks) EXPECT_TRUE(tick >= 0.99 * least && tick <= 1.01 * most);
  }
  const SvgAxis axis{1, 100, 0, 200, 1};
  EXPECT_DOUBLE_EQ(axis.at(10), 100);
  EXPECT_TRUE(wants_log(1, 10));
  EXPECT_FALSE(wants_log(1, 4));
  EXPECT_FALSE(wants_log(0, 100));
}

TEST(Chart, IsThinnedWithItsEnds) {
  std::vector<ChartPoint> points;
  for (int i = 0; i < 12345; ++i) points.push_back({static_cast<double>(i), 1.0 + i});
  const std::vector<ChartPoint> few = thinned(points, 2000);
  ASSERT_EQ(few.size(), 2000u);
  EXPECT_EQ(few.front().x, 0);
  EXPECT_EQ(few.back().x, 12344);
  for (size_t i = 1; i < few.size(); ++i) EXPECT_GT(few[i].x, few[i - 1].x);
  const std::string html = figure(chart_of(points));
  EXPECT_EQ(island(html)["series"][0]["points"].size(), kMostPoints);
  EXPECT_EQ(count(html, "h0"), kMostPoints);
  EXPECT_EQ(count(html, "<tr>"), kMostRows + 1);
  EXPECT_NE(html.find("Data: 400 of 12345 points"), std::string::npos);
  EXPECT_NE(html.find("10345 are left out"), std::string::npos);
  EXPECT_EQ(html, figure(chart_of(points))) << "the same twice";
}

TEST(Chart, LabelsThatWouldCoverOthersAreNotDrawn) {
  Chart chart = chart_of({{1, 1, "first"}, {1.01, 1, "second"}, {50, 50, "third"}, {100, 100}});
  chart.shows_labels = true;
  const std::string svg = chart_svg(chart);
  EXPECT_EQ(count(svg, ">first<"), 1u);
  EXPECT_EQ(count(svg, ">second<"), 0u);
  EXPECT_EQ(count(svg, ">third<"), 1u);
}

TEST(ShortNumber, HasFourDigits) {
  EXPECT_EQ(short_number(0.0123456), "0.01235");
  EXPECT_EQ(short_number(1234.5), "1234");
  EXPECT_EQ(short_number(123456), "123456");
  EXPECT_EQ(short_number(1.5e9), "1.5e+09");
}

}  // namespace
}  // namespace pruner
