#include "report/training_curve.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/svg.h"

namespace pruner {

namespace {

// In pixels.
constexpr double kPanelWidth = 240, kPanelHeight = 200, kTop = 50, kLeft = 60, kGap = 70;

struct Column {
  const char* name;   // in the table
  const char* title;  // of its panel
  std::optional<double> (*of)(const TrainingPoint& point);
};
constexpr Column kColumns[] = {
    {"loss", "loss", [](const TrainingPoint& p) { return std::optional(p.loss); }},
    {"validation_loss",
     "loss of what is held out",
     [](const TrainingPoint& p) { return p.validation_loss; }},
    {"pairwise_accuracy",
     "pairwise accuracy of what is held out",
     [](const TrainingPoint& p) { return p.validation_accuracy; }},
    {"learning_rate", "learning rate", [](const TrainingPoint& p) { return p.learning_rate; }},
};

/// What the steps are; trees have no learning rate that changes.
const char* step_name(std::span<const TrainingPoint> curve) {
  return curve.empty() || curve[0].learning_rate ? "epoch" : "trees";
}

/// From the least value to the most, and not nothing.
SvgAxis value_axis(std::span<const TrainingPoint> curve, const Column& column) {
  SvgAxis y{*column.of(curve[0]), *column.of(curve[0]), kTop + kPanelHeight, kTop};
  for (const TrainingPoint& point : curve) {
    y.least = std::min(y.least, *column.of(point));
    y.most = std::max(y.most, *column.of(point));
  }
  if (y.most == y.least) y.least = std::min(0.0, y.least), y.most = std::max(0.0, y.most);
  if (y.most == y.least) y.most = 1;
  return y;
}

std::string panel(std::span<const TrainingPoint> curve, const Column& column, double left) {
  const SvgAxis y = value_axis(curve, column);
  const SvgAxis x{0, static_cast<double>(curve.back().step), left, left + kPanelWidth};
  std::string svg = svg_label(left, kTop - 10, "start", column.title);
  svg += svg_label(left + kPanelWidth / 2, kTop + kPanelHeight + 32, "middle", step_name(curve));
  svg += svg_grid(x, y, kTop, kTop + kPanelHeight);
  std::string points;
  for (const TrainingPoint& point : curve)
    points += fmt::format("{:.1f},{:.1f} ", x.at(point.step), y.at(*column.of(point)));
  return svg + fmt::format(
                   "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" "
                   "stroke-width=\"1.5\"/>\n",
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
  return svg_begin(std::max(left, kLeft + kPanelWidth), kTop + kPanelHeight + 50) +
         svg_label(kLeft, 20, "start", title) + panels + "</svg>\n";
}

}  // namespace pruner
