// The plot of a comparison: two panels of one height.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/comparison.h"
#include "report/svg.h"

namespace pruner {

namespace {

// In pixels.
constexpr double kPanelWidth = 360, kPanelHeight = 260, kTop = 56, kLeft = 70, kGap = 70,
                 kRight = 20, kBelow = 44;
// Multiples of the best latency: the scale is linear up to kNear, or up to the top if the top is at
// most kFar. The top is at least kLeast.
constexpr double kNear = 2, kFar = 3, kLeast = 1.05;

/// `Panel` draws the curves against `x_of` of a point; the curves end at `x_end`.
struct Panel {
  std::string title;  // empty: the comparison's axis name of seconds
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

/// Draws stairs: a latency holds until the next point.
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
  const double bottom = kTop + kPanelHeight;
  const std::string& x_name = panel.title.empty() ? comparison.seconds_name : panel.title;
  std::string svg = svg_grid(x, y, kTop, bottom);
  svg += svg_names(x, y, kTop, bottom, x_name, comparison.latency_name);
  if (y.log_above < y.most) svg += svg_mark(x.from, y.bend(), x.to, y.bend());
  svg += "<g fill=\"none\" stroke-width=\"1.5\">\n";
  for (size_t m = 0; m < comparison.modes.size(); ++m) {
    for (const TuningCurve& curve : comparison.curves) {
      if (curve.mode != comparison.modes[m].name || curve.points.empty()) continue;
      svg += fmt::format(
          "<path d=\"{}\" stroke=\"{}\"/>\n", stairs(curve, panel, x, y), svg_colour(m));
    }
  }
  return svg + "</g>\n";
}

/// All latencies, in ms. Where the worst are far above the best, by their logarithms in the upper
/// part: a slow mode stays in view, and what tells the fast ones apart does, too.
SvgAxis latency_axis(const Comparison& comparison) {
  double best_ms = kSvgNoLimit, worst_ms = 0;
  for (const TuningCurve& curve : comparison.curves) {
    for (const CurvePoint& point : curve.points) {
      best_ms = std::min(best_ms, point.latency_s * 1e3);
      worst_ms = std::max(worst_ms, point.latency_s * 1e3);
    }
  }
  if (worst_ms == 0) best_ms = worst_ms = 1;
  const double most_ms = std::max(worst_ms, kLeast * best_ms);
  SvgAxis y{0.98 * best_ms, most_ms, kTop + kPanelHeight, kTop};
  if (most_ms > kFar * best_ms) y.log_above = kNear * best_ms;
  return y;
}

}  // namespace

std::string curves_svg(const Comparison& comparison) {
  const double right = kLeft + 2 * kPanelWidth + kGap, legend_top = kTop + kPanelHeight + kBelow;
  const SvgAxis y = latency_axis(comparison);
  std::string svg = svg_title(kLeft, 22, comparison.subject, right - kLeft);
  double left = kLeft;
  for (const Panel& panel : kPanels) {
    svg += draw(comparison, panel, left, y);
    left += kPanelWidth + kGap;
  }
  std::vector<std::string> names;
  for (const ComparedMode& mode : comparison.modes) names.push_back(mode.name);
  const SvgLegend legend = svg_legend(names, kLeft, legend_top, right - kLeft);
  return svg_begin(right + kRight, legend_top + legend.height + 12) + svg + legend.svg + "</svg>\n";
}

}  // namespace pruner
