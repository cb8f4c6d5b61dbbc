#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "report/html/chart.h"
#include "report/html/sections.h"
#include "report/html/table.h"

namespace pruner {

namespace {

constexpr size_t kMostOfATask = 2000;  // programs of a task whose pairs are counted, at most
constexpr size_t kColouredTasks = 5;   // the others share a colour

std::string pairs_text(const PairCount& count) {
  if (count.all == 0) return "";
  return fmt::format("{:.1f} % of {} pairs",
                     100 * static_cast<double>(count.right) / static_cast<double>(count.all),
                     count.all);
}

/// Counts the draft's pairs in all tasks, each task for itself.
PairCount draft_pairs(std::span<const TrialFacts> trials) {
  std::map<size_t, std::pair<std::vector<float>, std::vector<double>>> by_task;
  for (const TrialFacts& trial : trials) {
    auto& [scores, measured] = by_task[trial.task];
    if (trial.drafted_s <= 0 || scores.size() == kMostOfATask) continue;
    scores.push_back(static_cast<float>(1 / trial.drafted_s));
    measured.push_back(trial.measured_s);
  }
  PairCount sum;
  for (const auto& [task, columns] : by_task) sum.add(count_pairs(columns.first, columns.second));
  return sum;
}

/// "1.31 (0.82 to 2.95)": the median of measured over drafted, 10 and 90 % of the programs.
std::string ratio_text(std::span<const TrialFacts> trials) {
  std::vector<double> ratios;
  for (const TrialFacts& trial : trials)
    if (trial.drafted_s > 0) ratios.push_back(trial.measured_s / trial.drafted_s);
  if (ratios.empty()) return "";
  std::ranges::sort(ratios);
  const auto at = [&](size_t tenth) { return ratios[tenth * (ratios.size() - 1) / 10]; };
  return fmt::format(
      "median {:.2f}, 10 to 90 % of the programs {:.2f} to {:.2f}", at(5), at(1), at(9));
}

Chart scatter(const Calibration& calibration, std::span<const TaskFacts> tasks) {
  Chart chart{.id = "draft",
              .title = "Draft against measured",
              .x_name = "drafted (ms)",
              .y_name = "measured (ms)",
              .log_x = true,
              .log_y = true};
  std::map<size_t, size_t> series_of;
  for (const size_t t : by_time(tasks)) {
    if (series_of.size() == kColouredTasks) break;
    series_of.emplace(t, chart.series.size());
    chart.series.push_back({.name = fmt::format("{}: {}", t, tasks[t].name)});
  }
  const size_t others = chart.series.size();
  if (tasks.size() > others) chart.series.push_back({.name = "other tasks"});
  double least = 0, most = 0;
  for (const TrialFacts& trial : calibration.trials) {
    if (trial.drafted_s <= 0) continue;
    const auto found = series_of.find(trial.task);
    chart.series[found == series_of.end() ? others : found->second].points.push_back(
        {trial.drafted_s * 1e3, trial.measured_s * 1e3, trial.sketch});
    const auto [low, high] = std::minmax(trial.drafted_s, trial.measured_s);
    least = least == 0 ? low : std::min(least, low);
    most = std::max(most, high);
  }
  std::erase_if(chart.series, [](const ChartSeries& s) { return s.points.empty(); });
  chart.series.push_back({.name = "as drafted",
                          .form = ChartForm::kGuide,
                          .points = {{least * 1e3, least * 1e3}, {most * 1e3, most * 1e3}}});
  return chart;
}

}  // namespace

HtmlSection calibration_section(const Calibration& calibration, std::span<const TaskFacts> tasks) {
  const bool drafted = std::ranges::any_of(
      calibration.trials, [](const TrialFacts& trial) { return trial.drafted_s > 0; });
  std::string html = html_facts(
      {{"Draft: pairs in their right order", pairs_text(draft_pairs(calibration.trials))},
       {"Draft: measured / drafted", ratio_text(calibration.trials)},
       {"Model: pairs in their right order",
        calibration.model ? pairs_text(*calibration.model) : ""}});
  if (drafted)
    html += "<div class=\"charts\">\n" + figure(scatter(calibration, tasks)) + "</div>\n";
  std::string lead =
      "Pairs are of two programs of one task; 50 % is chance. The draft is the closed formula, "
      "asked "
      "again of every program that ran. The model's pairs are of one round each, scored before it "
      "learned of them; as it chose them, they are closer to each other than any two programs.";
  if (!drafted) lead = "There is no draft of what was measured: " + calibration.no_draft;
  return section("calibration", "What was foretold", lead, html);
}

}  // namespace pruner
