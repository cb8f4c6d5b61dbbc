#include "report/bars_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/svg.h"
#include "support/ceil_div.h"

namespace pruner {

namespace {

// In pixels.
constexpr double kHeight = 240, kTop = 52, kLeft = 70, kRight = 20, kBelow = 16, kLegend = 8,
                 kAfter = 16;
constexpr double kWide = 36, kNarrow = 16, kGap = 24;  // width of a bar, gap between groups
constexpr double kRowWidth = 1100, kLeastWidth = 480;
constexpr size_t kWideBars = 40;       // bars of a chart that are drawn wide, at most
constexpr double kNameWidth = 24 * 7;  // pixels of a turned group name, at most
constexpr double kTurned = 0.7071;     // share of a turned name's length, across and down

/// `Range` holds the least and the greatest value that has a bar or is the mark.
struct Range {
  double least = 0, most = 0;
};
Range range_of(const BarChart& chart) {
  std::vector<double> values;
  for (const std::vector<double>& of : chart.heights)
    std::ranges::copy_if(of, std::back_inserter(values), [](double v) { return std::isfinite(v); });
  if (chart.mark) values.push_back(*chart.mark);
  if (values.empty() || *std::ranges::max_element(values) <= 0) return {0, 1};
  return {*std::ranges::min_element(values), *std::ranges::max_element(values)};
}

/// Returns the number of groups in a row: all rows have about as many, and none more than `most`.
size_t groups_in_row(size_t groups, size_t most) {
  most = std::max<size_t>(most, 1);
  const size_t rows = std::max<size_t>(ceil_div(groups, most), 1);
  return std::max<size_t>(ceil_div(groups, rows), 1);
}

/// `Layout` is the layout of a chart, the same for all of its rows.
class Layout {
 public:
  explicit Layout(const BarChart& chart) : range_(range_of(chart)) {
    const size_t series = std::max<size_t>(chart.series.size(), 1);
    bar_ = series * chart.groups.size() > kWideBars ? kNarrow : kWide;
    group_ = bar_ * static_cast<double>(series) + kGap;
    in_row_ = groups_in_row(chart.groups.size(), static_cast<size_t>(kRowWidth / group_));
    for (const std::vector<double>& of : chart.heights)
      for (const double value : of)
        if (std::isfinite(value)) value_ = std::max(value_, svg_width(svg_number(value)));
    for (const std::string& name : chart.groups) name_ = std::max(name_, svg_width(name));
    turns_values_ = value_ > bar_;
    turns_names_ = name_ > group_ - 6;
    if (turns_names_) name_ = std::min(name_, kNameWidth);
    left_ = turns_names_ ? std::max(kLeft, kTurned * name_ - group_ / 2 + 8) : kLeft;
    right_ = std::max(left_ + width(std::min(chart.groups.size(), in_row_)), kLeastWidth);
  }

  double bar() const { return bar_; }
  double group() const { return group_; }
  double left() const { return left_; }
  size_t in_row() const { return in_row_; }
  double width(size_t groups) const { return group_ * static_cast<double>(groups); }
  double right() const { return right_; }  // end of the longest row, or of the words
  double below() const { return kBelow + (turns_names_ ? kTurned * name_ + 6 : 6); }

  /// Returns the axis of the bars' values, with room for the numbers above the highest bar.
  SvgAxis axis(double bottom, double top) const {
    const double to = top + (turns_values_ ? value_ : 0) + 14;
    SvgAxis y = svg_axis(range_.least, range_.most, bottom, to);
    // A logarithmic scale has no 0: its least bar is seen above a power of ten.
    y.least = y.log_above <= y.least ? std::pow(10, std::floor(std::log10(0.8 * y.least))) : 0;
    if (y.log_above < y.most) y.log_above = y.least;
    return y;
  }

