#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "report/html/chart.h"
#include "report/html/sections.h"
#include "report/html/table.h"
#include "report/time_text.h"

namespace pruner {

namespace {

constexpr size_t kLeastRepeats = 4;
constexpr size_t kMostRows = 30;

/// The middle half's width over the median.
double spread_of(std::vector<double> repeats_s) {
  std::ranges::sort(repeats_s);
  const auto at = [&](size_t quarter) { return repeats_s[quarter * (repeats_s.size() - 1) / 4]; };
  return (at(3) - at(1)) / at(2);
}

struct Step {
  double most;  // a spread in it is below
  const char* name;
};
constexpr Step kSteps[] = {{0.005, "below 0.5 %"},
                           {0.01, "0.5 to 1 %"},
                           {0.02, "1 to 2 %"},
                           {0.05, "2 to 5 %"},
                           {0.1, "5 to 10 %"},
                           {1e300, "10 % and more"}};

std::string repeats(std::span<const TrialFacts> trials) {
  std::vector<double> spreads;
  for (const TrialFacts& trial : trials)
    if (trial.repeats_s.size() >= kLeastRepeats) spreads.push_back(spread_of(trial.repeats_s));
  if (spreads.empty()) return "";
  std::ranges::sort(spreads);
  std::vector<HtmlBar> bars;
  double from = -1;
  for (const Step& step : kSteps) {
    const auto count = std::ranges::count_if(
        spreads, [&](double spread) { return spread >= from && spread < step.most; });
    bars.push_back({step.name, std::to_string(count), static_cast<double>(count), 5});
    from = step.most;
  }
  return "<h3>Repeats of one program</h3>\n" +
         html_facts(
             {{"Trials", fmt::format("{} with {} repeats or more", spreads.size(), kLeastRepeats)},
              {"Median spread", percent(spreads[(spreads.size() - 1) / 2])},
              {"90 % of them below", percent(spreads[9 * (spreads.size() - 1) / 10])}}) +
         html_bars(bars, "Spread of repeats: trials");
}

std::string measured_again(std::span<const Remeasured> remeasured,
                           std::span<const TaskFacts> tasks) {
  if (remeasured.empty()) return "";
  HtmlTable table{.heads = {{"Task"},
                            {"In the search", true},
                            {"Again, least", true},
                            {"Again, most", true},
                            {"Times", true},
                            {"Least / search", true}},
                  .rows = {}};
  for (const Remeasured& program : remeasured) {
    if (table.rows.size() == kMostRows) break;
    const auto [least, most] = std::ranges::minmax(program.again_s);
    table.rows.push_back({fmt::format("{}: {}", program.task, tasks[program.task].name),
                          time_text(program.search_s),
                          time_text(least),
                          time_text(most),
                          std::to_string(program.again_s.size()),
                          fmt::format("{:.3f}", least / program.search_s)});
  }
  return "<h3>The best, measured again at the end</h3>\n" + html_table(table, "Measured again");
}

}  // namespace

HtmlSection noise_section(const Noise& noise, std::span<const TaskFacts> tasks) {
  std::string html = repeats(noise.trials) + measured_again(noise.remeasured, tasks);
  std::string lead =
      html.empty() ? "No program was timed often enough to say."
                   : "How sure the times are. The spread is the width of the middle half of a "
                     "trial's repeats over their median; the time that counts is the lower "
                     "quartile. Measured again, a best time is mostly a little slower: the fastest "
                     "of many noisy times is a lucky one.";
  if (noise.beside_others > 0)
    lead +=
        fmt::format(" {} trials ran while other processes had a fifth of the cores' time or more.",
                    noise.beside_others);
  return section("noise", "Noise", lead, html);
}

}  // namespace pruner
