// Points of several series as SVG.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace pruner {

struct ScatterSeries {
  std::string name;
  std::vector<std::pair<double, double>> points;  // x, y; points that are not finite are left out
};

struct ScatterPlot {
  std::string title, x_name, y_name;
  std::vector<ScatterSeries> series;  // a colour each
  bool log_x = false, log_y = false;  // a log axis leaves out values that are not above 0
  bool diagonal = false;              // draws y = x; both axes have one scale
};

/// Points of one series that fall on one pixel are drawn once.
std::string scatter_svg(const ScatterPlot& plot);

}  // namespace pruner
