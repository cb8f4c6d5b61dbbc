// A tuning run whose device is a log: what is measured is looked up, so the programs of the log are
// the whole space. A mode, a seed and a pool of programs -> one curve, the same on every machine.
#pragma once

#include "dataset/program_pool.h"
#include "search/mode.h"
#include "tune/curve.h"

namespace pruner {

struct SimulationOptions {
  const SearchMode* mode = nullptr;
  std::string name = {};            // of the mode, as it was given
  LearnedModelOptions models = {};  // `seed` is the run's, and there is no time box
  int64_t trials = 1000;
  int64_t round_size = 10;
  size_t draft_size = 512;  // drafts that are verified
  double eps_greedy = 0.1;  // share of a round that is drawn at random
  uint64_t seed = 0;
};

/// The geometric mean of the tasks' best times: what no run can beat.
double best_known_s(const ProgramPool& pool);

/// Runs until the trials are used, or nothing better is left. Tasks are equal: the scheduler takes
/// each one's time in units of what its first valid round found. A point's latency is the geometric
/// mean of the best times found, from the trial on at which every task has one; its seconds are
/// those that the log spent on the trials. Errors: a model lacks its weights, or cannot learn.
Result<TuningCurve> simulate(const ProgramPool& pool, const SimulationOptions& options);

}  // namespace pruner
