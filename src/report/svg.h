// What the plots have in common: scales, grids, labels that stay apart, numbers, colours, legends.
#pragma once

#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace pruner {

/// Values whose greatest is so many times their least are drawn by their logarithms.
inline constexpr double kSvgLogRatio = 30;
inline constexpr double kSvgNoLimit = std::numeric_limits<double>::infinity();

/// The map of one axis: linear up to `log_above`, logarithmic from there on.
struct SvgAxis {
  double least, most;              // values
  double from, to;                 // pixels
  double log_above = kSvgNoLimit;  // at most `least`: all of it is logarithmic

  double at(double value) const;
  /// Some five of a linear part, at 1, 2 or 5 x a power of ten; of a logarithmic one the powers.
  /// None where `most` is not above `least`.
  std::vector<double> ticks() const;
  /// Where the linear part ends, in pixels.
  double bend() const;
};

/// Logarithmic where the values ask for it: all are above 0 and range over kSvgLogRatio.
SvgAxis svg_axis(double least, double most, double from, double to);

/// A value as every plot writes it, of three digits or more: "0.0120", "1.00", "12346", "1.2e6".
std::string svg_number(double value);
/// Pixels that a text takes at most, about.
double svg_width(std::string_view text);

/// The opening tag and a white ground.
std::string svg_begin(double width, double height);
/// A line of a grid.
std::string svg_line(double x1, double y1, double x2, double y2);
/// A dashed line that others are held against.
std::string svg_mark(double x1, double y1, double x2, double y2);
/// The lines of both axes' ticks over a panel from `top` to `bottom`, with the numbers that have
/// room.
std::string svg_grid(const SvgAxis& x, const SvgAxis& y, double top, double bottom);
/// The names of both axes of that panel: below it, and above its left end. A logarithmic scale is
/// told.
std::string svg_names(const SvgAxis& x,
                      const SvgAxis& y,
                      double top,
                      double bottom,
                      std::string_view x_name,
                      std::string_view y_name);
/// `anchor`: "start", "middle" or "end" of the text is at x. What is wider than `width` is cut in
/// its middle, and whole where the mouse rests on it. `degrees` turn it clockwise.
std::string svg_label(double x,
                      double y,
                      const char* anchor,
                      std::string_view text,
                      double width = kSvgNoLimit,
                      double degrees = 0);
/// The bold line above a plot, cut as svg_label().
std::string svg_title(double x, double y, std::string_view text, double width);
/// The colour of a series; they repeat.
std::string_view svg_colour(size_t series);

/// The names of the series, their colours before them, in rows of a width.
struct SvgLegend {
  std::string svg;
  double height = 0;  // pixels from `top` to the end of the last row
};
SvgLegend svg_legend(const std::vector<std::string>& series, double left, double top, double width);

}  // namespace pruner
