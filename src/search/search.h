// Candidates worth measuring: the schedule that needs no search, and the batches of a tuning round.
// One seed and the same measured times give one sequence.
#pragma once

#include <vector>

#include "model/cost_model.h"
#include "search/evolve.h"
#include "search/history.h"

namespace pruner {

/// The task's best candidate by draft score, found without measuring: the same for every run, in
/// some 20 ms. Trial 0 of each task, and what a module without records is built with.
Candidate default_schedule(const Task& task, const Space& space);

struct SearchOptions {
  double eps_greedy = 0.1;         // share of a batch that is drawn uniformly
  double neighbours = 0.25;        // share that is next to the fastest measured
  size_t measured_parents = 5;     // ... of how many of them
  int random_samples = 512;        // a round starts from
  int mutations = 32;              // of each measured parent
  std::vector<std::string> forms;  // that are searched (form_names()); empty: all
  int min_distance = 2;            // decisions in which two of a batch differ, where there are such
  EvolveOptions evolve;
};

/// Up to `count` candidates to measure next, none of them tried before; empty: the space is used
/// up. The task's first batch begins with its default schedule and the best of each sketch.
std::vector<Candidate> next_batch(const Task& task,
                                  const Space& space,
                                  const History& history,
                                  size_t count,
                                  CostModel& model,
                                  const SearchOptions& options,
                                  Rng& rng);

}  // namespace pruner
