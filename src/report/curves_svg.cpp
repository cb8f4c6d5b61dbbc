// The plot of a comparison: two panels of one height.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "report/comparison.h"
#include "report/svg.h"

namespace pruner {

namespace {

// In pixels.
constexpr double kPanelWidth = 360, kPanelHeight = 260, kTop = 40, kLeft = 70, kGap = 60;
constexpr double kShown = 2, kLeast = 1.05;  // x the best latency, at most and at least

/// A panel: the curves against what `x_of` takes of a point; its ends are at `x_end`.
struct Panel {
  std::string title;  // empty: the comparison's name of seconds
  double (*x_of)(const CurvePoint& point);
  double (*x_end)(const TuningCurve& curve);
};
const Panel kPanels[] = {
    {"trials",
     [](const CurvePoint& point) { return static_cast<double>(point.trials); },
     [](const TuningCurve& curve) { return static_cast<double>(curve.trials); }},
    {"",
     [](const CurvePoint& point) { return point.seconds; },
     [](const TuningCurve& curve) { return curve.search_s; }},
};

/// Stairs: a latency holds until the next point.
std::string stairs(const TuningCurve& curve,
                   const Panel& panel,
                   const SvgAxis& x,
                   const SvgAxis& y) {
  std::string d;
  for (const CurvePoint& point : curve.points) {
    d += fmt::format("{}{:.1f}{}{:.1f}",
                     d.empty() ? "M" : "H",
                     x.at(panel.x_of(point)),
                     d.empty() ? "," : "V",
                     y.at(point.latency_s * 1e3));
  }
  return d + fmt::format("H{:.1f}", x.at(panel.x_end(curve)));
}

std::string draw(const Comparison& comparison, const Panel& panel, double left, const SvgAxis& y) {
  double most = 0;
  for (const TuningCurve& curve : comparison.curves) most = std::max(most, panel.x_end(curve));
  const SvgAxis x{0, most > 0 ? most : 1, left, left + kPanelWidth};
  std::string svg = svg_grid(x, y, kTop, kTop + kPanelHeight);
  svg += svg_label(left + kPanelWidth / 2,
                   kTop + kPanelHeight + 34,
                   "middle",
                   panel.title.empty() ? comparison.seconds_name : panel.title);
  const std::string clip = fmt::format("panel{:.0f}", left);
  svg += fmt::format(
      "<clipPath id=\"{}\"><rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"/>"
      "</clipPath>\n<g clip-path=\"url(#{})\" fill=\"none\" stroke-width=\"1.5\">\n",
      clip,
      left,
      kTop,
      kPanelWidth,
      kPanelHeight,
      clip);
  for (size_t m = 0; m < comparison.modes.size(); ++m) {
    for (const TuningCurve& curve : comparison.curves) {
      if (curve.mode != comparison.modes[m].name || curve.points.empty()) continue;
      svg += fmt::format(
          "<path d=\"{}\" stroke=\"{}\"/>\n", stairs(curve, panel, x, y), svg_colour(m));
    }
  }
  return svg + "</g>\n";
}

/// From the best latency to what is shown of the worse ones, in ms.
SvgAxis latency_axis(const Comparison& comparison) {
  double best_ms = std::numeric_limits<double>::infinity(), worst_ms = 0;
  for (const TuningCurve& curve : comparison.curves) {
    if (curve.points.empty()) continue;
    best_ms = std::min(best_ms, curve.points.back().latency_s * 1e3);
    worst_ms = std::max(worst_ms, curve.points.front().latency_s * 1e3);
  }
  if (worst_ms == 0) best_ms = worst_ms = 1;
  const double most_ms = std::clamp(worst_ms, kLeast * best_ms, kShown * best_ms);
  return {0.98 * best_ms, most_ms, kTop + kPanelHeight, kTop};
}

}  // namespace

std::string curves_svg(const Comparison& comparison) {
  const double width = kLeft + 2 * kPanelWidth + kGap + 20, height = kTop + kPanelHeight + 70;
  std::string svg = svg_begin(width, height);
  svg += svg_label(kLeft, 24, "start", comparison.subject + ": " + comparison.latency_name);
  const SvgAxis y = latency_axis(comparison);
  double left = kLeft;
  for (const Panel& panel : kPanels) {
    svg += draw(comparison, panel, left, y);
    left += kPanelWidth + kGap;
  }
  std::vector<std::string> names;
  for (const ComparedMode& mode : comparison.modes) names.push_back(mode.name);
  return svg + svg_legend(names, kLeft, height) + "</svg>\n";
}

}  // namespace pruner
