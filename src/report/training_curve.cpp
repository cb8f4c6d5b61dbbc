#include "report/training_curve.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/svg.h"

namespace pruner {

namespace {

// In pixels.
constexpr double kPanelWidth = 260, kPanelHeight = 200, kTop = 56, kLeft = 70, kGap = 70,
                 kRight = 20, kBelow = 44;

struct Column {
  const char* name;   // in the table
  const char* title;  // title of its panel
  std::optional<double> (*of)(const TrainingPoint& point);
  bool linear = true;  // else logarithmic if the values range far
};
constexpr Column kColumns[] = {
    {"loss", "loss", [](const TrainingPoint& p) { return std::optional(p.loss); }, false},
    {"validation_loss",
     "loss of what is held out",
     [](const TrainingPoint& p) { return p.validation_loss; },
     false},
    {"pairwise_accuracy",
     "pairwise accuracy of what is held out",
     [](const TrainingPoint& p) { return p.validation_accuracy; }},
    {"learning_rate", "learning rate", [](const TrainingPoint& p) { return p.learning_rate; }},
};

/// Returns the name of a step; trees have no learning rate that changes.
const char* step_name(std::span<const TrainingPoint> curve) {
  return curve.empty() || curve[0].learning_rate ? "epoch" : "trees";
}

/// Returns an axis from the least value to the most; its length is never 0.
SvgAxis value_axis(std::span<const TrainingPoint> curve, const Column& column) {
  double least = *column.of(curve[0]), most = least;
  for (const TrainingPoint& point : curve) {
    least = std::min(least, *column.of(point));
    most = std::max(most, *column.of(point));
  }
  if (most == least) least = std::min(0.0, least), most = std::max(0.0, most);
  if (most == least) most = 1;
  const double bottom = kTop + kPanelHeight;
  return column.linear ? SvgAxis{least, most, bottom, kTop} : svg_axis(least, most, bottom, kTop);
}

std::string panel(std::span<const TrainingPoint> curve, const Column& column, double left) {
  const SvgAxis y = value_axis(curve, column);
  const SvgAxis x{0, static_cast<double>(curve.back().step), left, left + kPanelWidth};
  const double bottom = kTop + kPanelHeight;
  std::string points;
  for (const TrainingPoint& point : curve)
    points += fmt::format("{:.1f},{:.1f} ", x.at(point.step), y.at(*column.of(point)));
  return svg_grid(x, y, kTop, bottom) +
         svg_names(x, y, kTop, bottom, step_name(curve), column.title) +
         fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\"/>\n",
                     points,
                     svg_colour(0));
}

}  // namespace

std::string training_tsv(std::span<const TrainingPoint> curve) {
  std::string text = step_name(curve);
  for (const Column& column : kColumns) text += fmt::format("\t{}", column.name);
  for (const TrainingPoint& point : curve) {
    text += fmt::format("\n{}", point.step);
    for (const Column& column : kColumns) {
      const std::optional<double> value = column.of(point);
      text += value ? fmt::format("\t{}", *value) : "\t";
    }
  }
  return text + "\n";
}

std::string training_svg(std::span<const TrainingPoint> curve, const std::string& title) {
  std::string panels;
  double left = kLeft;
  for (const Column& column : kColumns) {
    if (curve.empty() || !column.of(curve[0])) continue;
    panels += panel(curve, column, left);
    left += kPanelWidth + kGap;
  }
  const double right = std::max(left - kGap, kLeft + kPanelWidth);
  return svg_begin(right + kRight, kTop + kPanelHeight + kBelow) +
         svg_title(kLeft, 22, title, right - kLeft) + panels + "</svg>\n";
}

}  // namespace pruner
