#include "report/bars_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/svg.h"

namespace pruner {

namespace {

// In pixels.
constexpr double kHeight = 260, kTop = 40, kLeft = 60, kBar = 32, kGap = 24, kBelow = 90;
constexpr double kLetter = 7;  // pixels, at most
constexpr double kChartHeight = kTop + kHeight + kBelow;

double right_end(const BarChart& chart) {
  const double group_width = kBar * static_cast<double>(chart.series.size()) + kGap;
  return kLeft + group_width * static_cast<double>(chart.groups.size());
}

std::string title(const BarChart& chart) { return chart.title + ": " + chart.y_name; }

/// That of the bars, or of the title or the legend where these are longer.
double chart_width(const BarChart& chart) {
  double legend = 0;
  for (const std::string& name : chart.series)
    legend += 40 + kLetter * static_cast<double>(name.size());
  const double words = std::max(legend, kLetter * static_cast<double>(title(chart).size()));
  return std::max(right_end(chart), kLeft + words) + 20;
}

double highest(const BarChart& chart) {
  double most = 0;
  for (const std::vector<double>& of : chart.heights)
    for (const double height : of)
      if (std::isfinite(height)) most = std::max(most, height);
  return most > 0 ? most : 1;
}

/// The chart below the line y = `top`.
std::string draw(const BarChart& chart, double top) {
  const double bottom = top + kTop + kHeight, right = right_end(chart);
  const SvgAxis y{0, 1.08 * highest(chart), bottom, top + kTop};
  const double group_width = kBar * static_cast<double>(chart.series.size()) + kGap;
  std::string svg = svg_label(kLeft, top + 24, "start", title(chart));
  for (const double tick : y.ticks()) {
    svg += svg_line(kLeft, y.at(tick), right, y.at(tick));
    svg += svg_label(kLeft - 6, y.at(tick) + 4, "end", fmt::format("{:g}", tick));
  }
  for (size_t g = 0; g < chart.groups.size(); ++g) {
    const double left = kLeft + group_width * static_cast<double>(g) + kGap / 2;
    for (size_t s = 0; s < chart.series.size(); ++s) {
      const double height = chart.heights[s][g];
      if (!std::isfinite(height)) continue;
      const double x = left + kBar * static_cast<double>(s);
      svg += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{}\" height=\"{:.1f}\" fill=\"{}\"/>\n",
          x,
          y.at(height),
          kBar - 2,
          y.at(0) - y.at(height),
          svg_colour(s));
      svg += svg_label(x + kBar / 2, y.at(height) - 3, "middle", fmt::format("{:.3g}", height));
    }
    svg += svg_label(left + (group_width - kGap) / 2,
                     bottom + 16 + (g % 2 == 0 ? 0 : 14),
                     "middle",
                     chart.groups[g]);
  }
  return svg + svg_legend(chart.series, kLeft, top + kChartHeight);
}

}  // namespace

std::string bars_svg(const std::vector<BarChart>& charts) {
  double width = 0, height = 0;
  std::string drawn;
  for (const BarChart& chart : charts) {
    width = std::max(width, chart_width(chart));
    drawn += draw(chart, height);
    height += kChartHeight;
  }
  return svg_begin(width, height) + drawn + "</svg>\n";
}

}  // namespace pruner
