// Points of several series as SVG.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace pruner {

struct ScatterSeries {
  std::string name;
  std::vector<std::pair<double, double>> points;  // x, y; one that is not finite is left out
};

struct ScatterPlot {
  std::string title, x_name, y_name;
  std::vector<ScatterSeries> series;  // a colour each
  bool log_x = false, log_y = false;  // what is not above 0 is left out then
  bool diagonal = false;              // draws y = x; both axes have one scale
};

/// Points of one series that fall on one pixel are drawn once.
std::string scatter_svg(const ScatterPlot& plot);

}  // namespace pruner
