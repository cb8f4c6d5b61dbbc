// Series over two axes -> a figure of a page: SVG in the page's colours, the data as a table, and
// as JSON for the script that makes it zoomable.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/svg.h"

namespace pruner {

/// Colours of series; they repeat. `s0`, `s1`, ... in the style sheet.
inline constexpr size_t kChartColours = 9;
/// Points of a series that are drawn, at most.
inline constexpr size_t kMostPoints = 2000;
/// Rows of a chart's table, at most.
inline constexpr size_t kMostRows = 400;

struct ChartPoint {
  double x = 0, y = 0;
  std::string label = {};  // what a pointer over it is told; empty: its series
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
  std::string id;  // of one chart of the page: letters, digits, "-"
  std::string title, x_name, y_name;
  bool log_x = false, log_y = false;  // then every value is above 0
  std::vector<ChartSeries> series = {};
  std::string note = {};      // below the plot
  bool from_zero_x = false;   // the axis begins at 0
  bool shows_labels = false;  // labels beside the dots, where they have room
  bool small = false;         // one of several in a row
  bool zoomable = true;       // the script takes it
};

/// Whether values from `least` to `most` are better seen on a logarithmic axis.
bool wants_log(double least, double most);

/// At most `most` of the points, evenly, the first and the last among them.
std::vector<ChartPoint> thinned(const std::vector<ChartPoint>& points, size_t most);

/// The axes of a chart over the plot's pixels; a chart without points has them from 0 to 1.
struct ChartAxes {
  SvgAxis x, y;
};
ChartAxes axes_of(const Chart& chart);

/// The plot alone.
std::string chart_svg(const Chart& chart);
/// Title, plot, legend, note, table, and the data for the script.
std::string figure(const Chart& chart);

/// "0.0123", "12.3", "1234": four digits.
std::string short_number(double value);

}  // namespace pruner
