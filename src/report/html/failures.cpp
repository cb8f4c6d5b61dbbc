#include <fmt/format.h>

#include <algorithm>

#include "report/html/sections.h"
#include "report/html/table.h"

namespace pruner {

static constexpr size_t kMostReasons = 20;

HtmlSection failures_section(const Reasons& failures, int64_t trials) {
  const int64_t failed = total(failures);
  const std::string title = "Failures";
  if (failed == 0)
    return section("failures", title, fmt::format("None of {} trials failed.", trials), "");
  std::vector<std::pair<std::string, Reason>> order(failures.begin(), failures.end());
  std::ranges::stable_sort(
      order, std::greater(), [](const auto& entry) { return entry.second.count; });
  std::vector<HtmlBar> bars;
  for (size_t i = 0; i < std::min(order.size(), kMostReasons); ++i) {
    const auto& [reason, entry] = order[i];
    bars.push_back({fmt::format("{} (first: {})", reason, entry.first),
                    std::to_string(entry.count),
                    static_cast<double>(entry.count),
                    1});
  }
  std::string lead = fmt::format(
      "{} of {} trials ({:.1f} %). A candidate that does not build, crashes, takes too long or "
      "computes a wrong value is one failed trial and never part of the result.",
      failed,
      trials,
      100.0 * static_cast<double>(failed) / static_cast<double>(trials));
  if (order.size() > kMostReasons)
    lead += fmt::format(" {} rarer reasons are not shown.", order.size() - kMostReasons);
  return section("failures", title, lead, html_bars(bars, title));
}

}  // namespace pruner
