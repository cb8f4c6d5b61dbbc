#include "report/svg.h"

#include <fmt/format.h>

#include <algorithm>
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
constexpr int kTicks = 5;             // about so many on an axis
constexpr double kLinearShare = 0.7;  // linear share of the pixels of an axis that bends
constexpr double kLetter = 7;         // pixels in width, at most, if 11 pixels high
constexpr double kBoldLetter = 8;
constexpr double kLineHeight = 15;  // pixels from one line of text to the next
constexpr double kSwatch = 18;      // pixels of a legend's colour and the gap behind it
constexpr double kLegendGap = 16;   // pixels between entries of a legend
constexpr std::string_view kCut = "…";

/// Returns the step of some kTicks ticks up to `range`: 1, 2 or 5 x a power of ten.
double tick_step(double range) {
  const double power = std::pow(10, std::floor(std::log10(range / kTicks)));
  for (const double factor : {1, 2, 5}) {
    if (factor * power * kTicks >= range) return factor * power;
  }
  return 10 * power;
}

std::vector<double> linear_ticks(double least, double most) {
  std::vector<double> values;
  const double step = tick_step(most - least);
  for (double k = std::ceil(least / step); k * step <= most * (1 + 1e-9); ++k)
    values.push_back(k * step + 0.0);  // no -0
  return values;
}

/// Returns all or some powers of ten; for few decades also 2 and 5 x the powers. Below half a
/// decade the ticks are linear.
std::vector<double> log_ticks(double least, double most) {
  const double decades = std::log10(most / least);
  if (decades < 0.5) return linear_ticks(least, most);
  const int every = std::max(1, static_cast<int>(std::ceil(decades / (2 * kTicks))));
  std::vector<double> values;
  for (int k = static_cast<int>(std::floor(std::log10(least))); std::pow(10, k) <= most;
       k += every) {
    for (const double factor : {1, 2, 5}) {
      const double value = factor * std::pow(10, k);
      if (value >= least * (1 - 1e-9) && value <= most && (factor == 1 || decades < 3))
        values.push_back(value);
    }
  }
  return values;
}

/// Escapes a text for XML.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '&' ? "&amp;" : c == '<' ? "&lt;" : std::string(1, c);
  return out;
}

bool begins_letter(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

size_t count_letters(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(text, begins_letter));
}

/// Returns the first `count` letters of UTF-8, and the rest of the text.
std::pair<std::string_view, std::string_view> split_letters(std::string_view text, size_t count) {
  size_t at = 0;
  for (; at < text.size(); ++at)
    if (begins_letter(text[at]) && count-- == 0) break;
  return {text.substr(0, at), text.substr(at)};
}

/// Returns the text, or both of its ends if the text has more than `letters` letters.
std::string cut(std::string_view text, size_t letters) {
  const size_t count = count_letters(text);
  if (count <= letters) return std::string(text);
  const size_t kept = std::max<size_t>(letters, 3) - 1, first = (kept + 1) / 2;
  return std::string(split_letters(text, first).first) + std::string(kCut) +
         std::string(split_letters(text, count - (kept - first)).second);
}

/// Returns a text element of at most `width` pixels with the attributes given.
std::string text_element(std::string_view text,
                         double letter,
                         double width,
                         const std::string& attributes) {
  const double room = std::floor(width / letter);
  const bool fits = static_cast<double>(count_letters(text)) <= room;
  const std::string shown = fits ? std::string(text) : cut(text, static_cast<size_t>(room));
  return fmt::format("<text {}>{}{}</text>\n",
                     attributes,
                     escaped(shown),
                     fits ? "" : "<title>" + escaped(text) + "</title>");
}

/// Returns the ticks, in order, whose labels keep apart; `size` gives a label's length on the axis.
template <typename Size>
std::vector<double> with_room(const SvgAxis& axis, Size size) {
  std::vector<double> kept;
  for (const double tick : axis.ticks()) {
    const bool free = kept.empty() || std::abs(axis.at(tick) - axis.at(kept.back())) >=
                                          (size(tick) + size(kept.back())) / 2;
    if (free) kept.push_back(tick);
  }
  return kept;
}

/// Turns "1.2e+06" into "1.2e6".
std::string with_short_exponent(const std::string& text) {
  const size_t e = text.find('e');
  if (e == std::string::npos) return text;
  return fmt::format("{}e{}", text.substr(0, e), std::stoi(text.substr(e + 1)));
}

std::string tick_text(double tick) { return with_short_exponent(fmt::format("{:.6g}", tick)); }

/// Returns "latency (ms)", followed by the part of the scale that is logarithmic.
std::string scale_name(std::string_view name, const SvgAxis& axis) {
  if (axis.log_above >= axis.most) return std::string(name);
  if (axis.log_above <= axis.least) return fmt::format("{}, log scale", name);
  return fmt::format("{}, log scale above {}", name, svg_number(axis.log_above));
}

}  // namespace

