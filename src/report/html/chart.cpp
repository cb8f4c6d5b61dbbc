#include "report/html/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "report/html/escape.h"

namespace pruner {

namespace {

// Margins around the plot, in units of the view box, which the page scales.
constexpr double kLeft = 56, kRight = 12, kTop = 26, kBottom = 44;
constexpr double kLogRatio = 8;   // ratio of values above which an axis is logarithmic
constexpr double kMargin = 0.04;  // share of an axis beyond its values
constexpr double kLetter = 6.2;   // width of a letter, about
constexpr double kLineHeight = 13;

/// The view box of a chart, and the plot in it.
struct Frame {
  explicit Frame(const Chart& chart)
      : width(chart.small ? 320 : 480), height(chart.small ? 210 : 300) {}

  double width, height;
  double right = width - kRight, bottom = height - kBottom;
};

struct Range {
  double least = std::numeric_limits<double>::infinity(), most = -least;
  void add(double value) {
    least = std::min(least, value);
    most = std::max(most, value);
  }
};

/// Returns an axis around `range` with a margin; its length is never 0.
SvgAxis axis_of(Range range, bool log, bool from_zero, double from, double to) {
  if (range.most < range.least) range = {log ? 0.1 : 0, 1};
  if (log) {
    const double margin = std::max(std::pow(range.most / range.least, kMargin), 1.05);
    const double least = range.least / margin;
    return {least, range.most * margin, from, to, least};
  }
  if (from_zero) range.least = 0;
  double margin = kMargin * (range.most - range.least);
  if (margin == 0) margin = range.most == 0 ? 1 : 0.1 * std::abs(range.most);
  return {from_zero ? 0 : range.least - margin, range.most + margin, from, to};
}

bool is_guide(const ChartSeries& series) { return series.form == ChartForm::kGuide; }

/// Returns "s3" for the colour of a series, "guide" for a series that is no data.
std::string class_of(const Chart& chart, size_t s) {
  if (is_guide(chart.series[s])) return "guide";
  const auto data = std::count_if(chart.series.begin(),
                                  chart.series.begin() + static_cast<std::ptrdiff_t>(s),
                                  [](auto& other) { return !is_guide(other); });
  return fmt::format("s{}", data % kChartColours);
}

std::string label(double x, double y, std::string_view style, std::string_view text) {
  return fmt::format(
      "<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"{}\">{}</text>\n", x, y, style, html_text(text));
}

std::string grid_line(double x1, double y1, double x2, double y2) {
  return fmt::format("<path class=\"grid\" d=\"M{:.1f},{:.1f}L{:.1f},{:.1f}\"/>\n", x1, y1, x2, y2);
}

/// Draws lines and numbers; a number is left out if the number before it leaves no room.
std::string grid(const Chart& chart, const ChartAxes& axes) {
  const Frame frame(chart);
  std::string svg;
  double taken = -frame.width;
  for (const double tick : axes.x.ticks()) {
    const double x = axes.x.at(tick);
    svg += grid_line(x, kTop, x, frame.bottom);
    const std::string text = short_number(tick);
    const double half = kLetter * static_cast<double>(text.size()) / 2;
    if (x - half < taken || x + half > frame.width) continue;
    svg += label(x, frame.bottom + 15, "middle", text);
    taken = x + half + kLetter;
  }
  taken = 2 * frame.height;
  for (const double tick : axes.y.ticks()) {
    const double y = axes.y.at(tick);
    svg += grid_line(kLeft, y, frame.right, y);
    if (y > taken - kLineHeight) continue;
    svg += label(kLeft - 5, y + 4, "end", short_number(tick));
    taken = y;
  }
  svg += label((kLeft + frame.right) / 2, frame.bottom + 36, "middle name", chart.x_name);
  return svg + label(4, 14, "name", chart.y_name);
}

/// Dots are strokes of no length with round ends: the shortest form of many.
std::string dots(const ChartSeries& series, const ChartAxes& axes) {
  std::string d;
  for (const ChartPoint& point : series.points)
    d += fmt::format("M{:.1f},{:.1f}h0", axes.x.at(point.x), axes.y.at(point.y));
  return d;
}

std::string line(const ChartSeries& series, const ChartAxes& axes) {
  std::string d;
  for (const ChartPoint& point : series.points) {
    const double x = axes.x.at(point.x), y = axes.y.at(point.y);
    if (d.empty()) {
      d += fmt::format("M{:.1f},{:.1f}", x, y);
    } else if (series.form == ChartForm::kStairs) {
      d += fmt::format("H{:.1f}V{:.1f}", x, y);
    } else {
      d += fmt::format("L{:.1f},{:.1f}", x, y);
    }
  }
  return d;
}

std::string draw(const Chart& chart, size_t s, const ChartAxes& axes) {
  const ChartSeries& series = chart.series[s];
  if (series.points.empty()) return "";
  const bool is_dots = series.form == ChartForm::kDots;
  return fmt::format("<path class=\"{} {}\" d=\"{}\"/>\n",
                     is_dots ? "dots" : "line",
                     class_of(chart, s),
                     is_dots ? dots(series, axes) : line(series, axes));
}

struct Box {
  double left, top, right, bottom;
  bool meets(const Box& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
};

/// Labels beside the dots, those of the first points first; one that would cover another or leave
/// the plot is not drawn.
std::string labels(const Chart& chart, const ChartAxes& axes) {
  std::vector<Box> taken;
  for (const ChartSeries& series : chart.series) {
    if (is_guide(series)) continue;
    for (const ChartPoint& point : series.points) {
      const double x = axes.x.at(point.x), y = axes.y.at(point.y);
      taken.push_back({x - 4, y - 4, x + 4, y + 4});
    }
  }
  std::string svg;
  for (const ChartSeries& series : chart.series) {
    if (is_guide(series)) continue;
    for (const ChartPoint& point : series.points) {
      const double width = kLetter * static_cast<double>(point.label.size());
      const double x = axes.x.at(point.x) + 6, y = axes.y.at(point.y);
      const Box box{x, y - kLineHeight / 2, x + width, y + kLineHeight / 2};
      const bool free = std::ranges::none_of(taken, [&](const Box& t) { return t.meets(box); });
      if (!free || box.right > Frame(chart).right || point.label.empty()) continue;
      svg += label(x, y + 4, "", point.label);
      taken.push_back(box);
    }
  }
  return svg;
}

}  // namespace

bool wants_log(double least, double most) { return least > 0 && most / least > kLogRatio; }

std::vector<ChartPoint> thinned(const std::vector<ChartPoint>& points, size_t most) {
  if (points.size() <= most) return points;
  std::vector<ChartPoint> kept;
  for (size_t i = 0; i < most; ++i) kept.push_back(points[i * (points.size() - 1) / (most - 1)]);
  return kept;
}

ChartAxes axes_of(const Chart& chart) {
  Range x, y;
  for (const ChartSeries& series : chart.series) {
    for (const ChartPoint& point : series.points) {
      x.add(point.x);
      y.add(point.y);
    }
  }
  const Frame frame(chart);
  return {axis_of(x, chart.log_x, chart.from_zero_x, kLeft, frame.right),
          axis_of(y, chart.log_y, false, frame.bottom, kTop)};
}

std::string chart_svg(const Chart& chart) {
  const ChartAxes axes = axes_of(chart);
  std::string svg =
      fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}: {} against {}\">\n",
                  Frame(chart).width,
                  Frame(chart).height,
                  html_text(chart.title),
                  html_text(chart.y_name),
                  html_text(chart.x_name));
  svg += grid(chart, axes);
  for (size_t s = 0; s < chart.series.size(); ++s) svg += draw(chart, s, axes);
  if (chart.shows_labels) svg += labels(chart, axes);
  return svg + "</svg>\n";
}

std::string short_number(double value) {
  if (std::abs(value) >= 1e4 && std::abs(value) < 1e7) return fmt::format("{:.0f}", value);
  return fmt::format("{:.4g}", value);
}

}  // namespace pruner
