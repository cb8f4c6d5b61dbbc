// Several that do the same, timed in turns: what the machine does meanwhile, it does to all of
// them.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "deploy/run_times.h"
#include "support/result.h"

namespace pruner {

/// One of them: runs as the options say, and gives the seconds of each timed run.
struct Racer {
  std::string name;
  std::function<Result<std::vector<double>>(const BenchOptions& turn)> run;
};

/// What a race came to.
struct RaceTimes {
  std::vector<BenchResult> of;                  // each racer's runs of all turns
  std::vector<std::vector<double>> medians_ms;  // [racer][turn]
};

/// Ten turns, or as many as options.min_runs where those are fewer, in which each has its share of
/// the options' runs and seconds; who begins changes from turn to turn. Each turn begins with a run
/// that is not timed, the first with options.warm_up of them.
Result<RaceTimes> race(std::span<const Racer> racers, const BenchOptions& options);

/// Median milliseconds of each module at `paths`, the least of five turns of at least 0.2 s. They
/// have the same inputs.
Result<std::vector<double>> race_modules(const std::vector<std::string>& paths, int threads);

}  // namespace pruner
