#include "report/svg.h"

#include <fmt/format.h>

#include <cmath>

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
constexpr int kTicks = 5;  // about so many on an axis

/// 1, 2 or 5 x a power of ten: the step of some kTicks ticks up to `range`.
double tick_step(double range) {
  const double power = std::pow(10, std::floor(std::log10(range / kTicks)));
  for (const double factor : {1, 2, 5}) {
    if (factor * power * kTicks >= range) return factor * power;
  }
  return 10 * power;
}

/// As XML has it.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '&' ? "&amp;" : c == '<' ? "&lt;" : std::string(1, c);
  return out;
}

}  // namespace

std::vector<double> SvgAxis::ticks() const {
  std::vector<double> values;
  const double step = tick_step(most - least);
  for (double k = std::ceil(least / step); k * step <= most * (1 + 1e-9); ++k)
    values.push_back(k * step);
  return values;
}

std::string svg_begin(double width, double height) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "font-family=\"sans-serif\" font-size=\"11\">\n"
      "<rect width=\"{0:.0f}\" height=\"{1:.0f}\" fill=\"white\"/>\n",
      width,
      height);
}

std::string svg_line(double x1, double y1, double x2, double y2) {
  return fmt::format(
      "<path d=\"M{:.1f},{:.1f}L{:.1f},{:.1f}\" stroke=\"#ccc\"/>\n", x1, y1, x2, y2);
}

std::string svg_label(double x, double y, const char* anchor, std::string_view text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n",
                     x,
                     y,
                     anchor,
                     escaped(text));
}

std::string svg_grid(const SvgAxis& x, const SvgAxis& y, double top, double bottom) {
  std::string svg;
  for (const double tick : x.ticks()) {
    svg += svg_line(x.at(tick), top, x.at(tick), bottom);
    svg += svg_label(x.at(tick), bottom + 16, "middle", fmt::format("{:g}", tick));
  }
  for (const double tick : y.ticks()) {
    svg += svg_line(x.from, y.at(tick), x.to, y.at(tick));
    svg += svg_label(x.from - 6, y.at(tick) + 4, "end", fmt::format("{:.4g}", tick));
  }
  return svg;
}

std::string_view svg_colour(size_t series) { return kColours[series % std::size(kColours)]; }

std::string svg_legend(const std::vector<std::string>& series, double left, double height) {
  std::string svg;
  for (size_t s = 0; s < series.size(); ++s) {
    svg += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"14\" height=\"4\" fill=\"{}\"/>\n",
                       left,
                       height - 16,
                       svg_colour(s));
    svg += svg_label(left + 18, height - 10, "start", series[s]);
    left += 40 + 7 * static_cast<double>(series[s].size());
  }
  return svg;
}

}  // namespace pruner
