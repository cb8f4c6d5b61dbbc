// The surroundings of a chart's plot: title, legend, note, table, the data for the script.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "report/html/chart.h"
#include "report/html/escape.h"
#include "report/html/table.h"

namespace pruner {

namespace {

std::string_view name_of(ChartForm form) {
  switch (form) {
    case ChartForm::kDots: return "dots";
    case ChartForm::kStairs: return "stairs";
    case ChartForm::kGuide: return "guide";
  }
  return "";
}

/// Rounds to five digits, which are more than can be seen.
double rounded(double value) { return std::strtod(fmt::format("{:.5g}", value).c_str(), nullptr); }

Json axis_json(const SvgAxis& axis, const std::string& name) {
  return {{"name", name},
          {"log", axis.log_above <= axis.least},
          {"least", rounded(axis.least)},
          {"most", rounded(axis.most)}};
}

/// {"x":{"name","log","least","most"},"y","shows_labels","series":[{"name","form",
/// "points":[[x,y]],"labels"}]}.
Json chart_json(const Chart& chart) {
  const ChartAxes axes = axes_of(chart);
  Json all = Json::array();
  for (const ChartSeries& series : chart.series) {
    Json points = Json::array(), labels = Json::array();
    for (const ChartPoint& point : series.points) {
      points.push_back(Json::array({rounded(point.x), rounded(point.y)}));
      if (!point.label.empty()) labels.push_back(point.label);
    }
    Json one = {{"name", series.name}, {"form", name_of(series.form)}, {"points", points}};
    if (labels.size() == points.size()) one["labels"] = std::move(labels);
    all.push_back(std::move(one));
  }
  return {{"x", axis_json(axes.x, chart.x_name)},
          {"y", axis_json(axes.y, chart.y_name)},
          {"shows_labels", chart.shows_labels},
          {"series", std::move(all)}};
}

std::string legend(const Chart& chart) {
  std::string items;
  size_t data = 0;
  for (const ChartSeries& series : chart.series) {
    const bool guide = series.form == ChartForm::kGuide;
    const std::string colour = guide ? "guide" : fmt::format("s{}", data++ % kChartColours);
    items += fmt::format("<li class=\"{}\">{}</li>\n", colour, html_text(series.name));
  }
  return "<ul class=\"legend\">\n" + items + "</ul>\n";
}

std::string data_table(const Chart& chart) {
  size_t points = 0;
  for (const ChartSeries& series : chart.series)
    if (series.form != ChartForm::kGuide) points += series.points.size();
  HtmlTable table{.heads = {{"Series"}, {chart.x_name, true}, {chart.y_name, true}}, .rows = {}};
  for (const ChartSeries& series : chart.series) {
    if (series.form == ChartForm::kGuide || series.points.empty()) continue;
    const size_t share = std::max<size_t>(2, kMostRows * series.points.size() / points);
    for (const ChartPoint& point : thinned(series.points, points > kMostRows ? share : points)) {
      table.rows.push_back({point.label.empty() ? series.name : series.name + ": " + point.label,
                            short_number(point.x),
                            short_number(point.y)});
    }
  }
  const size_t rows = table.rows.size();
  const std::string of = rows < points ? fmt::format("{} of {} points", rows, points)
                                       : fmt::format("{} points", points);
  return fmt::format("<details><summary>Data: {}</summary>\n{}</details>\n",
                     of,
                     html_table(table, "Data of: " + chart.title));
}

}  // namespace

std::string figure(const Chart& whole) {
  Chart chart = whole;
  size_t left_out = 0;
  for (ChartSeries& series : chart.series) {
    left_out += series.points.size() - std::min(series.points.size(), kMostPoints);
    series.points = thinned(series.points, kMostPoints);
  }
  if (left_out > 0)
    chart.note += fmt::format(
        " Drawn are {} points of a series, evenly; {} are left out.", kMostPoints, left_out);
  std::string html = fmt::format("<figure id=\"{}\"{}>\n<figcaption>{}</figcaption>\n",
                                 chart.id,
                                 chart.zoomable ? " data-chart" : "",
                                 html_text(chart.title));
  html += chart_svg(chart);
  if (chart.series.size() > 1) html += legend(chart);
  if (!chart.note.empty()) html += fmt::format("<p class=\"note\">{}</p>\n", html_text(chart.note));
  html += data_table(whole);
  if (chart.zoomable)
    html += "<script type=\"application/json\">" + json_island(chart_json(chart)) + "</script>\n";
  return html + "</figure>\n";
}

}  // namespace pruner
