#include "report/simulation_table.h"

#include <fmt/format.h>

#include <algorithm>

namespace pruner {

namespace {

// `kRounding` is the most that rounding may take off a share that was reached.
constexpr double kRounding = 1e-9;

double quality_of(const SimulatedRuns& runs, double latency_s) {
  return std::min(1.0, runs.best_s / latency_s);
}

double final_quality(const SimulatedRuns& runs, const TuningCurve& curve) {
  return curve.final_s() ? quality_of(runs, *curve.final_s()) : 0;
}

/// Returns the trials until the share is reached; nullopt if it never is.
std::optional<int64_t> trials_to(const SimulatedRuns& runs,
                                 const TuningCurve& curve,
                                 double quality) {
  for (const CurvePoint& point : curve.points)
    if (quality_of(runs, point.latency_s) >= quality - kRounding) return point.trials;
  return std::nullopt;
}

std::string print(const QualityReach& reach, int seeds) {
  if (reach.reached == 0) return "-";
  const std::string trials = pruner::print(reach.trials, 0);
  if (reach.reached == seeds) return trials;
  return fmt::format("{}, {} of {}", trials, reach.reached, seeds);
}

Spread scaled(const Spread& s, double factor) {
  return {s.median * factor, s.least * factor, s.most * factor};
}

}  // namespace

std::vector<SimulatedMode> simulated_modes(const SimulatedRuns& runs) {
  std::vector<SimulatedMode> found;
  for (const ComparedMode& mode : runs.comparison.modes) {
    SimulatedMode& simulated = found.emplace_back();
    std::vector<double> qualities;
    std::array<std::vector<double>, kQualities.size()> trials;
    for (const TuningCurve& curve : runs.comparison.curves) {
      if (curve.mode != mode.name) continue;
      ++simulated.seeds;
      qualities.push_back(final_quality(runs, curve));
      for (size_t q = 0; q < kQualities.size(); ++q) {
        const std::optional<int64_t> there = trials_to(runs, curve, kQualities[q]);
        simulated.reach[q].reached += there.has_value();
        trials[q].push_back(static_cast<double>(there.value_or(curve.trials)));
      }
    }
    simulated.quality = spread(qualities).value_or(Spread());
    for (size_t q = 0; q < kQualities.size(); ++q)
      simulated.reach[q].trials = spread(trials[q]).value_or(Spread());
  }
  return found;
}

std::string print_simulation(const SimulatedRuns& runs) {
  const std::vector<SimulatedMode> modes = simulated_modes(runs);
  const int seeds = modes.empty() ? 0 : modes.front().seeds;
  std::vector<std::vector<std::string>> rows = {
      {fmt::format("method ({}; seeds: {})", runs.comparison.subject, seeds),
       "Update mode",
       "Quality (%)"}};
  for (const double quality : kQualities)
    rows.front().push_back(fmt::format("Trials to {:.0f} %", 100 * quality));
  for (size_t m = 0; m < modes.size(); ++m) {
    const ComparedMode& mode = runs.comparison.modes[m];
    std::vector<std::string> row = {
        mode.name, mode.update, pruner::print(scaled(modes[m].quality, 100), 2)};
    for (const QualityReach& reach : modes[m].reach) row.push_back(print(reach, modes[m].seeds));
    rows.push_back(std::move(row));
  }
  return print_table(rows);
}

std::string simulation_tsv(const SimulatedRuns& runs) {
  std::string tsv = "mode\tseed\ttrials\tseconds\tquality\n";
  for (const TuningCurve& curve : runs.comparison.curves) {
    const auto line = [&](int64_t trials, double seconds, double quality) {
      tsv += fmt::format(
          "{}\t{}\t{}\t{:.2f}\t{:.6f}\n", curve.mode, curve.seed, trials, seconds, quality);
    };
    for (const CurvePoint& point : curve.points)
      line(point.trials, point.seconds, quality_of(runs, point.latency_s));
    line(curve.trials, curve.search_s, final_quality(runs, curve));
  }
  return tsv;
}

Json simulation_json(const SimulatedRuns& runs) {
  Json json = comparison_json(runs.comparison);
  json["best_s"] = runs.best_s;
  json["tasks"] = runs.tasks;
  json["programs"] = runs.programs;
  const std::vector<SimulatedMode> modes = simulated_modes(runs);
  for (size_t m = 0; m < modes.size(); ++m) {
    Json reach = Json::array();
    for (size_t q = 0; q < kQualities.size(); ++q) {
      const QualityReach& r = modes[m].reach[q];
      reach.push_back(
          {{"quality", kQualities[q]}, {"reached", r.reached}, {"trials", to_json(r.trials)}});
    }
    json["modes"][m]["quality"] = to_json(modes[m].quality);
    json["modes"][m]["reach"] = std::move(reach);
  }
  return json;
}

}  // namespace pruner
