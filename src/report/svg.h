// What the plots have in common: an axis, lines, labels, colours, a legend.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pruner {

/// The linear map of one axis.
struct SvgAxis {
  double least, most;  // values
  double from, to;     // pixels

  double at(double value) const { return from + (value - least) / (most - least) * (to - from); }
  /// Some five, at 1, 2 or 5 x a power of ten.
  std::vector<double> ticks() const;
};

/// The opening tag and a white ground.
std::string svg_begin(double width, double height);
/// A line of a grid.
std::string svg_line(double x1, double y1, double x2, double y2);
/// The lines of both axes' ticks over a panel from `top` to `bottom`, with their numbers.
std::string svg_grid(const SvgAxis& x, const SvgAxis& y, double top, double bottom);
/// `anchor`: "start", "middle" or "end"; the text is escaped as XML has it.
std::string svg_label(double x, double y, const char* anchor, std::string_view text);
/// The colour of a series; they repeat.
std::string_view svg_colour(size_t series);
/// The names of the series, their colours before them, at the bottom of a plot of `height`.
std::string svg_legend(const std::vector<std::string>& series, double left, double height);

}  // namespace pruner
