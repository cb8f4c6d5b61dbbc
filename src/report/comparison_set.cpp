#include "report/comparison_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "report/bars_svg.h"

namespace pruner {

namespace {

using Row = std::vector<std::string>;

constexpr double kNoBar = std::numeric_limits<double>::quiet_NaN();

std::span<const ComparedMode> modes(const ComparisonSet& set) {
  if (set.empty()) return {};
  return set.front().comparison.modes;
}

std::optional<double> median(const std::optional<Estimate>& estimate) {
  if (!estimate) return std::nullopt;
  return estimate->median;
}

std::optional<double> geometric_mean(const std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  double sum = 0;
  for (const double value : values) sum += std::log(value);
  return std::exp(sum / static_cast<double>(values.size()));
}

Json to_json(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

std::string text(const std::optional<double>& value, int digits) {
  if (!value) return "-";
  return std::isinf(*value) ? "never" : fmt::format("{:.{}f}", *value, digits);
}

/// Returns whether more than half of the runs reach the latency.
bool reached(const Standing& standing) { return 2 * standing.reached > standing.seeds; }

/// Returns the measure's whole search time over the time that a mode needs to reach its latency.
std::optional<double> speedup(const Standing& standing) {
  if (!reached(standing) || !standing.time_of_budget || standing.time_of_budget->median <= 0)
    return std::nullopt;
  return 1 / standing.time_of_budget->median;
}

/// `Reaching` is one mode's effort to reach another's final latency, over the networks.
struct Reaching {
  std::vector<Standing> standings;  // one per network
  std::vector<double> speedups;     // one per network where the mode gets there

  std::optional<double> geomean() const { return geometric_mean(speedups); }
};

/// [to][mode]
std::vector<std::vector<Reaching>> all_reaching(const ComparisonSet& set) {
  const size_t count = modes(set).size();
  std::vector<std::vector<Reaching>> all(count, std::vector<Reaching>(count));
  for (size_t to = 0; to < count; ++to) {
    for (const ComparedNetwork& network : set) {
      const std::vector<Standing> found = standings(network.comparison, to);
      for (size_t mode = 0; mode < count; ++mode) {
        Reaching& reaching = all[to][mode];
        reaching.standings.push_back(found[mode]);
        if (const auto factor = speedup(found[mode])) reaching.speedups.push_back(*factor);
      }
    }
  }
  return all;
}

/// Prints "12.3 (4.07 x)", or "never" if the mode does not reach the latency. If not all seeds
/// reach the latency, their number follows.
std::string reach_cell(const Standing& standing) {
  if (!standing.seconds) return "-";
  std::string cell = text(median(standing.seconds), 1);
  if (const auto factor = speedup(standing)) cell += fmt::format(" ({:.2f} x)", *factor);
  if (standing.reached < standing.seeds)
    cell += fmt::format(", {} of {} seeds", standing.reached, standing.seeds);
  return cell;
}

/// Prints "4.07 x", with the number of networks if not all have a speed-up.
std::string geomean_cell(const Reaching& reaching) {
  if (reaching.speedups.empty()) return "-";
  std::string cell = text(reaching.geomean(), 2) + " x";
  if (reaching.speedups.size() < reaching.standings.size())
    cell += fmt::format(" on {} of {}", reaching.speedups.size(), reaching.standings.size());
  return cell;
}

std::string print_performance(const ComparisonSet& set) {
  const Performance all = performance(set);
  Row heads = {fmt::format("{} (fastest = 1; ms)",
                           all.end_to_end ? "end-to-end performance" : "estimated performance")};
  Row last = {"geomean"};
  std::vector<Row> rows;
  for (size_t m = 0; m < modes(set).size(); ++m) {
    heads.push_back(modes(set)[m].name);
    last.push_back(text(all.geomean[m], 3));
  }
  rows.push_back(heads);
  for (size_t n = 0; n < set.size(); ++n) {
    Row& row = rows.emplace_back(Row{set[n].name});
    const std::vector<Standing> found = standings(set[n].comparison);
    for (size_t m = 0; m < found.size(); ++m) {
      const auto& latency_s = all.end_to_end ? found[m].end_to_end_s : found[m].latency_s;
      row.push_back(latency_s
                        ? fmt::format("{} ({:.3f})", text(all.of[m][n], 3), latency_s->median * 1e3)
                        : "-");
    }
  }
  rows.push_back(last);
  return print_table(rows);
}

}  // namespace

Performance performance(const ComparisonSet& set) {
  const size_t count = modes(set).size();
  std::vector<std::vector<Standing>> found;
  bool end_to_end = true;
  for (const ComparedNetwork& network : set) {
    found.push_back(standings(network.comparison));
    for (const Standing& standing : found.back()) end_to_end &= standing.end_to_end_s.has_value();
  }
  Performance all{.end_to_end = end_to_end, .of = {}, .geomean = {}};
  all.of.assign(count, {});
  std::vector<std::vector<double>> counted(count);
  for (const std::vector<Standing>& network : found) {
    std::vector<std::optional<double>> latency_s;
    for (const Standing& s : network)
      latency_s.push_back(median(end_to_end ? s.end_to_end_s : s.latency_s));
    double best_s = std::numeric_limits<double>::infinity();
    for (const auto& of : latency_s) best_s = std::min(best_s, of.value_or(best_s));
    const bool whole =
        std::ranges::all_of(latency_s, [](const auto& of) { return of.has_value(); });
    for (size_t m = 0; m < count; ++m) {
      std::optional<double>& value = all.of[m].emplace_back();
      if (latency_s[m]) value = best_s / *latency_s[m];
      if (whole) counted[m].push_back(*value);
    }
  }
  for (const std::vector<double>& values : counted) all.geomean.push_back(geometric_mean(values));
  return all;
}

/// Prints the tables of one part of a set.
static std::string print_part(const ComparisonSet& set) {
  std::string printed = print_performance(set);
  const std::vector<std::vector<Reaching>> all = all_reaching(set);
  for (size_t to = 0; to < all.size(); ++to) {
    const std::string& name = modes(set)[to].name;
    Row heads = {fmt::format("search time (s) to {}'s latency", name)}, last = {"geomean"};
    std::vector<Row> rows;
    for (const ComparedNetwork& network : set) rows.push_back({network.name});
    for (size_t m = 0; m < all[to].size(); ++m) {
      const Reaching& reaching = all[to][m];
      heads.push_back(m == to ? name + ", whole search" : modes(set)[m].name);
      last.push_back(m == to ? "" : geomean_cell(reaching));
      for (size_t n = 0; n < set.size(); ++n) {
        const Standing& standing = reaching.standings[n];
        rows[n].push_back(m == to ? text(median(standing.search_s), 1) : reach_cell(standing));
      }
    }
    rows.insert(rows.begin(), heads);
    rows.push_back(last);
    printed += "\n" + print_table(rows);
  }
  return printed;
}

std::string print_comparison_set(const ComparisonSet& set) {
  if (set.empty()) return "";
  std::vector<ComparisonSet> parts(parts_of(set.front().comparison).size());
  for (const ComparedNetwork& network : set) {
    const std::vector<Comparison> of_network = parts_of(network.comparison);
    for (size_t i = 0; i < parts.size(); ++i) parts[i].push_back({network.name, of_network[i]});
  }
  if (parts.size() == 1) return print_part(parts[0]);
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i)
    text += fmt::format("{}{}:\n\n{}", i > 0 ? "\n" : "", kPartTitles[i], print_part(parts[i]));
  return text;
}

std::string print_conclusions(const ComparisonSet& set) {
  if (set.empty()) return "";
  std::string text = "\n" + print_ingredients(modes(set)) + "\n";
  std::vector<Row> rows = {{fmt::format("over {}'s, seed by seed", modes(set).front().name),
                            "mode",
                            "trials to its latency",
                            "seconds to it",
                            "final latency"}};
  for (const ComparedNetwork& network : set) {
    const std::vector<Standing> found = standings(network.comparison);
    if (found.front().seeds < kLeastSeeds)
      return text + fmt::format("{}: {} of {} seeds on {}.\n",
                                kTooFewSeeds,
                                found.front().seeds,
                                kLeastSeeds,
                                network.name);
    for (size_t m = 1; m < found.size(); ++m)
      rows.push_back({network.name,
                      modes(set)[m].name,
                      print(found[m].trials_of_reach, 2),
                      print(found[m].time_of_reach, 2),
                      print(found[m].latency_of_measure, 3)});
  }
  return text + print_table(rows) + kHowShown;
}

std::string performance_tsv(const ComparisonSet& set) {
  std::string tsv = "network\tmode\tseeds\tsearch_s\testimated_ms\tend_to_end_ms\tperformance\n";
  const Performance all = performance(set);
  const auto ms = [](const std::optional<Estimate>& seconds) {
    return seconds ? fmt::format("{:.6f}", seconds->median * 1e3) : "-";
  };
  for (size_t n = 0; n < set.size(); ++n) {
    const std::vector<Standing> found = standings(set[n].comparison);
    for (size_t m = 0; m < found.size(); ++m)
      tsv += fmt::format("{}\t{}\t{}\t{}\t{}\t{}\t{}\n",
                         set[n].name,
                         modes(set)[m].name,
                         found[m].seeds,
                         text(median(found[m].search_s), 2),
                         ms(found[m].latency_s),
                         ms(found[m].end_to_end_s),
                         text(all.of[m][n], 4));
  }
  return tsv;
}

std::string search_time_tsv(const ComparisonSet& set) {
  std::string tsv = "network\tmode\tto\tseeds\treached\ttrials\tseconds\tspeedup\n";
  const std::vector<std::vector<Reaching>> all = all_reaching(set);
  for (size_t n = 0; n < set.size(); ++n) {
    for (size_t to = 0; to < all.size(); ++to) {
      for (size_t m = 0; m < all.size(); ++m) {
        if (m == to) continue;
        const Standing& standing = all[to][m].standings[n];
        tsv += fmt::format("{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\n",
                           set[n].name,
                           modes(set)[m].name,
                           modes(set)[to].name,
                           standing.seeds,
                           standing.reached,
                           text(median(standing.trials), 0),
                           text(median(standing.seconds), 2),
                           text(speedup(standing), 3));
      }
    }
  }
  return tsv;
}

std::string performance_svg(const ComparisonSet& set) {
  const Performance all = performance(set);
  BarChart chart{.title = all.end_to_end ? "end to end" : "estimated",
                 .y_name = "normalised performance (fastest = 1)",
                 .groups = {},
                 .series = {},
                 .heights = {},
                 .mark = 1};
  for (const ComparedNetwork& network : set) chart.groups.push_back(network.name);
  chart.groups.emplace_back("geomean");
  for (size_t m = 0; m < modes(set).size(); ++m) {
    chart.series.push_back(modes(set)[m].name);
    std::vector<double>& heights = chart.heights.emplace_back();
    for (const std::optional<double>& value : all.of[m]) heights.push_back(value.value_or(kNoBar));
    heights.push_back(all.geomean[m].value_or(kNoBar));
  }
  return bars_svg({chart});
}

std::string search_time_svg(const ComparisonSet& set) {
  std::vector<BarChart> charts;
  const std::vector<std::vector<Reaching>> all = all_reaching(set);
  for (size_t to = 0; to < all.size(); ++to) {
    const std::string& name = modes(set)[to].name;
    BarChart& chart = charts.emplace_back();
    chart.title = "to " + name + "'s final latency";
    chart.y_name = "search time (s); of " + name + ": all of it";
    for (const ComparedNetwork& network : set) chart.groups.push_back(network.name);
    for (size_t m = 0; m < all.size(); ++m) {
      chart.series.push_back(modes(set)[m].name);
      std::vector<double>& heights = chart.heights.emplace_back();
      for (const Standing& standing : all[to][m].standings) {
        const auto seconds = median(m == to ? standing.search_s : standing.seconds);
        heights.push_back(m == to || reached(standing) ? seconds.value_or(kNoBar) : kNoBar);
      }
    }
  }
  return bars_svg(charts);
}

Json comparison_set_json(const ComparisonSet& set) {
  const Performance performed = performance(set);
  const std::vector<std::vector<Reaching>> all = all_reaching(set);
  Json names = Json::array(), networks = Json::array(), geomeans = Json::array();
  for (const ComparedMode& mode : modes(set)) names.push_back(mode.name);
  for (size_t n = 0; n < set.size(); ++n) {
    const Comparison& comparison = set[n].comparison;
    const std::vector<Standing> found = standings(comparison);
    Json of_modes = Json::array();
    for (size_t m = 0; m < found.size(); ++m) {
      Json reaching = Json::array();
      for (size_t to = 0; to < all.size(); ++to) {
        if (to == m) continue;
        const Standing& standing = all[to][m].standings[n];
        reaching.push_back({{"mode", modes(set)[to].name},
                            {"reached", standing.reached},
                            {"trials", pruner::to_json(standing.trials)},
                            {"seconds", pruner::to_json(standing.seconds)},
                            {"speedup", to_json(speedup(standing))}});
      }
      of_modes.push_back({{"mode", modes(set)[m].name},
                          {"update", modes(set)[m].update},
                          {"ingredients", modes(set)[m].ingredients},
                          {"seeds", found[m].seeds},
                          {"search_s", pruner::to_json(found[m].search_s)},
                          {"latency_s", pruner::to_json(found[m].latency_s)},
                          {"end_to_end_s", pruner::to_json(found[m].end_to_end_s)},
                          {"trials_of_reach", pruner::to_json(found[m].trials_of_reach)},
                          {"time_of_reach", pruner::to_json(found[m].time_of_reach)},
                          {"latency_of_measure", pruner::to_json(found[m].latency_of_measure)},
                          {"performance", to_json(performed.of[m][n])},
                          {"to", std::move(reaching)}});
    }
    networks.push_back({{"network", set[n].name},
                        {"subject", comparison.subject},
                        {"device", comparison.device},
                        {"modes", std::move(of_modes)}});
  }
  for (size_t m = 0; m < all.size(); ++m) {
    Json reaching = Json::array();
    for (size_t to = 0; to < all.size(); ++to) {
      if (to == m) continue;
      reaching.push_back({{"mode", modes(set)[to].name},
                          {"networks_reached", all[to][m].speedups.size()},
                          {"speedup", to_json(all[to][m].geomean())}});
    }
    geomeans.push_back({{"mode", modes(set)[m].name},
                        {"performance", to_json(performed.geomean[m])},
                        {"to", std::move(reaching)}});
  }
  return {{"end_to_end", performed.end_to_end},
          {"modes", std::move(names)},
          {"networks", std::move(networks)},
          {"geomean", std::move(geomeans)}};
}

}  // namespace pruner
