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

/// The charts one below the other, each from 0 to its highest bar; a bar has its value on top.
std::string bars_svg(const std::vector<BarChart>& charts);

}  // namespace pruner