  std::string value_label(double x, double y, double value) const {
    const std::string text = svg_number(value);
    if (!turns_values_) return svg_label(x, y - 3, "middle", text);
    return svg_label(x + 4, y - 4, "start", text, kSvgNoLimit, -90);
  }
  std::string name_label(double x, double bottom, const std::string& name) const {
    if (!turns_names_) return svg_label(x, bottom + kBelow, "middle", name);
    return svg_label(x + 4, bottom + kBelow, "end", name, name_, -45);
  }

 private:
  Range range_;
  double bar_ = 0, group_ = 0, left_ = 0, right_ = 0;
  double value_ = 0, name_ = 0;  // pixels of the longest ones
  size_t in_row_ = 1;
  bool turns_values_ = false, turns_names_ = false;
};

/// A row's bars, and what is written at them.
struct Bars {
  std::string bars, values, names;
};

/// Adds group `g`, whose bars begin at `left`.
void add_group(const BarChart& chart,
               const Layout& layout,
               const SvgAxis& y,
               size_t g,
               double left,
               Bars& to) {
  for (size_t s = 0; s < chart.series.size(); ++s) {
    const double value = chart.heights[s][g], x = left + layout.bar() * static_cast<double>(s);
    if (!std::isfinite(value)) continue;
    const double at = value > y.least ? y.at(value) : y.from;
    to.bars += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{}\" height=\"{:.1f}\" fill=\"{}\"/>\n",
        x,
        at,
        layout.bar() - 2,
        y.from - at,
        svg_colour(s));
    to.values += layout.value_label(x + layout.bar() / 2 - 1, at, value);
  }
  to.names += layout.name_label(left + (layout.group() - kGap) / 2, y.from, chart.groups[g]);
}

/// The groups from `begin` to `end` in a row, below the line `top`.
std::string draw_row(
    const BarChart& chart, const Layout& layout, size_t begin, size_t end, double top) {
  const double bottom = top + kHeight, right = layout.left() + layout.width(end - begin);
  const SvgAxis y = layout.axis(bottom, top);
  Bars row;
  for (size_t g = begin; g < end; ++g)
    add_group(chart, layout, y, g, layout.left() + layout.width(g - begin) + kGap / 2, row);
  std::string svg = svg_grid({0, 0, layout.left(), right}, y, top, bottom);
  svg += svg_names({0, 0, layout.left(), layout.right()}, y, top, bottom, "", chart.y_name);
  svg += row.bars + row.names;
  if (chart.mark) svg += svg_mark(layout.left(), y.at(*chart.mark), right, y.at(*chart.mark));
  // Values may lie on the mark: they have a white rim.
  return svg + "<g stroke=\"white\" stroke-width=\"3\" paint-order=\"stroke\">\n" + row.values +
         "</g>\n";
}

struct Drawn {
  std::string svg;
  double width = 0, bottom = 0;
};

/// The chart below the line y = `top`.
Drawn draw(const BarChart& chart, double top) {
  const Layout layout(chart);
  const double words = layout.right() - layout.left();
  Drawn drawn{svg_title(layout.left(), top + 22, chart.title, words), layout.right() + kRight, top};
  double below = top;
  for (size_t begin = 0; begin < chart.groups.size(); begin += layout.in_row()) {
    const size_t end = std::min(begin + layout.in_row(), chart.groups.size());
    drawn.svg += draw_row(chart, layout, begin, end, below + kTop);
    below += kTop + kHeight + layout.below();
  }
  const SvgLegend legend = svg_legend(chart.series, layout.left(), below + kLegend, words);
  drawn.svg += legend.svg;
  drawn.bottom = below + kLegend + legend.height + kAfter;
  return drawn;
}

}  // namespace

std::string bars_svg(const std::vector<BarChart>& charts) {
  double width = 0, bottom = 0;
  std::string svg;
  for (const BarChart& chart : charts) {
    const Drawn drawn = draw(chart, bottom);
    svg += drawn.svg;
    width = std::max(width, drawn.width);
    bottom = drawn.bottom;
  }
  return svg_begin(width, bottom) + svg + "</svg>\n";
}

}  // namespace pruner
