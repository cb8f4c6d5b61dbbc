#include "report/bars_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/svg.h"

namespace pruner {

namespace {

constexpr double kHeight = 260, kTop = 40, kLeft = 60, kBar = 22, kGap = 24, kBelow = 90;

}  // namespace

std::string bars_svg(const BarChart& chart) {
  double most = 0;
  for (const std::vector<double>& of : chart.heights)
    for (const double height : of)
      if (std::isfinite(height)) most = std::max(most, height);
  const SvgAxis y{0, most > 0 ? 1.08 * most : 1, kTop + kHeight, kTop};
  const double group_width = kBar * static_cast<double>(chart.series.size()) + kGap;
  const double right = kLeft + group_width * static_cast<double>(chart.groups.size());
  std::string svg = svg_begin(right + 20, kTop + kHeight + kBelow);
  svg += svg_label(kLeft, 24, "start", chart.title + ": " + chart.y_name);
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
                     kTop + kHeight + 16 + (g % 2 == 0 ? 0 : 14),
                     "middle",
                     chart.groups[g]);
  }
  return svg + svg_legend(chart.series, kLeft, kTop + kHeight + kBelow) + "</svg>\n";
}

}  // namespace pruner
