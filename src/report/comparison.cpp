#include "report/comparison.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "report/network_time.h"

namespace pruner {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// Seeds whose runs count: the complete ones, or all when none is.
std::vector<uint64_t> counted_seeds(const Comparison& comparison) {
  std::vector<uint64_t> all, complete;
  for (const TuningCurve& curve : comparison.curves) {
    if (curve.mode != comparison.modes.front().name) continue;
    all.push_back(curve.seed);
    if (curve.complete) complete.push_back(curve.seed);
  }
  return complete.empty() ? all : complete;
}

/// A column of numbers over the seeds.
struct Values {
  std::vector<double> search_s, latency_s, end_to_end_s, trials, seconds;
  std::vector<double> trials_of_budget, time_of_budget;
  std::vector<double> trials_of_reach, time_of_reach, latency_of_measure, end_to_end_of_measure;
};

/// Adds part / whole; nothing if there is no whole.
void add_share(double part, double whole, std::vector<double>& shares) {
  if (whole > 0) shares.push_back(paired_ratio(part, whole));
}

std::optional<PairedRatio> paired(const std::vector<double>& ratios) {
  const std::optional<Estimate> ratio = estimate_median(ratios);
  if (!ratio) return std::nullopt;
  return PairedRatio{*ratio, signed_rank_p(ratios)};
}

std::string text(const std::optional<Estimate>& estimate, int digits, double unit = 1) {
  return estimate ? print(*estimate, digits, unit) : "-";
}

std::string text(const std::optional<PairedRatio>& paired, int digits) {
  return paired ? print(paired->ratio, digits) : "-";
}

using Row = std::vector<std::string>;

/// Returns the estimates of a mode by the names that JSON gives them.
Json mode_json(const ComparedMode& mode, const Standing& standing) {
  return {{"mode", mode.name},
          {"update", mode.update},
          {"ingredients", mode.ingredients},
          {"seeds", standing.seeds},
          {"reached", standing.reached},
          {"search_s", to_json(standing.search_s)},
          {"latency_s", to_json(standing.latency_s)},
          {"end_to_end_s", to_json(standing.end_to_end_s)},
          {"trials", to_json(standing.trials)},
          {"seconds", to_json(standing.seconds)},
          {"trials_of_budget", to_json(standing.trials_of_budget)},
          {"time_of_budget", to_json(standing.time_of_budget)},
          {"trials_of_reach", to_json(standing.trials_of_reach)},
          {"time_of_reach", to_json(standing.time_of_reach)},
          {"latency_of_measure", to_json(standing.latency_of_measure)},
          {"end_to_end_of_measure", to_json(standing.end_to_end_of_measure)}};
}

}  // namespace

std::string print(const Spread& spread, int digits) {
  const auto number = [&](double value) { return fmt::format("{:.{}f}", value, digits); };
  if (spread.least == spread.most) return number(spread.median);
  return fmt::format(
      "{} ({} to {})", number(spread.median), number(spread.least), number(spread.most));
}

Json to_json(const std::optional<PairedRatio>& paired) {
  if (!paired) return {};
  Json json = to_json(std::optional(paired->ratio));
  json["p"] = paired->p;
  return json;
}

Json to_json(const std::optional<Spread>& spread) {
  if (!spread) return {};
  return {{"median", spread->median}, {"least", spread->least}, {"most", spread->most}};
}

std::string print_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths(rows.front().size());
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (size_t r = 0; r < rows.size(); ++r) {
    for (size_t i = 0; i < widths.size(); ++i)
      text += fmt::format("| {:<{}} ", rows[r][i], widths[i]);
    text += "|\n";
    if (r > 0) continue;
    for (const size_t width : widths) text += fmt::format("|{:-<{}}", "", width + 2);
    text += "|\n";
  }
  return text;
}

const TuningCurve* Comparison::curve(const std::string& mode, uint64_t seed) const {
  const auto found = std::ranges::find_if(
      curves, [&](const TuningCurve& c) { return c.mode == mode && c.seed == seed; });
  return found == curves.end() ? nullptr : &*found;
}

bool Reached::ever() const { return !std::isinf(trials); }

