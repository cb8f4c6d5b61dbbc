#include "report/scatter_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "report/svg.h"

namespace pruner {

namespace {

// In pixels.
constexpr double kSide = 400, kTop = 56, kLeft = 70, kRight = 20, kBelow = 44;
constexpr double kMargin = 0.03;  // share of an axis, around the points

using Point = std::pair<double, double>;

bool is_shown(const ScatterPlot& plot, const Point& point) {
  const auto fits = [](double value, bool log) {
    return std::isfinite(value) && (!log || value > 0);
  };
  return fits(point.first, plot.log_x) && fits(point.second, plot.log_y);
}

/// Returns an axis around the values, with a margin.
SvgAxis axis_of(const std::vector<double>& values, bool log, double from, double to) {
  double least = log ? 1 : 0, most = log ? 10 : 1;
  if (!values.empty()) {
    least = *std::ranges::min_element(values);
    most = *std::ranges::max_element(values);
  }
  if (log) {
    const double factor = std::max(std::pow(most / least, kMargin), 1.01);
    return {least / factor, most * factor, from, to, least / factor};
  }
  const double more = most > least ? kMargin * (most - least) : 0.5;
  return {least - more, most + more, from, to};
}

struct Axes {
  SvgAxis x, y;
};
Axes axes_of(const ScatterPlot& plot) {
  std::vector<double> x, y;
  for (const ScatterSeries& series : plot.series) {
    for (const Point& point : series.points) {
      if (!is_shown(plot, point)) continue;
      x.push_back(point.first);
      y.push_back(point.second);
    }
  }
  if (plot.diagonal) {
    x.insert(x.end(), y.begin(), y.end());
    y = x;
  }
  return {axis_of(x, plot.log_x, kLeft, kLeft + kSide), axis_of(y, plot.log_y, kTop + kSide, kTop)};
}

std::string draw_points(const ScatterPlot& plot, const ScatterSeries& series, const Axes& axes) {
  std::string svg;
  std::set<std::pair<int, int>> drawn;
  for (const Point& point : series.points) {
    if (!is_shown(plot, point)) continue;
    const std::pair<int, int> pixel(static_cast<int>(std::lround(axes.x.at(point.first))),
                                    static_cast<int>(std::lround(axes.y.at(point.second))));
    if (drawn.insert(pixel).second)
      svg += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"2\"/>\n", pixel.first, pixel.second);
  }
  return svg;
}

}  // namespace

std::string scatter_svg(const ScatterPlot& plot) {
  const Axes axes = axes_of(plot);
  const double right = kLeft + kSide, bottom = kTop + kSide;
  std::string svg = svg_title(kLeft, 22, plot.title, kSide);
  svg += svg_grid(axes.x, axes.y, kTop, bottom);
  svg += svg_names(axes.x, axes.y, kTop, bottom, plot.x_name, plot.y_name);
  if (plot.diagonal) svg += svg_mark(kLeft, bottom, right, kTop);
  std::vector<std::string> names;
  for (const ScatterSeries& series : plot.series) {
    svg += fmt::format("<g fill=\"{}\" fill-opacity=\"0.5\">\n{}</g>\n",
                       svg_colour(names.size()),
                       draw_points(plot, series, axes));
    names.push_back(series.name);
  }
  const SvgLegend legend = svg_legend(names, kLeft, bottom + kBelow, kSide);
  return svg_begin(right + kRight, bottom + kBelow + legend.height + 12) + svg + legend.svg +
         "</svg>\n";
}

}  // namespace pruner