double SvgAxis::bend() const {
  if (log_above >= most) return to;
  return log_above <= least ? from : from + kLinearShare * (to - from);
}

double SvgAxis::at(double value) const {
  const double end = std::min(log_above, most), start = std::max(log_above, least);
  if (log_above > least && value <= end)
    return from + (value - least) / (end - least) * (bend() - from);
  if (log_above >= most) return from + (value - least) / (most - least) * (to - from);
  const double above = std::log(std::max(value, start) / start);
  return bend() + above / std::log(most / start) * (to - bend());
}

std::vector<double> SvgAxis::ticks() const {
  if (most <= least) return {};
  if (log_above >= most) return linear_ticks(least, most);
  if (log_above <= least) return log_ticks(least, most);
  std::vector<double> values = linear_ticks(least, log_above);
  for (const double tick : log_ticks(log_above, most))
    if (tick > values.back() * (1 + 1e-9)) values.push_back(tick);
  return values;
}

SvgAxis svg_axis(double least, double most, double from, double to) {
  const bool wide = least > 0 && most >= kSvgLogRatio * least;
  return {least, most, from, to, wide ? least : kSvgNoLimit};
}

std::string svg_number(double value) {
  const double size = std::abs(value);
  if (value == 0 || !std::isfinite(value)) return fmt::format("{:g}", std::abs(value));
  if (size >= 1e-4 && size < 1e6)
    return fmt::format(fmt::runtime(size < 99.95 ? "{:#.3g}" : "{:.0f}"), value);
  return with_short_exponent(fmt::format("{:.3g}", value));
}

double svg_width(std::string_view text) {
  return kLetter * static_cast<double>(count_letters(text));
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
      "<path d=\"M{:.1f},{:.1f}L{:.1f},{:.1f}\" stroke=\"#ddd\"/>\n", x1, y1, x2, y2);
}

std::string svg_mark(double x1, double y1, double x2, double y2) {
  return fmt::format(
      "<path d=\"M{:.1f},{:.1f}L{:.1f},{:.1f}\" stroke=\"#444\" stroke-dasharray=\"5,4\"/>\n",
      x1,
      y1,
      x2,
      y2);
}

std::string svg_grid(const SvgAxis& x, const SvgAxis& y, double top, double bottom) {
  std::string svg;
  for (const double tick : x.ticks()) svg += svg_line(x.at(tick), top, x.at(tick), bottom);
  for (const double tick : y.ticks()) svg += svg_line(x.from, y.at(tick), x.to, y.at(tick));
  const auto across = [](double tick) { return svg_width(tick_text(tick)) + kLetter; };
  for (const double tick : with_room(x, across))
    svg += svg_label(x.at(tick), bottom + kLineHeight, "middle", tick_text(tick));
  for (const double tick : with_room(y, [](double) { return kLineHeight; }))
    svg += svg_label(x.from - 6, y.at(tick) + 4, "end", tick_text(tick));
  return svg;
}

std::string svg_names(const SvgAxis& x,
                      const SvgAxis& y,
                      double top,
                      double bottom,
                      std::string_view x_name,
                      std::string_view y_name) {
  const double width = x.to - x.from;
  return svg_label((x.from + x.to) / 2,
                   bottom + 2.2 * kLineHeight,
                   "middle",
                   scale_name(x_name, x),
                   width) +
         svg_label(x.from, top - 8, "start", scale_name(y_name, y), width);
}

std::string svg_label(
    double x, double y, const char* anchor, std::string_view text, double width, double degrees) {
  if (text.empty()) return "";
  std::string attributes =
      fmt::format("x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"", x, y, anchor);
  if (degrees != 0)
    attributes += fmt::format(" transform=\"rotate({:g} {:.1f} {:.1f})\"", degrees, x, y);
  return text_element(text, kLetter, width, attributes);
}

std::string svg_title(double x, double y, std::string_view text, double width) {
  const std::string attributes =
      fmt::format("x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"start\" font-weight=\"bold\"", x, y);
  return text_element(text, kBoldLetter, width, attributes);
}

std::string_view svg_colour(size_t series) { return kColours[series % std::size(kColours)]; }

SvgLegend svg_legend(const std::vector<std::string>& series,
                     double left,
                     double top,
                     double width) {
  SvgLegend legend;
  double x = left, y = top + kLineHeight;
  for (size_t s = 0; s < series.size(); ++s) {
    const double room = std::min(svg_width(series[s]), width - kSwatch);
    if (x > left && x + kSwatch + room > left + width) {
      x = left;
      y += kLineHeight;
    }
    legend.svg +=
        fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"14\" height=\"4\" fill=\"{}\"/>\n",
                    x,
                    y - 6,
                    svg_colour(s));
    legend.svg += svg_label(x + kSwatch, y, "start", series[s], room);
    x += kSwatch + room + kLegendGap;
  }
  legend.height = series.empty() ? 0 : y - top;
  return legend;
}

}  // namespace pruner
