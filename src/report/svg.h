// Common parts of the plots: scales, grids, labels that stay apart, numbers, colours, legends.
#pragma once

#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace pruner {

/// Values are drawn by their logarithms if the greatest is `kSvgLogRatio` times the least or more.
inline constexpr double kSvgLogRatio = 30;
inline constexpr double kSvgNoLimit = std::numeric_limits<double>::infinity();

/// `SvgAxis` maps values to pixels: linearly up to `log_above`, logarithmically above.
struct SvgAxis {
  double least, most;              // values
  double from, to;                 // pixels
  double log_above = kSvgNoLimit;  // at most `least`: all of it is logarithmic

  double at(double value) const;
  /// Returns some five ticks in a linear part, at 1, 2 or 5 x a power of ten, and the powers of ten
  /// in a logarithmic part. There are no ticks if `most` is not above `least`.
  std::vector<double> ticks() const;
  /// Returns the pixel at which the linear part ends.
  double bend() const;
};

/// Makes an axis, logarithmic if all values are above 0 and range over kSvgLogRatio.
SvgAxis svg_axis(double least, double most, double from, double to);

/// Prints a value with three digits or more, as in all plots: "0.0120", "1.00", "12346", "1.2e6".
std::string svg_number(double value);
/// Returns about the most pixels that a text takes.
double svg_width(std::string_view text);

/// Returns the opening tag and a white ground.
std::string svg_begin(double width, double height);
/// Returns a line of a grid.
std::string svg_line(double x1, double y1, double x2, double y2);
/// Returns a dashed line that marks a value for comparison.
std::string svg_mark(double x1, double y1, double x2, double y2);
/// Returns the tick lines of both axes over a panel from `top` to `bottom`, with numbers that fit.
std::string svg_grid(const SvgAxis& x, const SvgAxis& y, double top, double bottom);
/// Returns the names of both axes of a panel: below it, and above its left end. A name says if the
/// scale is logarithmic.
std::string svg_names(const SvgAxis& x,
                      const SvgAxis& y,
                      double top,
                      double bottom,
                      std::string_view x_name,
                      std::string_view y_name);
/// Returns a text whose `anchor` ("start", "middle" or "end") is at x. A text wider than `width` is
/// cut in its middle; its tooltip is whole. `degrees` turn the text clockwise.
std::string svg_label(double x,
                      double y,
                      const char* anchor,
                      std::string_view text,
                      double width = kSvgNoLimit,
                      double degrees = 0);
/// Returns the bold line above a plot, cut like svg_label().
std::string svg_title(double x, double y, std::string_view text, double width);
/// Returns the colour of a series; colours repeat.
std::string_view svg_colour(size_t series);

/// `SvgLegend` shows the names of the series behind their colours, in rows of a width.
struct SvgLegend {
  std::string svg;
  double height = 0;  // pixels from `top` to the end of the last row
};
SvgLegend svg_legend(const std::vector<std::string>& series, double left, double top, double width);

}  // namespace pruner
