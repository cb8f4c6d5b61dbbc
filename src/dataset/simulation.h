// Simulates a tuning run whose device is a log: measurements are looked up, so the programs of the
// log are the whole space. A mode, a seed and a pool give one curve, the same on every machine.
#pragma once

#include "dataset/program_pool.h"
#include "search/mode.h"
#include "tune/curve.h"

namespace pruner {

struct SimulationOptions {
  const SearchMode* mode = nullptr;
  std::string name = {};            // name of the mode, as it was given
  LearnedModelOptions models = {};  // `seed` is the run's, and there is no time box
  int64_t trials = 1000;
  int64_t round_size = 10;
  size_t draft_size = 512;  // drafts that are verified
  double eps_greedy = 0.1;  // share of a round that is drawn at random
  uint64_t seed = 0;
};

/// Returns the geometric mean of the tasks' best times, which no run can beat.
double best_known_s(const ProgramPool& pool);

/// Runs until the trials are used, or nothing better is left. Tasks are equal: the scheduler takes
/// each task's time in units of the best time in its first valid round. A point's latency is the
/// geometric mean of the best times found, from the first trial with a time for every task. A
/// point's seconds are the log's seconds on its trials. Errors: a model has no weights or fails.
Result<TuningCurve> simulate(const ProgramPool& pool, const SimulationOptions& options);

}  // namespace pruner
