// The plot of a comparison: two panels of one height.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "report/comparison.h"

namespace pruner {

namespace {

constexpr std::string_view kColours[] = {"#1f77b4",
                                         "#d62728",
                                         "#2ca02c",
                                         "#9467bd",
                                         "#ff7f0e",
                                         "#8c564b",
                                         "#e377c2",
                                         "#17becf",
                                         "#7f7f7f"};
constexpr double kPanelWidth = 360, kPanelHeight = 260, kTop = 40, kLeft = 70, kGap = 60;
constexpr double kShown = 2, kLeast = 1.05;  // x the best latency, at most and at least
constexpr int kTicks = 5;                    // about so many on an axis

/// 1, 2 or 5 x a power of ten: the step of some kTicks ticks up to `range`.
double tick_step(double range) {
  const double power = std::pow(10, std::floor(std::log10(range / kTicks)));
  for (const double factor : {1, 2, 5}) {
    if (factor * power * kTicks >= range) return factor * power;
  }
  return 10 * power;
}

/// The linear map of one axis.
struct Axis {
  double least, most;  // values
  double from, to;     // pixels

  double at(double value) const { return from + (value - least) / (most - least) * (to - from); }
  std::vector<double> ticks() const {
    std::vector<double> values;
    const double step = tick_step(most - least);
    for (double k = std::ceil(least / step); k * step <= most * (1 + 1e-9); ++k)
      values.push_back(k * step);
    return values;
  }
};

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
std::string stairs(const TuningCurve& curve, const Panel& panel, const Axis& x, const Axis& y) {
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

std::string line(double x1, double y1, double x2, double y2) {
  return fmt::format(
      "<path d=\"M{:.1f},{:.1f}L{:.1f},{:.1f}\" stroke=\"#ccc\"/>\n", x1, y1, x2, y2);
}

std::string label(double x, double y, const char* anchor, std::string_view text) {
  return fmt::format(
      "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor, text);
}

/// As XML has it.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '&' ? "&amp;" : c == '<' ? "&lt;" : std::string(1, c);
  return out;
}

std::string draw(const Comparison& comparison, const Panel& panel, double left, const Axis& y) {
  double most = 0;
  for (const TuningCurve& curve : comparison.curves) most = std::max(most, panel.x_end(curve));
  const Axis x{0, most > 0 ? most : 1, left, left + kPanelWidth};
  std::string svg;
  for (const double tick : x.ticks()) {
    svg += line(x.at(tick), kTop, x.at(tick), kTop + kPanelHeight);
    svg += label(x.at(tick), kTop + kPanelHeight + 16, "middle", fmt::format("{:g}", tick));
  }
  for (const double tick : y.ticks()) {
    svg += line(left, y.at(tick), left + kPanelWidth, y.at(tick));
    svg += label(left - 6, y.at(tick) + 4, "end", fmt::format("{:.4g}", tick));
  }
  svg += label(left + kPanelWidth / 2,
               kTop + kPanelHeight + 34,
               "middle",
               escaped(panel.title.empty() ? comparison.seconds_name : panel.title));
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
      svg += fmt::format("<path d=\"{}\" stroke=\"{}\"/>\n",
                         stairs(curve, panel, x, y),
                         kColours[m % std::size(kColours)]);
    }
  }
  return svg + "</g>\n";
}

/// From the best latency to what is shown of the worse ones, in ms.
Axis latency_axis(const Comparison& comparison) {
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
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "font-family=\"sans-serif\" font-size=\"11\">\n"
      "<rect width=\"{0:.0f}\" height=\"{1:.0f}\" fill=\"white\"/>\n",
      width,
      height);
  svg += label(kLeft, 24, "start", escaped(comparison.subject + ": " + comparison.latency_name));
  const Axis y = latency_axis(comparison);
  double left = kLeft;
  for (const Panel& panel : kPanels) {
    svg += draw(comparison, panel, left, y);
    left += kPanelWidth + kGap;
  }
  double x = kLeft;
  for (size_t m = 0; m < comparison.modes.size(); ++m) {
    const std::string& name = comparison.modes[m].name;
    svg += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"14\" height=\"4\" fill=\"{}\"/>\n",
                       x,
                       height - 16,
                       kColours[m % std::size(kColours)]);
    svg += label(x + 18, height - 10, "start", name);
    x += 40 + 7 * static_cast<double>(name.size());
  }
  return svg + "</svg>\n";
}

}  // namespace pruner
