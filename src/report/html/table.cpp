#include "report/html/table.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/html/chart.h"
#include "report/html/escape.h"

namespace pruner {

std::string html_table(const HtmlTable& table, const std::string& name) {
  const auto style = [&](size_t column) {
    return column < table.heads.size() && table.heads[column].number ? " class=\"n\"" : "";
  };
  std::string html = "<thead><tr>";
  for (size_t c = 0; c < table.heads.size(); ++c)
    html += fmt::format("<th scope=\"col\"{}>{}</th>", style(c), html_text(table.heads[c].name));
  html += "</tr></thead>\n<tbody>\n";
  for (const std::vector<std::string>& row : table.rows) {
    html += "<tr>";
    for (size_t c = 0; c < row.size(); ++c)
      html += fmt::format("<td{}>{}</td>", style(c), html_text(row[c]));
    html += "</tr>\n";
  }
  return fmt::format(
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\">\n"
      "<table class=\"rows\">\n{}</tbody>\n</table>\n</div>\n",
      html_text(name),
      html);
}

std::string html_bars(const std::vector<HtmlBar>& bars, const std::string& name) {
  double longest = 0;
  for (const HtmlBar& bar : bars) longest = std::max(longest, bar.length);
  std::string rows = "<tbody>\n";
  for (const HtmlBar& bar : bars) {
    const double length = bar.length > 0 ? std::max(100 * bar.length / longest, 0.5) : 0;
    rows += fmt::format(
        "<tr><th scope=\"row\">{}</th><td class=\"n\">{}</td><td class=\"bar\">"
        "<svg viewBox=\"0 0 100 10\" preserveAspectRatio=\"none\" aria-hidden=\"true\">"
        "<rect class=\"s{}\" width=\"{:.2f}\" height=\"10\"/></svg></td></tr>\n",
        html_text(bar.name),
        html_text(bar.text),
        static_cast<size_t>(bar.colour) % kChartColours,
        length);
  }
  return fmt::format(
      "<table class=\"bars\" aria-label=\"{}\">\n{}</tbody>\n</table>\n", html_text(name), rows);
}

std::string html_facts(const std::vector<std::pair<std::string, std::string>>& facts) {
  std::string html = "<dl>\n";
  for (const auto& [name, text] : facts) {
    if (!text.empty())
      html += fmt::format("<dt>{}</dt><dd>{}</dd>\n", html_text(name), html_text(text));
  }
  return html + "</dl>\n";
}

std::string percent(std::optional<double> share) {
  return share ? fmt::format("{:.1f} %", 100 * *share) : "-";
}

}  // namespace pruner
