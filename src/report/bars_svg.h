// Groups of bars as SVG.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace pruner {

struct BarChart {
  std::string title, y_name;
  std::vector<std::string> groups;           // along x
  std::vector<std::string> series;           // a colour each
  std::vector<std::vector<double>> heights;  // [series][group]; NaN: no bar
  std::optional<double> mark = {};           // a height that all are held against: 1 of speed-ups
};

/// The charts one below the other, each from 0 to its highest bar, or by logarithms (svg_axis()); a
/// bar has its value on top. Groups for which one row has no room go on in the next, of equal
/// scale.
std::string bars_svg(const std::vector<BarChart>& charts);

}  // namespace pruner
