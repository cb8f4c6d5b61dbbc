#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "report/html/chart.h"
#include "report/html/escape.h"
#include "report/html/sections.h"
#include "report/html/table.h"

namespace pruner {

namespace {

constexpr size_t kMostTasks = 4, kMostBars = 8, kMostSlices = 3;
constexpr size_t kLeastTrials = 8;  // fewer trials say nothing
constexpr double kLeastShare = 0.001;
constexpr size_t kSlicePoints = 300;  // points of a plot, at most

/// `Decided` is a decision of the programs of one sketch.
struct Decided {
  std::string name;
  std::vector<int32_t> values;  // one per program
  double share = 0;             // share of the variance that the decision explains
};

/// `Sketched` holds the programs of one task and sketch.
struct Sketched {
  std::string sketch;
  std::vector<const TrialFacts*> trials = {};
  std::vector<double> costs_s = {};
};

/// Returns the programs of the task's sketch with most programs.
Sketched most_tried(std::span<const TrialFacts> trials, size_t task) {
  std::map<std::string, Sketched> sketches;
  for (const TrialFacts& trial : trials) {
    if (trial.task != task) continue;
    Sketched& of = sketches[trial.sketch];
    of.sketch = trial.sketch;
    of.trials.push_back(&trial);
    of.costs_s.push_back(trial.measured_s);
  }
  Sketched most;
  for (auto& [name, of] : sketches)
    if (of.trials.size() > most.trials.size()) most = std::move(of);
  return most;
}

/// Returns the share that the choice of the sketch explains, over all programs of the task.
std::optional<double> share_of_sketch(std::span<const TrialFacts> trials, size_t task) {
  std::map<std::string, int32_t> numbers;
  std::vector<int32_t> values;
  std::vector<double> costs_s;
  for (const TrialFacts& trial : trials) {
    if (trial.task != task) continue;
    const auto next = static_cast<int32_t>(numbers.size());
    values.push_back(numbers.try_emplace(trial.sketch, next).first->second);
    costs_s.push_back(trial.measured_s);
  }
  return explained_share(values, costs_s);
}

/// Returns the decisions of the programs, the decision that explains most first.
std::vector<Decided> ranked(const Sketched& of) {
  std::vector<Decided> all;
  for (size_t d = 0; d < of.trials.front()->decisions.size(); ++d) {
    Decided decided{.name = of.trials.front()->decisions[d].first, .values = {}};
    for (const TrialFacts* trial : of.trials)
      decided.values.push_back(d < trial->decisions.size() ? trial->decisions[d].second : 0);
    const std::optional<double> share = explained_share(decided.values, of.costs_s);
    if (!share || *share < kLeastShare) continue;
    decided.share = *share;
    all.push_back(std::move(decided));
  }
  std::ranges::stable_sort(all, std::greater(), &Decided::share);
  return all;
}

/// Plots the time by the values of a decision; the dots of a value stand above the value.
Chart slice(const Sketched& of, const Decided& decided, const std::string& id) {
  Chart chart{.id = id,
              .title = fmt::format("{} ({:.0f} %)", decided.name, 100 * decided.share),
              .x_name = decided.name,
              .y_name = "ms",
              .small = true,
              .zoomable = false};
  const auto [least, most] = std::ranges::minmax(of.costs_s);
  const auto [low, high] = std::ranges::minmax(decided.values);
  chart.log_y = wants_log(least, most);
  chart.log_x = wants_log(low, high);
  ChartSeries dots{.name = decided.name};
  for (size_t i = 0; i < of.costs_s.size(); ++i)
    dots.points.push_back({static_cast<double>(decided.values[i]), of.costs_s[i] * 1e3});
  dots.points = thinned(dots.points, kSlicePoints);
  chart.series.push_back(std::move(dots));
  return chart;
}

std::string of_task(std::span<const TrialFacts> trials,
                    std::span<const TaskFacts> tasks,
                    size_t task) {
  const Sketched of = most_tried(trials, task);
  if (of.trials.size() < kLeastTrials) return "";
  const std::vector<Decided> decisions = ranked(of);
  std::vector<HtmlBar> bars;
  if (const std::optional<double> share = share_of_sketch(trials, task))
    bars.push_back({"(which sketch)", percent(share), *share, 8});
  for (size_t d = 0; d < std::min(decisions.size(), kMostBars); ++d)
    bars.push_back({decisions[d].name, percent(decisions[d].share), decisions[d].share, 0});
  if (bars.empty()) return "";
  const std::string heading = fmt::format("{}: {}", task, tasks[task].name);
  std::string html =
      fmt::format("<h3>{}</h3>\n<p class=\"note\">{} programs of the sketch {}</p>\n",
                  html_text(heading),
                  of.trials.size(),
                  html_text(of.sketch));
  html += html_bars(bars, "What mattered to " + heading) + "<div class=\"slices\">\n";
  for (size_t d = 0; d < std::min(decisions.size(), kMostSlices); ++d)
    html += figure(slice(of, decisions[d], fmt::format("slice-{}-{}", task, d)));
  return html + "</div>\n";
}

}  // namespace

std::optional<double> explained_share(std::span<const int32_t> values,
                                      std::span<const double> costs_s) {
  struct Group {
    double sum = 0;
    int64_t count = 0;
  };
  std::map<int32_t, Group> groups;
  double sum = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    Group& group = groups[values[i]];
    group.sum += std::log(costs_s[i]);
    ++group.count;
    sum += std::log(costs_s[i]);
  }
  const auto n = static_cast<double>(values.size()), k = static_cast<double>(groups.size());
  if (k < 2 || n <= k) return std::nullopt;
  double within = 0, all = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const Group& group = groups[values[i]];
    within += std::pow(std::log(costs_s[i]) - group.sum / static_cast<double>(group.count), 2);
    all += std::pow(std::log(costs_s[i]) - sum / n, 2);
  }
  if (all <= 0) return std::nullopt;
  return std::max(0.0, 1 - (within / (n - k)) / (all / (n - 1)));
}

HtmlSection decisions_section(std::span<const TrialFacts> trials,
                              std::span<const TaskFacts> tasks) {
  std::string html;
  size_t shown = 0;
  for (const size_t task : by_time(tasks)) {
    if (shown == kMostTasks) break;
    const std::string one = of_task(trials, tasks, task);
    shown += !one.empty();
    html += one;
  }
  const std::string lead =
      html.empty()
          ? fmt::format("No task has {} valid programs of one sketch yet.", kLeastTrials)
          : "Of the tasks with most time: which share of the variance of the logarithm of the time "
            "the value of one decision explains alone, corrected for how many values there are. "
            "The "
            "programs are those that the search chose, not a random sample, and decisions that act "
            "together share what they explain: the shares need not add up to 100 %. Below, the "
            "time "
            "of each program by the value of the decisions that explain most.";
  return section("decisions", "What mattered", lead, html);
}

}  // namespace pruner
