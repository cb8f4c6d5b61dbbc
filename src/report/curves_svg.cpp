// The plot of a comparison: two panels of one height, in which each mode is the median over its
// seeds within the band of the median's interval.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>

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

/// The median of a mode's runs from a place on, until the next place.
struct Step {
  double x;
  Estimate latency_s;  // infinite if runs have no latency yet
};

/// Returns the latency of a run at a place; infinity if the run has none yet.
double latency_at(const TuningCurve& curve, const Panel& panel, double x) {
  const auto after = std::ranges::upper_bound(curve.points, x, {}, panel.x_of);
  return after == curve.points.begin() ? kSvgNoLimit : std::prev(after)->latency_s;
}

/// Returns the steps of a mode's runs, and their end as the last step. Without a point there is
/// none.
std::vector<Step> steps_of(std::span<const TuningCurve* const> runs, const Panel& panel) {
  std::vector<double> places;
  double end = 0;
  for (const TuningCurve* run : runs) {
    for (const CurvePoint& point : run->points) places.push_back(panel.x_of(point));
    end = std::max(end, panel.x_end(*run));
  }
  if (places.empty()) return {};
  places.push_back(end);
  std::ranges::sort(places);
  places.erase(std::unique(places.begin(), places.end()), places.end());
  std::vector<Step> steps;
  for (const double x : places) {
    std::vector<double> latencies;
    for (const TuningCurve* run : runs) latencies.push_back(latency_at(*run, panel, x));
    steps.push_back({x, *estimate_median(std::move(latencies))});
  }
  return steps;
}

/// Draws one edge of steps as stairs, forwards: a latency holds until the next step.
std::string stairs(std::span<const Step> steps,
                   double Estimate::*edge,
                   const SvgAxis& x,
                   const SvgAxis& y) {
  std::string d;
  double last_y = 0;
  for (const Step& step : steps) {
    const double at_y = y.at(std::min(step.latency_s.*edge * 1e3, y.most));
    d += fmt::format("{}{:.1f}", d.empty() ? "M" : "H", x.at(step.x));
    if (at_y != last_y) d += fmt::format("{}{:.1f}", last_y == 0 ? "," : "V", at_y);
    last_y = at_y;
  }
  return d;
}

/// Draws the band between both edges of the steps: along the upper edge, and back along the lower
/// one. A latency that runs do not have yet lies above the panel.
std::string band(std::span<const Step> steps, const SvgAxis& x, const SvgAxis& y) {
  std::string d = stairs(steps, &Estimate::high, x, y);
  for (size_t i = steps.size(); i-- > 0;) {
    const double next_x = steps[std::min(i + 1, steps.size() - 1)].x;
    const double latency_ms = std::min(steps[i].latency_s.low * 1e3, y.most);
    d += fmt::format("L{:.1f},{:.1f}H{:.1f}", x.at(next_x), y.at(latency_ms), x.at(steps[i].x));
  }
  return d + "Z";
}

/// Draws a mode: its band if the seeds differ, and its median from where half of the runs have a
/// latency.
std::string draw_mode(std::vector<Step> steps,
                      std::string_view colour,
                      const SvgAxis& x,
                      const SvgAxis& y) {
  std::string svg;
  const auto differs = [](const Step& s) { return s.latency_s.low != s.latency_s.high; };
  if (std::ranges::any_of(steps, differs))
    svg += fmt::format("<path d=\"{}\" fill=\"{}\" fill-opacity=\"0.15\" stroke=\"none\"/>\n",
                       band(steps, x, y),
                       colour);
  std::erase_if(steps, [](const Step& s) { return std::isinf(s.latency_s.median); });
  if (steps.empty()) return svg;
  return svg + fmt::format("<path d=\"{}\" stroke=\"{}\"/>\n",
                           stairs(steps, &Estimate::median, x, y),
                           colour);
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
    std::vector<const TuningCurve*> runs;
    for (const TuningCurve& curve : comparison.curves)
      if (curve.mode == comparison.modes[m].name) runs.push_back(&curve);
    svg += draw_mode(steps_of(runs, panel), svg_colour(m), x, y);
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
