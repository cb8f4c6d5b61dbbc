#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "report/html/chart.h"
#include "report/html/sections.h"
#include "report/html/table.h"

namespace pruner {

namespace {

/// A run as stairs over what `x_of` takes of a point, up to `end`.
template <typename Of>
ChartSeries stairs(const TuningCurve& curve, const Of& x_of, double end) {
  ChartSeries series{.name = curve.mode, .form = ChartForm::kStairs};
  for (const CurvePoint& point : curve.points)
    series.points.push_back({x_of(point), point.latency_s * 1e3});
  if (!series.points.empty() && end > series.points.back().x)
    series.points.push_back({end, series.points.back().y});
  return series;
}

Chart chart(const Comparison& comparison, const std::string& id, const std::string& x_name) {
  double least = std::numeric_limits<double>::infinity(), most = 0;
  for (const TuningCurve& curve : comparison.curves) {
    for (const CurvePoint& point : curve.points) {
      least = std::min(least, point.latency_s);
      most = std::max(most, point.latency_s);
    }
  }
  return {.id = id,
          .title = "Estimated latency over " + x_name,
          .x_name = x_name,
          .y_name = "ms",
          .log_y = wants_log(least, most),
          .from_zero_x = true};
}

std::string table(const Comparison& comparison) {
  HtmlTable table{.heads = {{"Run"},
                            {"Update mode"},
                            {"Search time (s)", true},
                            {"Estimated latency (ms)", true},
                            {"End-to-end time (ms)", true},
                            {"Trials to the first run's latency", true},
                            {"Seconds to it", true}},
                  .rows = {}};
  const std::vector<Standing> all = standings(comparison);
  const auto text = [](const std::optional<Estimate>& estimate, double unit) {
    return estimate ? short_number(estimate->median / unit) : std::string("-");
  };
  for (size_t i = 0; i < all.size(); ++i) {
    const Standing& s = all[i];
    const bool reached = s.reached > 0;
    table.rows.push_back({comparison.modes[i].name,
                          comparison.modes[i].update,
                          text(s.search_s, 1),
                          text(s.latency_s, 1e-3),
                          text(s.end_to_end_s, 1e-3),
                          reached ? text(s.trials, 1) : "not reached",
                          reached ? text(s.seconds, 1) : "not reached"});
  }
  return html_table(table, "Runs side by side");
}

}  // namespace

HtmlSection curves_section(const Comparison& comparison) {
  Chart trials = chart(comparison, "curve-trials", "trials");
  Chart seconds = chart(comparison, "curve-seconds", "seconds of search");
  bool any = false;
  for (const TuningCurve& curve : comparison.curves) {
    any = any || !curve.points.empty();
    trials.series.push_back(stairs(
        curve,
        [](const CurvePoint& point) { return static_cast<double>(point.trials); },
        static_cast<double>(curve.trials)));
    seconds.series.push_back(stairs(
        curve, [](const CurvePoint& point) { return point.seconds; }, curve.search_s));
  }
  const std::string lead =
      any ? "What the best schedules known at each round add up to. It begins when every task has "
            "a valid trial; at the end it may rise, where the best were measured again."
          : "No curve yet: it begins when every task has a valid trial.";
  std::string html;
  if (any) html += "<div class=\"charts\">\n" + figure(trials) + figure(seconds) + "</div>\n";
  if (comparison.curves.size() > 1) html += table(comparison);
  return section("curves", "Curves", lead, html);
}

}  // namespace pruner
