#include <fmt/format.h>

#include <algorithm>

#include "report/html/sections.h"
#include "report/html/table.h"

namespace pruner {

HtmlSection phases_section(const std::optional<Phases>& phases) {
  const std::string title = "Where the time went";
  if (!phases) return section("phases", title, "Not known: there is no run.json.", "");
  const double known_s = phases->explore_s + phases->train_s + phases->build_s + phases->measure_s;
  std::vector<HtmlBar> bars;
  const auto add = [&](const char* name, double seconds, int colour) {
    bars.push_back({name, fmt::format("{:.1f} s", seconds), seconds, colour});
  };
  add("explore", phases->explore_s, 0);
  add("train", phases->train_s, 3);
  add("build", phases->build_s, 4);
  add("measure", phases->measure_s, 2);
  if (phases->spent_s > known_s) add("the rest", phases->spent_s - known_s, 8);
  return section(
      "phases",
      title,
      fmt::format(
          "{:.1f} s of tuning, resumed runs included. Explore: proposing candidates; train: "
          "models learn; build: compiling them; measure: checking and timing them. The rest "
          "is writing, starting workers, waiting. Phases that go on at the same time can "
          "add up to more.",
          phases->spent_s),
      html_bars(bars, title));
}

}  // namespace pruner
