// Series over two axes -> a figure of a page: SVG in the page's colours, the data as a table, and
// as JSON for the script that makes it zoomable.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/svg.h"

namespace pruner {

/// `kChartColours` is the number of series colours, which repeat (`s0`, ... in the style sheet).
inline constexpr size_t kChartColours = 9;
/// `kMostPoints` is the most points of a series that are drawn.
inline constexpr size_t kMostPoints = 2000;
/// `kMostRows` is the most rows of a chart's table.
inline constexpr size_t kMostRows = 400;

struct ChartPoint {
  double x = 0, y = 0;
  std::string label = {};  // tooltip of the point; empty: only its series
};

enum class ChartForm : uint8_t {
  kDots,
  kStairs,  // a value holds until the next point
  kGuide,   // a thin line that is no data: a ceiling, a diagonal
};

struct ChartSeries {
  std::string name;
  ChartForm form = ChartForm::kDots;
  std::vector<ChartPoint> points = {};
};

struct Chart {
  std::string id;  // unique in the page: letters, digits, "-"
  std::string title, x_name, y_name;
  bool log_x = false, log_y = false;  // then every value is above 0
  std::vector<ChartSeries> series = {};
  std::string note = {};      // below the plot
  bool from_zero_x = false;   // the axis begins at 0
  bool shows_labels = false;  // labels beside the dots, where they have room
  bool small = false;         // one of several in a row
  bool zoomable = true;       // the script takes it
};

/// Returns whether values from `least` to `most` are better seen on a logarithmic axis.
bool wants_log(double least, double most);

/// Returns at most `most` of the points, evenly, the first and the last among them.
std::vector<ChartPoint> thinned(const std::vector<ChartPoint>& points, size_t most);

/// `ChartAxes` holds a chart's axes over the plot's pixels; without points, axes go from 0 to 1.
struct ChartAxes {
  SvgAxis x, y;
};
ChartAxes axes_of(const Chart& chart);

/// Returns the plot alone.
std::string chart_svg(const Chart& chart);
/// Returns title, plot, legend, note, table, and the data for the script.
std::string figure(const Chart& chart);

/// Prints a number with four digits: "0.0123", "12.3", "1234".
std::string short_number(double value);

}  // namespace pruner
