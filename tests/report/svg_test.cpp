#include "report/svg.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <regex>

#include "report/bars_svg.h"
#include "report/comparison.h"
#include "report/scatter_svg.h"
#include "report/training_curve.h"
#include "support/rng.h"

namespace pruner {
namespace {

using testing::ElementsAre;
using Corner = std::array<double, 2>;

/// A label of a plot: the corners of its box, by the size of its letters.
struct Label {
  std::string text;
  std::array<Corner, 4> corners;
};

size_t letters(const std::string& text) {
  return static_cast<size_t>(
      std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

std::vector<Label> labels_of(const std::string& svg) {
  constexpr double kFont = 11, kLetter = 0.6 * kFont, kAscent = 0.8 * kFont, kDescent = 0.2 * kFont;
  static const std::regex element(
      "<text x=\"([-0-9.]+)\" y=\"([-0-9.]+)\" text-anchor=\"(\\w+)\"([^>]*)>([^<]*)<");
  static const std::regex turned("rotate\\(([-0-9]+) ");
  std::vector<Label> labels;
  for (auto it = std::sregex_iterator(svg.begin(), svg.end(), element);
       it != std::sregex_iterator();
       ++it) {
    const std::string anchor = (*it)[3], more = (*it)[4], text = (*it)[5];
    const double x = std::stod((*it)[1]), y = std::stod((*it)[2]);
    const double width = kLetter * static_cast<double>(letters(text));
    const double left = anchor == "start" ? 0 : anchor == "end" ? -width : -width / 2;
    std::smatch match;
    const double turn =
        std::regex_search(more, match, turned) ? std::stod(match[1]) * std::acos(-1) / 180 : 0;
    Label& label = labels.emplace_back(Label{text, {}});
    const Corner box[] = {
        {left, -kAscent}, {left + width, -kAscent}, {left + width, kDescent}, {left, kDescent}};
    for (size_t i = 0; i < 4; ++i)
      label.corners[i] = {x + box[i][0] * std::cos(turn) - box[i][1] * std::sin(turn),
                          y + box[i][0] * std::sin(turn) + box[i][1] * std::cos(turn)};
  }
  return labels;
}

/// Whether a line along one of `a`'s sides keeps the two boxes apart.
bool sides_part(const Label& a, const Label& b) {
  for (size_t i = 0; i < 2; ++i) {
    const Corner side = {a.corners[i + 1][0] - a.corners[i][0],
                         a.corners[i + 1][1] - a.corners[i][1]};
    const auto spans = [&](const Label& label) {
      std::array<double, 4> at = {};
      for (size_t c = 0; c < 4; ++c)
        at[c] = label.corners[c][0] * side[0] + label.corners[c][1] * side[1];
      return std::pair(*std::ranges::min_element(at), *std::ranges::max_element(at));
    };
    const auto [a_least, a_most] = spans(a);
    const auto [b_least, b_most] = spans(b);
    if (a_most <= b_least || b_most <= a_least) return true;
  }
  return false;
}

/// Returns the fault of a plot's labels: two overlap, or one leaves the picture. Empty: no fault.
std::string fault_of(const std::string& svg) {
  std::smatch size;
  if (!std::regex_search(svg, size, std::regex("width=\"(\\d+)\" height=\"(\\d+)\"")))
    return "no size";
  const double width = std::stod(size[1]), height = std::stod(size[2]);
  const std::vector<Label> labels = labels_of(svg);
  for (size_t i = 0; i < labels.size(); ++i) {
    for (const Corner& corner : labels[i].corners)
      if (corner[0] < 0 || corner[0] > width || corner[1] < 0 || corner[1] > height)
        return "\"" + labels[i].text + "\" leaves the picture";
    for (size_t j = 0; j < i; ++j)
      if (!sides_part(labels[i], labels[j]) && !sides_part(labels[j], labels[i]))
        return "\"" + labels[i].text + "\" lies on \"" + labels[j].text + "\"";
  }
  return labels.size() < 2 ? "no labels" : "";
}

std::string drawn_name(Rng& rng, int64_t longest) {
  std::string name;
  for (int64_t left = 1 + rng.below(longest); left > 0; --left)
    name += rng.below(8) == 0 ? "ß" : std::string(1, static_cast<char>('a' + rng.below(26)));
  return name;
}

std::vector<std::string> drawn_names(Rng& rng, int64_t most, int64_t longest) {
  std::vector<std::string> names;
  for (int64_t left = 1 + rng.below(most); left > 0; --left)
    names.push_back(drawn_name(rng, longest));
  return names;
}

/// Between 1 / range and range, or once in a while nothing.
double drawn_value(Rng& rng, double range) {
  if (rng.below(10) == 0) return std::nan("");
  return std::pow(range, 2 * rng.uniform() - 1);
}

std::string drawn_bars(Rng& rng) {
  const int64_t longest = rng.below(2) == 0 ? 6 : 60;
  const double range = std::pow(10, 6 * rng.uniform());
  BarChart chart{drawn_name(rng, 200),
                 drawn_name(rng, 40),
                 drawn_names(rng, 30, longest),
                 drawn_names(rng, 8, longest),
                 {}};
  for (size_t s = 0; s < chart.series.size(); ++s) {
    std::vector<double>& heights = chart.heights.emplace_back();
    for (size_t g = 0; g < chart.groups.size(); ++g) heights.push_back(drawn_value(rng, range));
  }
  if (rng.below(2) == 0) chart.mark = 1;
  return bars_svg({chart, chart});
}

std::string drawn_curves(Rng& rng) {
  Comparison comparison{.subject = drawn_name(rng, 120), .device = {}, .modes = {}, .curves = {}};
  const double range = std::pow(10, 4 * rng.uniform());
  for (const std::string& mode : drawn_names(rng, 8, 70)) {
    comparison.modes.push_back({mode, ""});
    TuningCurve curve{mode, 0, 1 + rng.below(100000), 1e4 * rng.uniform(), true, {}};
    double latency_s = drawn_value(rng, range);
    for (int i = 0; i < 5 && std::isfinite(latency_s); ++i, latency_s *= 0.8)
      curve.points.push_back({curve.trials * i / 5, curve.search_s * i / 5, latency_s});
    comparison.curves.push_back(curve);
  }
  return curves_svg(comparison);
}

std::string drawn_scatter(Rng& rng) {
  ScatterPlot plot{drawn_name(rng, 80), drawn_name(rng, 40), drawn_name(rng, 40), {}};
  plot.log_x = rng.below(2) == 0;
  plot.log_y = rng.below(2) == 0;
  plot.diagonal = plot.log_x == plot.log_y && rng.below(2) == 0;
  const double range = std::pow(10, 6 * rng.uniform());
  for (const std::string& name : drawn_names(rng, 8, 60)) {
    ScatterSeries& series = plot.series.emplace_back(ScatterSeries{name, {}});
    for (int i = 0; i < 10; ++i)
      series.points.emplace_back(drawn_value(rng, range), drawn_value(rng, range));
  }
  return scatter_svg(plot);
}

std::string drawn_training(Rng& rng) {
  std::vector<TrainingPoint> curve;
  const double range = std::pow(10, 5 * rng.uniform());
  const auto steps = static_cast<int>(2 + rng.below(200));
  for (int step = 1; step <= steps; ++step)
    curve.push_back({.step = step,
                     .loss = std::pow(range, rng.uniform()),
                     .learning_rate = 1e-3 * rng.uniform(),
                     .validation_loss = std::pow(range, rng.uniform()),
                     .validation_accuracy = rng.uniform()});
  return training_svg(curve, drawn_name(rng, 200));
}

TEST(Labels, NeverOverlapInPlotsOfAnyShape) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Rng rng(seed);
    for (const auto draw : {drawn_bars, drawn_curves, drawn_scatter, drawn_training}) {
      const std::string svg = draw(rng);
      ASSERT_EQ(fault_of(svg), "") << "seed " << seed << "\n" << svg;
    }
  }
}

TEST(Labels, AreFoundToOverlapWhereTheyDo) {
  const std::string begin = svg_begin(200, 100);
  const std::string name = svg_label(20, 50, "start", "name");
  EXPECT_EQ(fault_of(begin + name + svg_label(30, 55, "start", "other")),
            "\"other\" lies on \"name\"");
  EXPECT_EQ(fault_of(begin + name + svg_label(20, 50, "start", "turned", kSvgNoLimit, -45)),
            "\"turned\" lies on \"name\"");
  EXPECT_EQ(fault_of(begin + name + svg_label(20, 90, "end", "out there")),
            "\"out there\" leaves the picture");
  EXPECT_EQ(fault_of(begin + name + svg_label(20, 65, "start", "below")), "");
}

TEST(SvgAxis, IsLogarithmicWhereTheValuesRangeFar) {
  const SvgAxis near = svg_axis(1, 29, 0, 100), far = svg_axis(0.1, 1000, 0, 100);
  EXPECT_DOUBLE_EQ(near.at(15), 50);
  EXPECT_DOUBLE_EQ(far.at(10), 50);
  EXPECT_THAT(far.ticks(), ElementsAre(0.1, 1, 10, 100, 1000));
  EXPECT_THAT(svg_axis(1, 40, 0, 100).ticks(), ElementsAre(1, 2, 5, 10, 20));
  EXPECT_THAT(svg_axis(0, 100, 0, 100).ticks(), ElementsAre(0, 20, 40, 60, 80, 100));
}

TEST(SvgAxis, BendsAtAValue) {
  const SvgAxis y{10, 2000, 100, 0, 20};
  EXPECT_DOUBLE_EQ(y.at(10), 100);
  EXPECT_DOUBLE_EQ(y.at(20), y.bend());
  EXPECT_DOUBLE_EQ(y.at(200), y.bend() / 2);
  EXPECT_DOUBLE_EQ(y.at(2000), 0);
  EXPECT_THAT(y.ticks(), ElementsAre(10, 12, 14, 16, 18, 20, 50, 100, 200, 500, 1000, 2000));
}

TEST(SvgNumber, HasThreeDigitsAndNoExponentWherePeopleWriteNone) {
  EXPECT_EQ(svg_number(0), "0");
  EXPECT_EQ(svg_number(-0.0), "0");
  EXPECT_EQ(svg_number(1), "1.00");
  EXPECT_EQ(svg_number(1.2345), "1.23");
  EXPECT_EQ(svg_number(0.00012345), "0.000123");
  EXPECT_EQ(svg_number(99.94), "99.9");
  EXPECT_EQ(svg_number(99.96), "100");
  EXPECT_EQ(svg_number(12345.6), "12346");
  EXPECT_EQ(svg_number(1.25e6), "1.25e6");
  EXPECT_EQ(svg_number(2e-7), "2e-7");
}

TEST(SvgLabel, IsCutInItsMiddleAndWholeWhereTheMouseRests) {
  const std::string label = svg_label(0, 0, "start", "conv2d 1x56x56x64 <relu>", 10 * 7);
  EXPECT_NE(label.find(">conv2…elu><title>conv2d 1x56x56x64 &lt;relu></title>"), std::string::npos)
      << label;
  EXPECT_EQ(svg_label(0, 0, "start", "äöü", 3 * 7).find("title"), std::string::npos);
}

TEST(BarsSvg, DrawsEachBarItsValueAndTheMark) {
  const std::string svg =
      bars_svg({{"title", "y", {"a", "b"}, {"one", "two"}, {{1, 2}, {std::nan(""), 0.5}}, 1}});
  const auto count = [&](const std::string& text) {
    int found = 0;
    for (size_t at = svg.find(text); at != std::string::npos; at = svg.find(text, at + 1)) ++found;
    return found;
  };
  EXPECT_EQ(count("width=\"34\""), 3) << svg;
  EXPECT_EQ(count("stroke-dasharray"), 1) << svg;
  EXPECT_EQ(count(">0.500</text>"), 1) << svg;
}

TEST(CurvesSvg, KeepASlowModeInView) {
  const Comparison comparison{
      .subject = "net",
      .device = {},
      .modes = {{"fast", ""}, {"slow", ""}},
      .curves = {{"fast", 0, 100, 50, true, {{10, 5, 30e-3}, {40, 20, 10e-3}}},
                 {"slow", 0, 100, 50, true, {{10, 5, 900e-3}, {40, 20, 80e-3}}}}};
  const std::string svg = curves_svg(comparison);
  EXPECT_NE(svg.find("log scale above 20.0<"), std::string::npos) << svg;
  EXPECT_EQ(svg.find("clip"), std::string::npos) << "nothing is cut off";
  std::smatch panel;  // the slow mode's path in the first one
  ASSERT_TRUE(std::regex_search(
      svg, panel, std::regex("M[0-9.]+,([0-9.]+)H[0-9.]+V([0-9.]+)H[0-9.]+\" stroke=\"#d62728\"")));
  EXPECT_DOUBLE_EQ(std::stod(panel[1]), 56) << "the top of the panel";
  EXPECT_GT(std::stod(panel[2]), 60) << "and its end well below";
}

TEST(ScatterSvg, LeavesOutWhatALogarithmHasNotAndDrawsAPixelOnce) {
  ScatterPlot plot{"t", "x", "y", {{"s", {{1, 1}, {1, 1}, {10, 100}, {0, 1}, {1, std::nan("")}}}}};
  plot.log_x = plot.log_y = plot.diagonal = true;
  const std::string svg = scatter_svg(plot);
  int points = 0;
  for (size_t at = svg.find("<circle"); at != std::string::npos; at = svg.find("<circle", at + 1))
    ++points;
  EXPECT_EQ(points, 2) << svg;
  EXPECT_NE(svg.find("stroke-dasharray"), std::string::npos);
}

}  // namespace
}  // namespace pruner
