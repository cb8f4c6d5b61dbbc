#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "report/html/chart.h"
#include "report/html/sections.h"

namespace pruner {

namespace {

struct Roof {
  std::string name;
  double gflops = 0;
};

/// Returns the roofs that the tasks have above them.
std::vector<Roof> roofs(std::span<const TaskFacts> tasks, const Ceiling& ceiling) {
  std::vector<Roof> roofs;
  if (ceiling.gflops > 0) roofs.push_back({"float32 and memory", ceiling.gflops});
  for (const auto& [name, gflops] : ceiling.unit_gflops) {
    if (std::ranges::find(tasks, name, &TaskFacts::precision) != tasks.end())
      roofs.push_back({name + " and memory", gflops});
  }
  return roofs;
}

/// Returns a roof from `least` to `most` FLOP a byte: the slope of the memory, then flat.
ChartSeries roof_line(const Roof& roof, double bandwidth_gbs, double least, double most) {
  const double ridge = roof.gflops / bandwidth_gbs;
  ChartSeries line{.name = fmt::format("{}: {} GFLOP/s, {} GB/s",
                                       roof.name,
                                       short_number(roof.gflops),
                                       short_number(bandwidth_gbs)),
                   .form = ChartForm::kGuide};
  const auto height = [&](double intensity) {
    return std::min(roof.gflops, intensity * bandwidth_gbs);
  };
  line.points.push_back({least, height(least)});
  if (ridge > least && ridge < most) line.points.push_back({ridge, roof.gflops});
  line.points.push_back({most, height(most)});
  return line;
}

}  // namespace

HtmlSection roofline_section(std::span<const TaskFacts> tasks, const Ceiling& ceiling) {
  Chart chart{.id = "roofline",
              .title = "Roofline: each task's best kernel",
              .x_name = "FLOP per byte that must be moved",
              .y_name = "GFLOP/s",
              .log_x = true,
              .log_y = true,
              .shows_labels = true};
  ChartSeries dots{.name = "task (by its ID)"};
  double least = std::numeric_limits<double>::infinity(), most = 0;
  for (const size_t t : by_time(tasks)) {
    const TaskFacts& task = tasks[t];
    if (!task.best_s || task.flops <= 0 || task.bytes <= 0) continue;
    const double intensity = task.flops / task.bytes;
    dots.points.push_back({intensity, task.flops / *task.best_s / 1e9, std::to_string(t)});
    least = std::min(least, intensity);
    most = std::max(most, intensity);
  }
  const std::string title = "Roofline";
  if (dots.points.empty())
    return section("roofline", title, "No task has a time and a known amount of work yet.", "");
  chart.series.push_back(std::move(dots));
  if (ceiling.bandwidth_gbs > 0) {
    for (const Roof& roof : roofs(tasks, ceiling)) {
      const double ridge = roof.gflops / ceiling.bandwidth_gbs;
      chart.series.push_back(roof_line(
          roof, ceiling.bandwidth_gbs, std::min(least, ridge) / 2, std::max(most, ridge) * 2));
    }
  }
  return section(
      "layers",
      title,
      "Operations are counted as written, bytes are inputs, weights and outputs once. A form that "
      "multiplies less than is written, or operands that lie in a cache, can be above the line. " +
          ceiling.source,
      "<div class=\"charts\">\n" + figure(chart) + "</div>\n");
}

}  // namespace pruner
