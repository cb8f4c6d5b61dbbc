// Times racers that do the same in turns, so that a disturbance of the machine meets all of them.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "deploy/run_times.h"
#include "support/result.h"

namespace pruner {

/// Holds a racer: `run` runs it as the options say, and returns the seconds of each timed run.
struct Racer {
  std::string name;
  std::function<Result<std::vector<double>>(const BenchOptions& turn)> run;
};

/// Holds the times of a race.
struct RaceTimes {
  std::vector<BenchResult> of;                  // each racer's runs of all turns
  std::vector<std::vector<double>> medians_ms;  // [racer][turn]
};

/// Runs ten turns, or options.min_runs if those are fewer. In a turn each racer has its share of
/// the options' runs and seconds; the first racer changes from turn to turn. Each turn begins with
/// one untimed run, the first turn with options.warm_up untimed runs.
Result<RaceTimes> race(std::span<const Racer> racers, const BenchOptions& options);

/// Returns the median milliseconds of each module at `paths`, the least of five turns of at least
/// 0.2 s. The modules have the same inputs.
Result<std::vector<double>> race_modules(const std::vector<std::string>& paths, int threads);

}  // namespace pruner