Reached reach(const TuningCurve& curve, double latency_s) {
  const auto point = std::ranges::find_if(
      curve.points, [&](const CurvePoint& p) { return p.latency_s <= kReachRatio * latency_s; });
  if (point == curve.points.end()) return {kNever, kNever};
  return {static_cast<double>(point->trials), point->seconds};
}

// The median of an even number of values is the mean of the middle two.
std::optional<Spread> spread(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  std::ranges::sort(values);
  const size_t n = values.size();
  return Spread{(values[(n - 1) / 2] + values[n / 2]) / 2, values.front(), values.back()};
}

std::vector<Standing> standings(const Comparison& comparison, size_t measure) {
  std::vector<Standing> found;
  for (const ComparedMode& mode : comparison.modes) {
    Standing& standing = found.emplace_back();
    Values values;
    for (const uint64_t seed : counted_seeds(comparison)) {
      const TuningCurve* first = comparison.curve(comparison.modes[measure].name, seed);
      const TuningCurve* own = comparison.curve(mode.name, seed);
      if (own == nullptr) continue;
      ++standing.seeds;
      values.search_s.push_back(own->search_s);
      if (own->final_s()) values.latency_s.push_back(*own->final_s());
      if (own->end_to_end_s) values.end_to_end_s.push_back(*own->end_to_end_s);
      if (first == nullptr || !first->final_s()) continue;  // nothing to reach
      const Reached there = reach(*own, *first->final_s());
      const Reached by_first = reach(*first, *first->final_s());
      standing.reached += there.ever();
      values.trials.push_back(there.trials);
      values.seconds.push_back(there.seconds);
      add_share(there.trials, static_cast<double>(first->trials), values.trials_of_budget);
      add_share(there.seconds, first->search_s, values.time_of_budget);
      add_share(there.trials, by_first.trials, values.trials_of_reach);
      add_share(there.seconds, by_first.seconds, values.time_of_reach);
      add_share(own->final_s().value_or(kNever), *first->final_s(), values.latency_of_measure);
      if (own->end_to_end_s && first->end_to_end_s)
        add_share(*own->end_to_end_s, *first->end_to_end_s, values.end_to_end_of_measure);
    }
    standing.search_s = estimate_median(values.search_s);
    standing.latency_s = estimate_median(values.latency_s);
    standing.end_to_end_s = estimate_median(values.end_to_end_s);
    standing.trials = estimate_median(values.trials);
    standing.seconds = estimate_median(values.seconds);
    standing.trials_of_budget = estimate_median(values.trials_of_budget);
    standing.time_of_budget = estimate_median(values.time_of_budget);
    standing.trials_of_reach = paired(values.trials_of_reach);
    standing.time_of_reach = paired(values.time_of_reach);
    standing.latency_of_measure = paired(values.latency_of_measure);
    standing.end_to_end_of_measure = paired(values.end_to_end_of_measure);
  }
  return found;
}

