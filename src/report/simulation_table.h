// Simulated runs of several modes -> how many trials each takes to a share of the log's best: a
// table, TSV, JSON; the plot is the comparison's.
#pragma once

#include <array>

#include "report/comparison.h"

namespace pruner {

/// Shares of the best known that are looked for.
inline constexpr std::array kQualities = {0.9, 0.95, 0.99, 1.0};

struct SimulatedRuns {
  Comparison comparison;  // latencies are geometric means over the tasks
  double best_s = 0;      // the log's
  int64_t tasks = 0, programs = 0;
};

/// Trials of a mode to a share of the best, over the seeds; the full budget where it is not
/// reached.
struct QualityReach {
  int reached = 0;  // seeds
  Spread trials;
};
/// A mode's, by kQualities. `seeds` > 0.
struct SimulatedMode {
  int seeds = 0;
  Spread quality;  // at the end: the best known by what was found, at most 1; 0: a task has nothing
  std::array<QualityReach, kQualities.size()> reach;
};
std::vector<SimulatedMode> simulated_modes(const SimulatedRuns& runs);

/// A row a mode: the quality at the end, and the trials to each share.
std::string print_simulation(const SimulatedRuns& runs);
/// "mode\tseed\ttrials\tseconds\tquality": a line a point, and one at the end of each run.
std::string simulation_tsv(const SimulatedRuns& runs);
/// comparison_json() with "best_s", "tasks", "programs" and, of each mode, "quality" and "reach":
/// [{"quality","reached","trials"}].
Json simulation_json(const SimulatedRuns& runs);

}  // namespace pruner
