// Groups of bars as SVG.
#pragma once

#include <string>
#include <vector>

namespace pruner {

struct BarChart {
  std::string title, y_name;
  std::vector<std::string> groups;           // along x
  std::vector<std::string> series;           // a colour each
  std::vector<std::vector<double>> heights;  // [series][group]; NaN: no bar
};

/// From 0 to the highest bar, each with its value on top.
std::string bars_svg(const BarChart& chart);

}  // namespace pruner