/// Prints one table of all modes.
static std::string print_modes(const Comparison& comparison, const std::string& title) {
  const std::string& first = comparison.modes.front().name;
  const std::vector<Standing> all = standings(comparison);
  const bool several = all.size() > 1;
  const bool measured =
      std::ranges::any_of(all, [](const Standing& s) { return s.end_to_end_s.has_value(); });
  std::vector<Row> rows;
  const auto add = [&](bool shown, std::string head, const auto& cell) {
    if (!shown) return;
    Row& row = rows.emplace_back(Row{std::move(head)});
    for (const Standing& s : all) row.push_back(cell(s));
  };
  const auto mode_of = [&](const Standing& s) -> const ComparedMode& {
    return comparison.modes[&s - all.data()];
  };
  add(true,
      fmt::format("{} ({}; seeds: {})", title, comparison.subject, all.front().seeds),
      [&](const Standing& s) { return mode_of(s).name; });
  add(true, "Update mode", [&](const Standing& s) { return mode_of(s).update; });
  add(true, "Search time (s)", [](const Standing& s) { return text(s.search_s, 1); });
  add(true, "Estimated total latency (ms)", [](const Standing& s) {
    return text(s.latency_s, 4, 1e-3);
  });
  add(measured, "End-to-end time (ms)", [](const Standing& s) {
    return text(s.end_to_end_s, 4, 1e-3);
  });
  add(measured, "End-to-end time / estimate", [](const Standing& s) {
    if (!s.end_to_end_s || !s.latency_s) return std::string("-");
    return fmt::format("{:.2f}", s.end_to_end_s->median / s.latency_s->median);
  });
  add(several, fmt::format("Seeds that reach {}'s latency", first), [](const Standing& s) {
    return fmt::format("{} of {}", s.reached, s.seeds);
  });
  add(several, "Trials to it", [](const Standing& s) { return text(s.trials, 0); });
  add(several, "Seconds to it", [](const Standing& s) { return text(s.seconds, 1); });
  add(several, fmt::format("Trials to it / {}'s budget", first), [](const Standing& s) {
    return text(s.trials_of_budget, 2);
  });
  add(several, fmt::format("Seconds to it / {}'s budget", first), [](const Standing& s) {
    return text(s.time_of_budget, 2);
  });
  add(several, fmt::format("Trials to it / {}'s", first), [](const Standing& s) {
    return text(s.trials_of_reach, 2);
  });
  add(several, fmt::format("Seconds to it / {}'s", first), [](const Standing& s) {
    return text(s.time_of_reach, 2);
  });
  add(several, fmt::format("Latency / {}'s", first), [](const Standing& s) {
    return text(s.latency_of_measure, 3);
  });
  return print_table(rows);
}

std::vector<Comparison> parts_of(const Comparison& comparison) {
  const auto& modes = comparison.modes;
  const auto published = std::ranges::count_if(modes, &ComparedMode::published);
  if (published < 2 || published == std::ssize(modes)) return {comparison};
  const std::string& first = modes.front().name;
  Comparison theirs = comparison, ours = comparison;
  std::erase_if(theirs.modes, [](const ComparedMode& mode) { return !mode.published(); });
  std::erase_if(ours.modes,
                [&](const ComparedMode& mode) { return mode.published() && mode.name != first; });
  return {theirs, ours};
}

std::string print_comparison(const Comparison& comparison) {
  const std::vector<Comparison> parts = parts_of(comparison);
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) text += "\n";
    text += print_modes(parts[i], parts.size() == 1 ? "method" : kPartTitles[i]);
  }
  const bool measured = std::ranges::any_of(
      comparison.curves, [](const TuningCurve& curve) { return curve.end_to_end_s.has_value(); });
  return text + (measured ? fmt::format("\nWhere the two differ: {}\n", kEstimateAndTime) : "");
}

std::string print(const std::optional<PairedRatio>& paired, int digits) {
  if (!paired) return "-";
  return fmt::format("{}, p = {:.2g}{}",
                     print(paired->ratio, digits),
                     paired->p,
                     paired->ratio.holds(1) ? ": no difference that these runs can show" : "");
}

std::string print_ingredients(std::span<const ComparedMode> modes) {
  std::string text = "Ingredients that this project adds to the published searches:\n";
  for (const ComparedMode& mode : modes)
    text += fmt::format("- {}: {}\n", mode.name, mode.ingredients);
  return text;
}

std::string print_conclusions(const Comparison& comparison) {
  const std::vector<Standing> all = standings(comparison);
  std::string text = "\n" + print_ingredients(comparison.modes) + "\n";
  if (all.front().seeds < kLeastSeeds)
    return text +
           fmt::format("{}: {} of {} seeds.\n", kTooFewSeeds, all.front().seeds, kLeastSeeds);
  std::vector<Row> rows = {{fmt::format("over {}'s, seed by seed", comparison.modes.front().name),
                            "trials to its latency",
                            "seconds to it",
                            "final latency"}};
  const bool measured = std::ranges::any_of(
      all, [](const Standing& s) { return s.end_to_end_of_measure.has_value(); });
  if (measured) rows.front().push_back("end-to-end time");
  for (size_t m = 1; m < all.size(); ++m) {
    const Standing& s = all[m];
    Row& row = rows.emplace_back(Row{comparison.modes[m].name,
                                     print(s.trials_of_reach, 2),
                                     print(s.time_of_reach, 2),
                                     print(s.latency_of_measure, 3)});
    if (measured) row.push_back(print(s.end_to_end_of_measure, 3));
  }
  return text + print_table(rows) + kHowShown;
}

std::string curves_tsv(const Comparison& comparison) {
  std::string tsv = "mode\tseed\ttrials\tseconds\tlatency_ms\n";
  for (const TuningCurve& curve : comparison.curves) {
    const auto line = [&](int64_t trials, double seconds, double latency_s) {
      tsv += fmt::format(
          "{}\t{}\t{}\t{:.2f}\t{:.6f}\n", curve.mode, curve.seed, trials, seconds, latency_s * 1e3);
    };
    for (const CurvePoint& point : curve.points) line(point.trials, point.seconds, point.latency_s);
    if (curve.final_s()) line(curve.trials, curve.search_s, *curve.final_s());
  }
  return tsv;
}

Json comparison_json(const Comparison& comparison) {
  Json modes = Json::array(), curves = Json::array();
  const std::vector<Standing> all = standings(comparison);
  for (size_t i = 0; i < all.size(); ++i) modes.push_back(mode_json(comparison.modes[i], all[i]));
  for (const TuningCurve& curve : comparison.curves) {
    Json points = Json::array();
    for (const CurvePoint& point : curve.points)
      points.push_back(Json::array({point.trials, point.seconds, point.latency_s}));
    curves.push_back({{"mode", curve.mode},
                      {"seed", curve.seed},
                      {"trials", curve.trials},
                      {"search_s", curve.search_s},
                      {"complete", curve.complete},
                      {"end_to_end_s", curve.end_to_end_s ? Json(*curve.end_to_end_s) : Json()},
                      {"points", std::move(points)}});
  }
  return {{"subject", comparison.subject},
          {"device", comparison.device},
          {"modes", std::move(modes)},
          {"curves", std::move(curves)}};
}

Result<std::vector<TuningCurve>> complete_curves(const Json& saved, const Comparison& now) {
  TRY_ASSIGN(const std::string subject, json_get<std::string>(saved, "subject"));
  TRY_ASSIGN(const std::string device, json_get<std::string>(saved, "device"));
  TRY_ASSIGN(const Json modes, json_get<Json>(saved, "modes"));
  TRY_ASSIGN(const Json all, json_get<Json>(saved, "curves"));
  std::vector<std::string> names, names_now;
  for (const Json& mode : modes) {
    TRY_ASSIGN(std::string name, json_get<std::string>(mode, "mode"));
    names.push_back(std::move(name));
  }
  for (const ComparedMode& mode : now.modes) names_now.push_back(mode.name);
  if (subject != now.subject) return Error("of ", subject, ", not ", now.subject);
  if (device != now.device) return Error("of another device, ", device);
  if (names != names_now) return Error(fmt::format("of the modes {}", fmt::join(names, ",")));

  std::vector<TuningCurve> curves;
  for (const Json& json : all) {
    TuningCurve curve;
    TRY_ASSIGN(curve.mode, json_get<std::string>(json, "mode"));
    TRY_ASSIGN(curve.seed, json_get<uint64_t>(json, "seed"));
    TRY_ASSIGN(curve.trials, json_get<int64_t>(json, "trials"));
    TRY_ASSIGN(curve.search_s, json_get<double>(json, "search_s"));
    TRY_ASSIGN(curve.complete, json_get<bool>(json, "complete"));
    using Point = std::array<double, 3>;
    TRY_ASSIGN(const std::vector<Point> points, json_get<std::vector<Point>>(json, "points"));
    for (const auto& [trials, seconds, latency_s] : points)
      curve.points.push_back({static_cast<int64_t>(trials), seconds, latency_s});
    const Result<double> end_to_end_s = json_get<double>(json, "end_to_end_s");
    if (end_to_end_s.ok()) curve.end_to_end_s = *end_to_end_s;
    if (curve.complete) curves.push_back(std::move(curve));
  }
  return curves;
}

}  // namespace pruner
